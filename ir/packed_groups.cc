#include "ir/packed_groups.h"

namespace dla::ir {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// The dimensions of a grouped contraction.
struct GroupDims {
  int group = -1;    // of input, weight and output
  int channel = -1;  // of weight and output
  int depth = -1;    // of input and weight
};

// The operand's axis along a dimension, if that is all there is to the axis; -1: none.
int WholeAxis(const Nest& nest, const Operand& operand, int dimension) {
  for (size_t a = 0; a < operand.axes.size(); ++a) {
    const Axis& axis = operand.axes[a];
    if (axis.terms.size() != 1 || axis.terms[0].dimension != dimension) continue;
    const bool whole = axis.terms[0].coefficient == 1 && axis.offset == 0 &&
                       axis.bound == nest.dimensions[At(dimension)].extent;
    return whole ? static_cast<int>(a) : -1;
  }
  return -1;
}

// Indices along `outer` and `inner` count through the operand as one index.
bool Joins(const Nest& nest, int operand, int outer, int inner) {
  const Operand& o = nest.operands[At(operand)];
  const bool has_outer = nest.DependsOn(operand, outer), has_inner = nest.DependsOn(operand, inner);
  if (!has_outer && !has_inner) return true;
  const int a = WholeAxis(nest, o, outer), b = WholeAxis(nest, o, inner);
  return a >= 0 && b >= 0 &&
         o.axes[At(a)].stride == nest.dimensions[At(inner)].extent * o.axes[At(b)].stride;
}

bool CanJoin(const Nest& nest, const GroupDims& dims) {
  for (int o = 0; o <= nest.output(); ++o) {
    const bool is_input = o == Nest::kInput;
    if (!Joins(nest, o, dims.group, is_input ? dims.depth : dims.channel)) return false;
    const bool others = is_input ? nest.DependsOn(o, dims.channel)
                                 : o != Nest::kWeight && nest.DependsOn(o, dims.depth);
    if (others) return false;
  }
  return WholeAxis(nest, nest.operands[Nest::kWeight], dims.depth) >= 0;
}

std::optional<GroupDims> FindGroups(const Nest& nest) {
  const Operand* weight =
      nest.anchor == Anchor::kContraction ? &nest.operands[Nest::kWeight] : nullptr;
  if (weight == nullptr || !weight->is_constant || weight->diagonal) return std::nullopt;
  const auto in = [&](int operand, int d) { return nest.DependsOn(operand, d); };
  const int count = static_cast<int>(nest.dimensions.size());
  for (int g = 0; g < count; ++g) {
    if (nest.dimensions[At(g)].extent == 1) continue;
    if (!in(Nest::kInput, g) || !in(Nest::kWeight, g) || !in(nest.output(), g)) continue;
    for (int m = 0; m < count; ++m) {
      if (in(Nest::kInput, m) || !in(Nest::kWeight, m) || !in(nest.output(), m)) continue;
      for (int c = 0; c < count; ++c) {
        if (!in(Nest::kInput, c) || !in(Nest::kWeight, c) || in(nest.output(), c)) continue;
        const GroupDims dims = {g, m, c};
        if (CanJoin(nest, dims)) return dims;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<int64_t> PackCounts(const Nest& contraction) {
  std::vector<int64_t> counts;
  const std::optional<GroupDims> dims = FindGroups(contraction);
  if (!dims) return counts;
  const int64_t groups = contraction.dimensions[At(dims->group)].extent;
  for (int64_t count = 2; count <= groups; ++count) {
    if (groups % count == 0) counts.push_back(count);
  }
  return counts;
}

std::optional<Nest> PackGroups(const Nest& contraction, int64_t count) {
  const std::optional<GroupDims> dims = FindGroups(contraction);
  if (!dims || count < 2 || contraction.dimensions[At(dims->group)].extent % count != 0) {
    return std::nullopt;
  }
  Nest nest = contraction;
  nest.operands[Nest::kWeight].diagonal =
      Diagonal{.channel_dimension = dims->channel,
               .depth_dimension = dims->depth,
               .channels = nest.dimensions[At(dims->channel)].extent,
               .depths = nest.dimensions[At(dims->depth)].extent};
  nest.dimensions[At(dims->group)].extent /= count;
  nest.dimensions[At(dims->channel)].extent *= count;
  nest.dimensions[At(dims->depth)].extent *= count;
  for (Operand& operand : nest.operands) {
    for (Axis& axis : operand.axes) {
      if (axis.terms.size() != 1) continue;
      const int d = axis.terms[0].dimension;
      if (d == dims->group) {
        axis.bound /= count;
        axis.stride *= count;
      } else if (d == dims->channel || d == dims->depth) {
        axis.bound *= count;
      }
    }
  }
  return nest;
}

int64_t ZeroFactor(const Operand& operand, const Nest& nest) {
  if (!operand.diagonal) return 1;
  return nest.dimensions[At(operand.diagonal->depth_dimension)].extent / operand.diagonal->depths;
}

}  // namespace dla::ir
