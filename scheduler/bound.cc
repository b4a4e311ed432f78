#include "scheduler/bound.h"

#include <algorithm>

#include "machine/timing.h"
#include "scheduler/packed_weight.h"
#include "scheduler/predict.h"
#include "scheduler/tile_sums.h"
#include "scheduler/transfers.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

}  // namespace

BoundTables::BoundTables(const ir::Nest& nest, const machine::Target& target,
                         std::vector<std::vector<int64_t>> candidates, std::vector<bool> resident)
    : nest_(nest),
      target_(target),
      candidates_(std::move(candidates)),
      resident_(std::move(resident)),
      work_(SplitWork(nest, target.output_stage)),
      reductions_(ReductionMask(nest)) {
  const bool contracts = nest.anchor == ir::Anchor::kContraction;
  for (size_t o = 0; o < nest.operands.size(); ++o) {
    const ir::Operand& operand = nest.operands[o];
    const int64_t element_bytes = TypeBytes(operand.type, 1);
    const int64_t partial_bytes = contracts ? TypeBytes(AccumulatorType(nest, target), 1) : 1;
    OperandTable table = {
        .axes = {},
        .footprint = Footprint(operand, element_bytes, IsPackedWeight(nest, static_cast<int>(o)),
                               target.dram, nest.GatheredAxes(static_cast<int>(o))),
        .spill_footprint = Footprint(operand, partial_bytes, true, target.dram),
        .dims = DependenceMask(nest, static_cast<int>(o))};
    for (const ir::Axis& axis : operand.axes) {
      table.axes.emplace_back();
      BuildAxis(axis, &table.axes.back());
    }
    operands_.push_back(std::move(table));
  }
  block_.resize(nest.dimensions.size());
  count_.resize(nest.dimensions.size());
  needs_.resize(nest.operands.size() + 1);
  chosen_.resize(nest.operands.size());
}

void BoundTables::BuildAxis(const ir::Axis& axis, AxisTable* table) const {
  size_t size = 1;
  for (const ir::Term& term : axis.terms) {
    table->terms.emplace_back(At(term.dimension), size);
    size *= candidates_[At(term.dimension)].size();
  }
  std::vector<int64_t> block(nest_.dimensions.size(), 1);
  for (size_t i = 0; i < size; ++i) {
    for (const auto& [d, stride] : table->terms) {
      block[d] = candidates_[d][i / stride % candidates_[d].size()];
    }
    table->entries.push_back(LengthsOf(nest_, axis, block, -1));
  }
}

int64_t BoundTables::ProductOfCounts(uint32_t dims) const {
  int64_t product = 1;
  for (size_t d = 0; d < count_.size(); ++d) {
    if (dims & (uint32_t{1} << d)) product *= count_[d];
  }
  return product;
}

void BoundTables::Choose(std::span<const int> choice) {
  cut_ = 0;
  for (size_t d = 0; d < block_.size(); ++d) {
    block_[d] = candidates_[d][At(choice[d])];
    count_[d] = CeilDiv(nest_.dimensions[d].extent, block_[d]);
    if (count_[d] > 1) cut_ |= uint32_t{1} << d;
  }
  steps_ = ProductOfCounts(cut_);
  const bool contracts = nest_.anchor == ir::Anchor::kContraction;
  const AxisLengths* views[16];
  for (size_t o = 0; o < operands_.size(); ++o) {
    const OperandTable& table = operands_[o];
    int64_t tile = 1;
    int64_t tiles = 1;
    for (size_t a = 0; a < table.axes.size(); ++a) {
      size_t entry = 0;
      for (const auto& [d, stride] : table.axes[a].terms) entry += At(choice[d]) * stride;
      views[a] = &table.axes[a].entries[entry];
      tile *= views[a]->longest;
      tiles *= views[a]->present;
    }
    const int slots = (cut_ & table.dims) != 0 && !nest_.operands[o].is_local ? 2 : 1;
    needs_[o] = {TypeBytes(nest_.operands[o].type, tile), slots};
    const std::span<const AxisLengths* const> lengths(views, table.axes.size());
    chosen_[o] = {.bus_bytes = table.footprint.TotalBusBytes(lengths), .tiles = tiles};
    if (contracts && o + 1 == operands_.size()) {
      needs_.back() = {TypeBytes(AccumulatorType(nest_, target_), tile), slots};
      chosen_[o].spill_bus_bytes = table.spill_footprint.TotalBusBytes(lengths);
    }
  }
  compute_cycles_ = ComputeCycles();
}

