#include "scheduler/exact/box_bound.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "machine/timing.h"
#include "scheduler/operand_view.h"
#include "scheduler/tile_sums.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

double Real(int64_t value) { return static_cast<double>(value); }

uint32_t Bit(int d) { return uint32_t{1} << d; }

std::vector<SizeTree> TreesOf(const ir::Nest& nest, const SearchSizes& sizes) {
  std::vector<SizeTree> trees;
  for (size_t d = 0; d < nest.dimensions.size(); ++d) {
    trees.emplace_back(nest.dimensions[d].extent, sizes.of[d]);
  }
  return trees;
}

}  // namespace

BoxBounds::BoxBounds(const SearchProblem& problem)
    : problem_(problem),
      nest_(*problem.nest),
      target_(*problem.target),
      sizes_(SizesOf(nest_, target_, problem.options.space)),
      trees_(TreesOf(nest_, sizes_)),
      spill_footprint_(nest_.operands.back(), 1, true, target_.dram),
      weighs_energy_(problem.objective == Objective::kEnergy ||
                     problem.objective == Objective::kEdp),
      work_(SplitWork(nest_, target_.output_stage)),
      reductions_(ReductionMask(nest_)),
      memories_(nest_, target_, problem.free_bytes, problem.resident_in) {
  const machine::Rational rate = target_.dram.bytes_per_cycle;
  bytes_per_cycle_ = Real(rate.numerator) / Real(rate.denominator);
  startup_ = Real(target_.dma_startup_cycles);
  latency_ = Real(target_.dram.latency_cycles);
  const auto least_pj = [&](size_t o) {
    const bool resident =
        o < nest_.operands.size() && memories_.AllowedFor(o).empty() && problem.resident_in[o] >= 0;
    if (resident) return target_.memories[At(problem.resident_in[o])].energy_pj_per_byte;
    double least = memories_.AllowedFor(o).empty() ? 0 : INFINITY;
    for (const int m : memories_.AllowedFor(o)) {
      least = std::min(least, target_.memories[At(m)].energy_pj_per_byte);
    }
    return least;
  };
  for (int o = 0; o <= nest_.output(); ++o) {
    const ir::Operand& source = nest_.operands[At(o)];
    const bool packed = IsPackedWeight(nest_, o);
    const int64_t bytes = TypeBytes(source.type, 1);
    const uint32_t gathered = nest_.GatheredAxes(o);
    Operand operand = {.footprint = Footprint(source, bytes, packed, target_.dram, gathered)};
    operand.dims = DependenceMask(nest_, o);
    operand.moves = problem.resident_in[At(o)] < 0 && !source.is_local;
    operand.linked = problem.resident_in[At(o)] >= 0 && !memories_.AllowedFor(At(o)).empty();
    operand.once_a_drain =
        nest_.anchor == ir::Anchor::kContraction && o > ir::Nest::kWeight && o != nest_.output();
    operand.element_bytes = bytes;
    operand.packed = packed;
    operand.gathered = gathered;
    operand.least_pj = least_pj(At(o));
    size_t units = 0;
    for (size_t a = 0; a < source.axes.size(); ++a) {
      operand.axes.emplace_back(nest_, source.axes[a], trees_, bytes, target_.dram.burst_bytes);
      if (source.axes[a].stride == 1 && (gathered >> a & 1U) == 0)
        ++units, operand.row_axis = static_cast<int>(a);
    }
    operand.scattered = units == 0;
    if (units != 1) operand.row_axis = -1;
    operands_.push_back(std::move(operand));
  }
  if (nest_.anchor == ir::Anchor::kContraction) {
    partial_bytes_ = TypeBytes(AccumulatorType(nest_, target_), 1);
    spill_footprint_ = Footprint(nest_.operands.back(), partial_bytes_, true, target_.dram);
    partial_pj_ = least_pj(nest_.operands.size());
    BuildRoles();
  }
  ListClasses();
  SetBufferRule();
  fixed_pj_ = FixedEnergy();
  block_.resize(trees_.size());
  count_.resize(trees_.size());
  moved_.resize(operands_.size());
  needs_.resize(operands_.size() + 1);
}

void BoxBounds::ListClasses() {
  const uint32_t all = (uint32_t{1} << operands_.size()) - 1;
  if (!problem_.options.rules.Has(Rule::kClasses) || nest_.pass_dimension >= 0) {
    classes_ = {{all, 0}, {all, ~uint32_t{0}}};
    return;
  }
  classes_.push_back({all, 0});
  for (size_t d = 0; d < trees_.size(); ++d) {
    if (trees_[d].size() < 2) continue;
    uint32_t once = all;
    for (size_t o = 0; o < operands_.size(); ++o) {
      if (operands_[o].dims >> d & 1U) once &= ~(uint32_t{1} << o);
    }
    const auto same = std::find_if(classes_.begin() + 1, classes_.end(),
                                   [&](const OrderClass& c) { return c.once == once; });
    if (same != classes_.end()) {
      same->dims |= uint32_t{1} << d;
    } else {
      classes_.push_back({once, uint32_t{1} << d});
    }
  }
}

