// What the engines of a box take at least: folds, vector instructions, energy.
#include <algorithm>
#include <bit>

#include "machine/timing.h"
#include "scheduler/exact/box_bound.h"
#include "scheduler/operand_view.h"
#include "scheduler/predict.h"
#include "scheduler/tile_sums.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

constexpr size_t kMostTable = 1 << 18;  // entries of a role's table

double Real(int64_t value) { return static_cast<double>(value); }

double BytesOf(ElementType type) { return Real(TypeBytes(type, 8)) / 8; }

int64_t Extents(const ir::Nest& nest, uint32_t dims) {
  int64_t product = 1;
  for (size_t d = 0; d < nest.dimensions.size(); ++d) {
    if (dims >> d & 1U) product *= nest.dimensions[d].extent;
  }
  return product;
}

}  // namespace

bool BoxBounds::AllPoints(uint32_t dims) const {
  for (size_t d = 0; d < trees_.size(); ++d) {
    if ((dims >> d & 1U) != 0 && !trees_[d].node(box_[d]).IsPoint()) return false;
  }
  return true;
}

template <typename PerTile>
BoxBounds::RoleTable BoxBounds::BuildRole(uint32_t dims, const PerTile& per_tile) const {
  RoleTable table;
  size_t size = 1;
  for (size_t d = 0; d < trees_.size(); ++d) {
    if ((dims >> d & 1U) == 0 || trees_[d].extent() == 1) continue;
    table.dims.push_back(static_cast<int>(d));
    table.stride.push_back(size);
    size *= static_cast<size_t>(trees_[d].size());
  }
  if (table.dims.size() > 2 || size > kMostTable) return {};
  table.least.resize(size);
  std::vector<int64_t> block(trees_.size(), 1);
  for (size_t i = size; i-- > 0;) {
    bool is_point = true;
    for (size_t t = 0; t < table.dims.size() && is_point; ++t) {
      const SizeTree& tree = trees_[At(table.dims[t])];
      const int at = static_cast<int>(i / table.stride[t] % static_cast<size_t>(tree.size()));
      const SizeNode& node = tree.node(at);
      block[At(table.dims[t])] = node.lo;
      if (node.IsPoint()) continue;
      is_point = false;
      table.least[i] = std::min(table.least[i + At(node.left - at) * table.stride[t]],
                                table.least[i + At(node.right - at) * table.stride[t]]);
    }
    if (is_point) table.least[i] = SumOverTiles(nest_, block, dims, 0, 1, per_tile);
  }
  return table;
}

// The least sum of per_tile over the tiles of `dims`: from the table; without one, as if all points
// were in tiles without remainders.
template <typename PerTile>
int64_t BoxBounds::RoleLeast(const RoleTable& table, uint32_t dims, const PerTile& per_tile) const {
  if (!table.least.empty()) {
    size_t at = 0;
    for (size_t t = 0; t < table.dims.size(); ++t) {
      at += At(box_[At(table.dims[t])]) * table.stride[t];
    }
    return table.least[at];
  }
  if (AllPoints(dims)) return SumOverTiles(nest_, block_, dims, 0, 1, per_tile);
  return std::max(per_tile(Extents(nest_, dims)), CountProduct(dims) * per_tile(1));
}

void BoxBounds::BuildRoles() {
  const uint32_t input = operands_[ir::Nest::kInput].dims;
  const uint32_t weight = operands_[ir::Nest::kWeight].dims;
  const uint32_t output = operands_.back().dims;
  group_dims_ = input & weight & output;
  pixel_dims_ = input & output & ~weight;
  channel_dims_ = weight & output & ~input;
  depth_dims_ = input & weight & ~output;
  const machine::Array& array = target_.array;
  rate_ = array.rates.at(
      {nest_.operands[ir::Nest::kInput].ReadType(), nest_.operands[ir::Nest::kWeight].ReadType()});
  row_dims_ = pixel_dims_, col_dims_ = channel_dims_, stream_dims_ = depth_dims_;
  skew_ = array.rows + array.cols - 2;
  if (array.dataflow != machine::Dataflow::kOutputStationary) {
    row_dims_ = depth_dims_;
    stream_dims_ = pixel_dims_;
    skew_ = 2 * array.rows + array.cols - 2;
    if (array.dataflow == machine::Dataflow::kInputStationary) std::swap(col_dims_, stream_dims_);
    if (array.dataflow == machine::Dataflow::kSpatial) skew_ = 0;
  }
  rows_ = BuildRole(row_dims_, [&](int64_t points) { return CeilDiv(points, array.rows); });
  cols_ = BuildRole(col_dims_, [&](int64_t points) { return CeilDiv(points, array.cols); });
  stream_ = BuildRole(stream_dims_,
                      [&](int64_t points) { return machine::CyclesAtRate(points, rate_) + skew_; });
}

