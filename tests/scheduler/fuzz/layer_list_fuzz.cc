// Any text: refused, or layers whose extents are all positive.
#include "scheduler/layer_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto layers = dla::scheduler::ParseLayerList({reinterpret_cast<const char*>(data), size});
  if (!layers.ok()) return 0;
  for (const auto& named : *layers) {
    DLA_CHECK(named.count > 0 && !named.name.empty(), "layer ", named.name, " was taken");
  }
  return 0;
}
