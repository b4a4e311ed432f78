// Any text: refused, or a target that prints back to itself.
#include "machine/target_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(data, data + size);
  const auto resolver = [](const std::string& name) {
    return dla::machine::LoadTarget(name.find('/') == std::string::npos ? "edge32" : "none", {});
  };
  const auto target = dla::machine::ParseTarget(text, "fuzz.json", resolver);
  if (!target.ok()) return 0;
  const auto again =
      dla::machine::ParseTarget(dla::machine::TargetJson(*target), "fuzz.json", resolver);
  DLA_CHECK(again.ok() && *again == *target, "no round trip");
  return 0;
}