int64_t BoxBounds::ArrayLeast() {
  const machine::Array& array = target_.array;
  row_folds_ = RoleLeast(rows_, row_dims_, [&](int64_t p) { return CeilDiv(p, array.rows); });
  col_folds_ = RoleLeast(cols_, col_dims_, [&](int64_t p) { return CeilDiv(p, array.cols); });
  const int64_t stream = RoleLeast(
      stream_, stream_dims_, [&](int64_t p) { return machine::CyclesAtRate(p, rate_) + skew_; });
  return Extents(nest_, group_dims_) * row_folds_ * col_folds_ * stream;
}

// Every instruction once for each tile of its dimensions; what only begins a running value is left
// out.
int64_t BoxBounds::VectorLeast() const {
  int64_t cycles = 0;
  for (const VectorWork& work : work_.vector) {
    if (work.program.ops.size() == 1 && work.program.ops[0].op == MicroOp::kConst) continue;
    const uint32_t reduced = work.shape.reduced_dims;
    const uint32_t reduced_over = work.shape.full_dims & ~reduced;
    const auto per_tile = [&](int64_t full_points, int64_t reduced_points) {
      return machine::VectorCycles(target_.vector, work.program, work.shape.full, full_points,
                                   reduced_points);
    };
    if (AllPoints(work.shape.full_dims | reduced)) {
      cycles += SumOverTiles(nest_, block_, reduced, 0, 1, [&](int64_t points) {
        return SumOverTiles(nest_, block_, reduced_over, 0, 1,
                            [&](int64_t over) { return per_tile(points * over, points); });
      });
      continue;
    }
    const int64_t tiles = CountProduct(work.shape.full_dims | reduced);
    cycles += per_tile(Extents(nest_, work.shape.full_dims), Extents(nest_, reduced)) +
              (tiles - 1) * target_.vector.startup_cycles;
  }
  return cycles;
}

// The last step has the last block of every dimension.
int64_t BoxBounds::LastStepLeast() {
  last_.resize(trees_.size());
  for (size_t d = 0; d < trees_.size(); ++d) {
    const SizeNode& node = trees_[d].node(box_[d]);
    last_[d] = node.IsPoint() ? trees_[d].extent() - (node.least_count - 1) * node.lo : 1;
  }
  int64_t cycles = 0;
  if (nest_.anchor == ir::Anchor::kContraction) {
    cycles = machine::ArrayCycles(target_.array, rate_, ExtentsOf(nest_, last_));
  }
  for (const VectorWork& work : work_.vector) {
    if (work.not_last != 0 || work.first != 0) continue;
    cycles += machine::VectorCycles(target_.vector, work.program, work.shape.full,
                                    Points(work.shape.full_dims, last_),
                                    Points(work.shape.reduced_dims, last_));
  }
  return cycles;
}

void BoxBounds::SetCompute() {
  compute_ = nest_.anchor == ir::Anchor::kContraction ? ArrayLeast() : 0;
  compute_ += VectorLeast();
  last_step_ = LastStepLeast();
}