bool BoxBounds::CanBe(const OrderClass& order_class) const {
  for (size_t d = 0; d < trees_.size(); ++d) {
    const SizeNode& node = trees_[d].node(box_[d]);
    if (order_class.dims == 0 && node.hi < trees_[d].extent()) return false;
    if ((order_class.dims >> d & 1U) != 0 && node.lo < trees_[d].extent()) return true;
  }
  return order_class.dims == 0;
}

int64_t BoxBounds::CountProduct(uint32_t dims) const {
  int64_t product = 1;
  for (uint32_t rest = dims & cut_; rest != 0; rest &= rest - 1) {
    product *= count_[static_cast<size_t>(std::countr_zero(rest))];
  }
  return product;
}

Repeats BoxBounds::RepeatsOf(uint32_t once) const {
  Repeats repeats;
  for (size_t o = 0; o < operands_.size(); ++o) {
    const Operand& operand = operands_[o];
    repeats.times[o] = 1;
    if (nest_.pass_dimension >= 0) {
      const bool again =
          (operand.dims & nest_.reduce_mask & cut_) != 0 && o + 1 != operands_.size();
      if (again) repeats.times[o] = CountProduct(Bit(nest_.pass_dimension));
    } else if ((once >> o & 1U) == 0) {
      const uint32_t never = operand.once_a_drain ? reductions_ : 0;
      repeats.times[o] = CountProduct(~operand.dims & ~never);
    }
  }
  const bool revisits =
      nest_.anchor == ir::Anchor::kContraction && (once >> (operands_.size() - 1) & 1U) == 0;
  repeats.visits = revisits ? CountProduct(reductions_) : 1;
  repeats.times[operands_.size() - 1] = 1;
  return repeats;
}

Repeats BoxBounds::RepeatsIn(std::span<const int> order) const {
  Repeats repeats;
  for (size_t o = 0; o < operands_.size(); ++o) {
    const Operand& operand = operands_[o];
    const uint32_t never = operand.dims | (operand.once_a_drain ? reductions_ : 0);
    int64_t outside = 1;
    repeats.times[o] = 1;
    for (const int d : order) {
      if (operand.dims & Bit(d)) repeats.times[o] = outside;
      if ((never & Bit(d)) == 0) outside *= count_[At(d)];
    }
  }
  const bool contracts = nest_.anchor == ir::Anchor::kContraction;
  repeats.visits = contracts ? repeats.times[operands_.size() - 1] : 1;
  repeats.times[operands_.size() - 1] = 1;
  return repeats;
}

void BoxBounds::SetBox(const Box& box) {
  box_ = box;
  is_point_ = true;
  singles_known_ = false;
  cut_ = 0;
  for (size_t d = 0; d < trees_.size(); ++d) {
    const SizeNode& node = trees_[d].node(box[d]);
    block_[d] = node.lo;
    count_[d] = node.least_count;
    is_point_ = is_point_ && node.IsPoint();
    if (node.hi < trees_[d].extent()) cut_ |= Bit(static_cast<int>(d));
  }
  may_be_double_ = 0;
  for (size_t o = 0; o < operands_.size(); ++o) SetOperand(o);
  const size_t sums = operands_.size();
  if (nest_.anchor == ir::Anchor::kContraction) {
    const int64_t elements = needs_[sums - 1].tile_bytes;  // set so by SetOperand
    needs_[sums] = {TypeBytes(AccumulatorType(nest_, target_), elements), 1};
    needs_[sums - 1].tile_bytes = TypeBytes(nest_.operands.back().type, elements);
    if (operands_.back().dims & cut_) may_be_double_ |= Bit(static_cast<int>(sums));
  }
  Needs(MostSingles());
  SetCompute();
}

void BoxBounds::SetBufferRule() {
  const uint32_t made = Bit(nest_.output()) | Bit(nest_.output() + 1);
  switch (problem_.options.buffers) {
    case BufferRule::kBest:
      break;
    case BufferRule::kSingle:
      must_be_single_ = ~uint32_t{0};
      break;
    case BufferRule::kInputsDouble:
      must_be_single_ = made;
      must_be_double_ = ~made;
      break;
    case BufferRule::kDouble:
      must_be_double_ = ~uint32_t{0};
      break;
  }
}