int64_t BoundTables::ArraySum() const {
  const uint32_t input = operands_[ir::Nest::kInput].dims;
  const uint32_t weight = operands_[ir::Nest::kWeight].dims;
  const uint32_t output = operands_.back().dims;
  const uint32_t pixels = input & output & ~weight;
  const uint32_t channels = weight & output & ~input;
  const uint32_t depth = input & weight & ~output;
  const machine::Array& array = target_.array;
  const machine::Rational rate = array.rates.at(
      {nest_.operands[ir::Nest::kInput].ReadType(), nest_.operands[ir::Nest::kWeight].ReadType()});
  uint32_t rows = pixels, cols = channels, streamed = depth;
  int64_t skew = array.rows + array.cols - 2;
  if (array.dataflow != machine::Dataflow::kOutputStationary) {
    rows = depth;
    streamed = pixels;
    skew = 2 * array.rows + array.cols - 2;
    if (array.dataflow == machine::Dataflow::kInputStationary) std::swap(cols, streamed);
    if (array.dataflow == machine::Dataflow::kSpatial) skew = 0;
  }
  int64_t groups = 1;
  for (size_t d = 0; d < block_.size(); ++d) {
    if (input & weight & output & (uint32_t{1} << d)) groups *= nest_.dimensions[d].extent;
  }
  const auto folds = [&](uint32_t dims, int64_t side) {
    return SumOverTiles(nest_, block_, dims, 0, 1,
                        [&](int64_t points) { return CeilDiv(points, side); });
  };
  const int64_t stream = SumOverTiles(nest_, block_, streamed, 0, 1, [&](int64_t points) {
    return machine::CyclesAtRate(points, rate) + skew;
  });
  return groups * folds(rows, array.rows) * folds(cols, array.cols) * stream;
}

// Every instruction once for each tile of its dimensions; what only begins a running value is left
// out, so that this stays a bound.
int64_t BoundTables::VectorSum() const {
  int64_t cycles = 0;
  for (const VectorWork& work : work_.vector) {
    if (work.program.ops.size() == 1 && work.program.ops[0].op == MicroOp::kConst) continue;
    const uint32_t reduced_over = work.shape.full_dims & ~work.shape.reduced_dims;
    cycles +=
        SumOverTiles(nest_, block_, work.shape.reduced_dims, 0, 1, [&](int64_t reduced_points) {
          return SumOverTiles(nest_, block_, reduced_over, 0, 1, [&](int64_t points) {
            return machine::VectorCycles(target_.vector, work.program, work.shape.full,
                                         points * reduced_points, reduced_points);
          });
        });
  }
  return cycles;
}

int64_t BoundTables::ComputeCycles() const {
  int64_t cycles = nest_.anchor == ir::Anchor::kContraction ? ArraySum() : 0;
  return cycles + VectorSum();
}

BoundTables::Bound BoundTables::BoundOf(int stationary, uint32_t single) const {
  Bound bound;
  int64_t cycles[2] = {0, 0};  // of transfers that overlap, that do not
  const uint32_t kept = operands_[At(stationary)].dims & cut_;
  const size_t output = operands_.size() - 1;
  for (size_t o = 0; o < operands_.size(); ++o) {
    if (resident_[o] || nest_.operands[o].is_local) continue;
    const uint32_t dims = operands_[o].dims & cut_;
    // In this order the loops of `kept` are outside, the others inside.
    uint32_t repeats = (dims & ~kept) != 0 ? cut_ & ~dims : (dims != 0 ? kept & ~dims : 0);
    // A program in passes has one order: the passes inside what is kept, outside what is reduced.
    if (nest_.pass_dimension >= 0) {
      const bool again = (dims & nest_.reduce_mask) != 0 && o != output;
      repeats = again ? uint32_t{1} << nest_.pass_dimension : 0;
    }
    int64_t bus_bytes = chosen_[o].bus_bytes;
    int64_t descriptors = chosen_[o].tiles;
    const bool once = static_cast<int>(o) != ir::Nest::kInput &&
                      static_cast<int>(o) != ir::Nest::kWeight &&
                      nest_.anchor == ir::Anchor::kContraction;
    if (o == output) {
      const int64_t visits = ProductOfCounts(repeats & reductions_);
      bus_bytes += 2 * (visits - 1) * chosen_[o].spill_bus_bytes;
      descriptors += 2 * (visits - 1) * chosen_[o].tiles;
    } else {
      if (once) repeats &= ~reductions_;
      const int64_t times = ProductOfCounts(repeats);
      bus_bytes *= times;
      descriptors *= times;
    }
    bound.bus_bytes += bus_bytes;
    const bool waits = (single >> o & 1U) != 0 && dims != 0;
    cycles[waits ? 1 : 0] += machine::TransferCycles(target_, descriptors, bus_bytes);
  }
  bound.cycles = std::max(cycles[0], compute_cycles_) + cycles[1];
  return bound;
}

}  // namespace dla::scheduler
