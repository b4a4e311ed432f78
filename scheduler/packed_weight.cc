#include "scheduler/packed_weight.h"

#include "scheduler/transfers.h"

namespace dla::scheduler {

bool IsPackedWeight(const ir::Nest& nest, int operand) {
  return nest.anchor == ir::Anchor::kContraction && operand == ir::Nest::kWeight &&
         nest.operands[ir::Nest::kWeight].is_constant;
}

PackedWeight PackedWeightOf(const ir::Nest& nest, const Mapping& mapping) {
  const ir::Operand& weight = nest.operands[ir::Nest::kWeight];
  const uint32_t input = DependenceMask(nest, ir::Nest::kInput);
  const uint32_t output = DependenceMask(nest, nest.output());
  PackedWeight packed = {.type = weight.type, .base = weight.base};
  for (const ir::Axis& from : weight.axes) {
    PackedWeight::Axis axis = {.bound = from.bound, .stride = from.stride};
    if (!from.terms.empty()) {
      const int d = from.terms[0].dimension;
      const bool in_output = (output >> d & 1u) != 0, in_input = (input >> d & 1u) != 0;
      axis.block = mapping.block[static_cast<size_t>(d)];
      axis.role = !in_output ? PackedWeight::Role::kDepth
                  : in_input ? PackedWeight::Role::kGroup
                             : PackedWeight::Role::kChannel;
      if (const auto& diagonal = weight.diagonal) {
        axis.restarts = d == diagonal->depth_dimension;
        if (d == diagonal->channel_dimension) axis.in_diagonal_block = diagonal->channels;
        if (axis.restarts) axis.in_diagonal_block = diagonal->depths;
      }
    }
    packed.axes.push_back(axis);
  }
  return packed;
}

}  // namespace dla::scheduler