void BoxBounds::SetOperand(size_t o) {
  const Operand& operand = operands_[o];
  Moved& moved = moved_[o];
  double elements = 1, first = 1, last = 1;
  int64_t tile = 1;
  moved = {.tiles = 1};
  for (const AxisTable& table : operand.axes) {
    const AxisLeast& least = table.At(box_.data());
    elements *= Real(least.sum);
    moved.tiles *= Real(least.present);
    first *= Real(least.first);
    last *= Real(least.last);
    tile *= least.longest;
  }
  const double bytes = Real(operand.element_bytes);
  moved.payload = elements * bytes;
  moved.first_bytes = first * bytes;
  moved.last_bytes = last * bytes;
  const bool is_sum = o + 1 == operands_.size() && nest_.anchor == ir::Anchor::kContraction;
  needs_[o] = {is_sum ? tile : TypeBytes(nest_.operands[o].type, tile), 1};
  if (operand.moves) moved.bus = BusBytesOf(o);
  if (is_sum) {
    moved.spill_payload = elements * Real(partial_bytes_);
    moved.spill_bus =
        is_point_ ? Real(ExactBusBytes(o, spill_footprint_))
                  : std::max(moved.spill_payload, moved.tiles * Real(target_.dram.burst_bytes));
  }
  const bool is_shared = nest_.anchor == ir::Anchor::kMove && o + 1 == operands_.size();
  const bool has_buffer = operand.moves && !is_shared;
  if ((operand.dims & cut_) == 0) return;
  if (has_buffer) may_be_double_ |= Bit(static_cast<int>(o));
  if (operand.linked) needs_[o].slots = 2;
}

int64_t BoxBounds::ExactBusBytes(size_t o, const Footprint& footprint) {
  lengths_.clear();
  views_.clear();
  for (const ir::Axis& axis : nest_.operands[o].axes) {
    lengths_.push_back(LengthsOf(nest_, axis, block_, -1));
  }
  for (const AxisLengths& axis : lengths_) views_.push_back(&axis);
  return footprint.TotalBusBytes(views_);
}

// On the bus, every tile once.
double BoxBounds::BusBytesOf(size_t o) {
  const Operand& operand = operands_[o];
  const Moved& moved = moved_[o];
  const double burst = Real(target_.dram.burst_bytes);
  if (target_.dram.burst_bytes == 1) return moved.payload;
  if (is_point_) return Real(ExactBusBytes(o, operand.footprint));
  double least = std::max(moved.payload, moved.tiles * burst);
  if (operand.packed) return least;
  if (operand.scattered) {
    return moved.payload / Real(operand.element_bytes) *
           Real(RoundUp(operand.element_bytes, target_.dram.burst_bytes));
  }
  if (operand.row_axis < 0) return least;
  // Rows that are shorter than the next axis' stride in every tile do not join.
  const ir::Operand& source = nest_.operands[o];
  const size_t row = At(operand.row_axis);
  int64_t longest = 1;
  for (const ir::Term& term : source.axes[row].terms) {
    const SizeNode& node = trees_[At(term.dimension)].node(box_[At(term.dimension)]);
    longest += term.coefficient * (node.hi - 1);
  }
  longest = std::min(longest, source.axes[row].bound);
  double repeats = 1;
  for (size_t a = 0; a < source.axes.size(); ++a) {
    if (a == row) continue;
    const bool is_gathered = (operand.gathered >> a & 1U) != 0;  // joins nothing
    if (!is_gathered && source.axes[a].stride <= longest) return least;
    repeats *= Real(operand.axes[a].At(box_.data()).sum);
  }
  return std::max(least, repeats * Real(operand.axes[row].At(box_.data()).rounded));
}

bool BoxBounds::Fits() { return memories_.Fits(needs_); }

std::span<const BufferNeed> BoxBounds::Needs(uint32_t single) {
  for (size_t o = 0; o < needs_.size(); ++o) {
    const bool is_linked = o < operands_.size() && operands_[o].linked;
    if (is_linked) continue;
    needs_[o].slots = (may_be_double_ & ~single) >> o & 1U ? 2 : 1;
  }
  return needs_;
}

// Supersets of what fits move no faster.
void BoxBounds::FindSingles() {
  singles_.clear();
  singles_known_ = true;
  ForEachSingles([&](uint32_t single) {
    const auto has_subset = [&](uint32_t s) { return (s & ~single) == 0; };
    const bool is_first = singles_.empty();
    if (std::none_of(singles_.begin(), singles_.end(), has_subset) &&
        memories_.Fits(Needs(single))) {
      singles_.push_back(single);
      if (is_first && single == (may_be_double_ & must_be_single_)) return true;
    }
    return false;
  });
  Needs(MostSingles());
}