// Energy that no mapping saves.
double BoxBounds::FixedEnergy() const {
  double pj = 0;
  const auto access = [&](int operand, double elements) {
    const bool sums = operand == kAccumulator;
    const double per_byte = sums ? partial_pj_ : operands_[At(operand)].least_pj;
    pj += per_byte * BytesOf(TypeOf(nest_, target_, operand)) * elements;
  };
  for (const VectorWork& work : work_.vector) {
    if (work.program.ops.size() == 1 && work.program.ops[0].op == MicroOp::kConst) continue;
    const int64_t full = Extents(nest_, work.shape.full_dims);
    const int64_t reduced = Extents(nest_, work.shape.reduced_dims);
    for (size_t i = 0; i < work.program.ops.size(); ++i) {
      if (work.program.ops[i].op != MicroOp::kLoad) continue;
      access(LoadedOperand(nest_, work.program.ops[i]), Real(work.shape.full[i] ? full : reduced));
    }
    access(work.output, Real(work.shape.full.back() ? full : reduced));
    pj += target_.vector.energy_pj_per_op *
          Real(machine::VectorOps(work.program, work.shape.full, full, reduced));
  }
  if (nest_.anchor != ir::Anchor::kContraction) return pj;
  const auto mac = target_.array.energy_pj_per_mac.find(nest_.operands[0].ReadType());
  const uint32_t all = group_dims_ | pixel_dims_ | channel_dims_ | depth_dims_;
  if (mac != target_.array.energy_pj_per_mac.end()) pj += mac->second * Real(Extents(nest_, all));
  const bool converts = nest_.operands.back().type != AccumulatorType(nest_, target_);
  if (work_.vector.empty() && converts) {
    const double outputs = Real(Extents(nest_, operands_.back().dims));
    access(kAccumulator, outputs);
    access(nest_.output(), outputs);
  }
  return pj;
}

double BoxBounds::EnergyLeast(const Repeats& repeats, double bus) const {
  double pj = fixed_pj_ + target_.dram.energy_pj_per_byte * bus;
  for (size_t o = 0; o < operands_.size(); ++o) {
    const Operand& operand = operands_[o];
    if (!operand.moves && !operand.linked) continue;
    double per_byte = operand.least_pj;
    if (operand.linked) {
      per_byte += target_.memories[At(problem_.resident_in[o])].energy_pj_per_byte;
    }
    pj += per_byte * moved_[o].payload * Real(repeats.times[o]);
  }
  if (nest_.anchor != ir::Anchor::kContraction) return pj;
  pj += partial_pj_ * 2 * Real(repeats.visits - 1) * moved_.back().spill_payload;
  const double groups = Real(Extents(nest_, group_dims_));
  const double pixels = Real(Extents(nest_, pixel_dims_));
  const double channels = Real(Extents(nest_, channel_dims_));
  const double depth = Real(Extents(nest_, depth_dims_));
  const double outputs = groups * pixels * channels;
  double inputs_read = groups * pixels * depth, weights_read = groups * channels * depth;
  double partials = 0;  // read and written
  switch (target_.array.dataflow) {
    case machine::Dataflow::kOutputStationary:
      inputs_read *= Real(col_folds_);
      weights_read *= Real(row_folds_);
      partials = outputs * Real(2 * CountProduct(reductions_) - 1);
      break;
    case machine::Dataflow::kWeightStationary:
    case machine::Dataflow::kSpatial:
      inputs_read *= Real(col_folds_);
      weights_read *= Real(CountProduct(pixel_dims_));
      partials = outputs * Real(2 * row_folds_ - 1);
      break;
    case machine::Dataflow::kInputStationary:
      inputs_read *= Real(CountProduct(channel_dims_));
      weights_read *= Real(col_folds_);
      partials = outputs * Real(2 * row_folds_ - 1);
      break;
  }
  const auto at = [&](int o, double elements) {
    return operands_[At(o)].least_pj * BytesOf(nest_.operands[At(o)].type) * elements;
  };
  pj += at(ir::Nest::kInput, inputs_read) + at(ir::Nest::kWeight, weights_read);
  pj += partial_pj_ * Real(partial_bytes_) * partials;
  if (nest_.bias >= 0) {
    const uint32_t dims = operands_[At(nest_.bias)].dims;
    pj += at(nest_.bias, Real(Extents(nest_, dims) * CountProduct(~dims & ~reductions_)));
  }
  return pj;
}

}  // namespace dla::scheduler
