#include "scheduler/mapping.h"

#include "support/checked.h"

namespace dla::scheduler {

int64_t BlockCount(const ir::Nest& nest, const Mapping& mapping, int d) {
  const size_t i = static_cast<size_t>(d);
  return CeilDiv(nest.dimensions[i].extent, mapping.block[i]);
}

bool DrainsInPlace(const ir::Nest& nest, const Mapping& mapping) {
  const OperandPlace& output = mapping.operands[static_cast<size_t>(nest.output())];
  return nest.anchor == ir::Anchor::kContraction && !output.resident &&
         output.memory == mapping.accumulator.memory;
}

}  // namespace dla::scheduler