double BoxBounds::LeastSerial(const Repeats& repeats) {
  if (!problem_.options.rules.Has(Rule::kSerial)) return 0;
  if (!singles_known_) FindSingles();
  if (singles_.empty() && !problem_.options.rules.Has(Rule::kCapacity)) return 0;
  double least = INFINITY;
  for (const uint32_t single : singles_) least = std::min(least, SerialOf(repeats, single));
  return least;
}

double BoxBounds::SerialOf(const Repeats& repeats, uint32_t single) const {
  if (single == 0) return 0;
  double cycles = 0;
  double loads = 0;  // steps that wait for one, at least
  const size_t output = operands_.size() - 1;
  for (size_t o = 0; o < output; ++o) {
    if ((single >> o & 1U) == 0 || !operands_[o].moves) continue;
    const double times = Real(repeats.times[o]);
    cycles += TransferCycles(times * moved_[o].tiles, times * moved_[o].bus);
    loads = std::max(loads, times * moved_[o].tiles);
  }
  const Moved& out = moved_[output];
  if ((single >> output & 1U) != 0 && operands_[output].moves) {
    cycles += TransferCycles(out.tiles, out.bus);
  }
  if (single >> operands_.size() & 1U) {
    const double spills = Real(repeats.visits - 1);
    cycles += 2 * TransferCycles(spills * out.tiles, spills * out.spill_bus);
    loads = std::max(loads, spills * out.tiles);
  }
  return cycles + loads * latency_ + EndsOf(single);
}

double BoxBounds::EndsOf(uint32_t single) const {
  if (!problem_.options.rules.Has(Rule::kFill)) return 0;
  double cycles = 0;
  const size_t output = operands_.size() - 1;
  for (size_t o = 0; o < output; ++o) {
    const bool at_first = !operands_[o].once_a_drain || static_cast<int>(o) == nest_.bias;
    const bool counts = operands_[o].moves && at_first && moved_[o].first_bytes > 0;
    if (counts && (single >> o & 1U) == 0) cycles += TransferCycles(1, moved_[o].first_bytes);
  }
  if (operands_[output].moves && (single >> output & 1U) == 0) {
    cycles += TransferCycles(1, moved_[output].last_bytes);
  }
  return cycles;
}

Cost BoxBounds::Bound(const Repeats& repeats, double serial) const {
  const Rules& rules = problem_.options.rules;
  const size_t output = operands_.size() - 1;
  double bus_bytes = 0, loads = 0, stores = 0, fill = 0, drain = 0, load_steps = 0;
  for (size_t o = 0; o < output; ++o) {
    if (!operands_[o].moves) continue;
    const double times = Real(repeats.times[o]);
    bus_bytes += times * moved_[o].bus;
    loads += TransferCycles(times * moved_[o].tiles, times * moved_[o].bus);
    load_steps = std::max(load_steps, times * moved_[o].tiles);
    const bool at_first = !operands_[o].once_a_drain || static_cast<int>(o) == nest_.bias;
    if (at_first && moved_[o].first_bytes > 0) {
      fill += TransferCycles(1, moved_[o].first_bytes);
    }
  }
  const Moved& out = moved_[output];
  const double spills = Real(repeats.visits - 1);
  if (operands_[output].moves) {
    bus_bytes += out.bus;
    stores += TransferCycles(out.tiles, out.bus);
    drain = TransferCycles(1, out.last_bytes);
  }
  if (spills > 0) {
    bus_bytes += 2 * spills * out.spill_bus;
    const double spill = TransferCycles(spills * out.tiles, spills * out.spill_bus);
    stores += spill;
    loads += spill;
    load_steps = std::max(load_steps, spills * out.tiles);
  }
  const double compute = rules.Has(Rule::kCompute) ? Real(compute_) : 0;
  double overlap_free = 0;
  if (rules.Has(Rule::kFill)) overlap_free = (fill > 0 ? fill + latency_ : 0) + drain;
  double cycles = compute + std::max(overlap_free, serial);
  if (rules.Has(Rule::kBus)) {
    cycles = std::max(cycles, loads + stores);
    if (loads > 0) cycles = std::max(cycles, loads + latency_ + Real(last_step_) + drain);
  }
  if (rules.Has(Rule::kCredit)) {
    const double waits = loads + load_steps * latency_;
    cycles = std::max(cycles, (compute + std::max(compute, waits)) / 2 + drain);
  }
  return {bus_bytes, cycles, weighs_energy_ ? EnergyLeast(repeats, bus_bytes) : 0};
}

}  // namespace dla::scheduler
