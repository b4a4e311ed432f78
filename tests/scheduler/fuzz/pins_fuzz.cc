// Any text: a fault or pins, and what these leave of a target.
#include "machine/target_file.h"
#include "scheduler/pins.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const dla::machine::Target target = *dla::machine::LoadTarget("edge32", {});
  const auto pins = dla::scheduler::ParsePins({reinterpret_cast<const char*>(data), size});
  if (pins.ok()) (void)dla::scheduler::FreePieces(target, *pins);
  return 0;
}
