// Any text: refused, or a graph that prints back to itself.
#include "ir/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto graph = dla::ir::ParseGraph(std::string(data, data + size));
  if (!graph.ok()) return 0;
  const std::string text = dla::ir::PrintGraph(*graph);
  const auto again = dla::ir::ParseGraph(text);
  DLA_CHECK(!again.ok() || dla::ir::PrintGraph(*again) == text, "no round trip");
  return 0;
}
