#include "scheduler/mapping.h"

#include <algorithm>

#include "support/checked.h"

namespace dla::scheduler {

int64_t Blocks::Length(const ir::Nest& nest, int d, int64_t index) const {
  const int64_t full = size[static_cast<size_t>(d)] + (index == 0 ? Lead(d) : 0);
  return std::min(full, nest.dimensions[static_cast<size_t>(d)].extent - Start(d, index));
}

int64_t Blocks::Count(const ir::Nest& nest, int d) const {
  const size_t i = static_cast<size_t>(d);
  return CeilDiv(nest.dimensions[i].extent - Lead(d), size[i]);
}

Mapping SteadyMapping(Mapping mapping) {
  for (OperandPlace& place : mapping.operands) {
    if (!place.once) continue;
    place.through_dram = false;
    place.fill_bytes = 0;
  }
  return mapping;
}

bool LoadsOnce(const Mapping& mapping) {
  return std::any_of(mapping.operands.begin(), mapping.operands.end(),
                     [](const OperandPlace& place) { return place.once; });
}

int64_t BlockCount(const ir::Nest& nest, const Mapping& mapping, int d) {
  return Blocks(mapping).Count(nest, d);
}

bool DrainsInPlace(const ir::Nest& nest, const Mapping& mapping) {
  const OperandPlace& output = mapping.operands[static_cast<size_t>(nest.output())];
  return nest.anchor == ir::Anchor::kContraction && !output.resident &&
         output.memory == mapping.accumulator.memory;
}

}  // namespace dla::scheduler
