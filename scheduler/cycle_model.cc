#include "scheduler/cycle_model.h"

#include <algorithm>
#include <array>

#include "machine/timing.h"
#include "scheduler/axis_lengths.h"
#include "scheduler/operand_view.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

// More numbers of steps than this are not tabled.
constexpr int64_t kMostSteps = 1 << 16;

}  // namespace

// The state of the recurrence (docs/MACHINE.md, "Steps"): E[i-1], E[i-2], E[i-3], when the bus is
// free, and what steps i-1 and i-2 still have to store.
struct CycleModel::Recurrence {
  int64_t latency = 0;
  int64_t bus = 0;
  int64_t moves = 0;  // when the move engine is free
  int64_t end1 = 0, end2 = 0, end3 = 0;
  int64_t store_s1 = 0, store_d1 = 0, store_d2 = 0;
  int64_t prefetched = 0;  // when what was prefetched for the next group is usable

  void Advance(const Step& t) {
    int64_t ready = std::max(end1, prefetched);
    prefetched = 0;  // of the first step
    if (store_d2 > 0) ready = std::max(ready, Serve(end2, store_d2));
    if (t.load_d > 0) ready = std::max(ready, Serve(end2, t.load_d) + latency);
    if (store_s1 > 0) ready = std::max(ready, Serve(end1, store_s1));
    if (t.load_s > 0) ready = std::max(ready, Serve(end1, t.load_s) + latency);
    if (t.move > 0) {
      moves = std::max(moves, end2) + t.move;
      ready = std::max(ready, moves);
    }
    end3 = end2;
    end2 = end1;
    end1 = ready + t.compute;
    store_d2 = store_d1;
    store_d1 = t.store_d;
    store_s1 = t.store_s;
  }

  int64_t Retire() { return Retire(0, 0); }

  // With a prefetch of so many cycles, before which the load engine waits till `loads_wait`.
  int64_t Retire(int64_t prefetch, int64_t loads_wait) {
    if (store_d2 > 0) Serve(end2, store_d2);
    int64_t data = 0;
    if (prefetch > 0) data = Serve(loads_wait, prefetch) + latency;
    if (store_s1 > 0) Serve(end1, store_s1);
    if (store_d1 > 0) Serve(end1, store_d1);
    prefetched = data;
    return std::max({bus, end1, data});
  }

  // The state seen from end1. Nothing starts before end2 any more, so that engines that were free
  // earlier are as good as free at end2.
  std::array<int64_t, 6> Relative() const {
    return {std::max(bus, end2) - end1,
            std::max(moves, end2) - end1,
            end2 - end1,
            store_s1,
            store_d1,
            store_d2};
  }

  // `bus_before` is `bus` at the start of the period that repeats itself: a bus that did not serve
  // then does not serve from then on, and what a later group prefetches may find it free since.
  void Shift(int64_t cycles, int64_t bus_before) {
    if (bus != bus_before) bus += cycles;
    moves = std::max(moves, end2) + cycles;
    end1 += cycles;
    end2 += cycles;
    end3 += cycles;
  }

 private:
  int64_t Serve(int64_t not_before, int64_t cycles) {
    bus = std::max(bus, not_before) + cycles;
    return bus;
  }
};

CycleModel::CycleModel(const ir::Nest& nest, const machine::Target& target)
    : nest_(nest), target_(target), work_(nest, mapping_, target) {
  const bool contracts = nest.anchor == ir::Anchor::kContraction;
  for (int o = 0; o <= nest.output() + (contracts ? 1 : 0); ++o) {
    const int operand = o > nest.output() ? kAccumulator : o;
    const int64_t element_bytes = TypeBytes(TypeOf(nest, target, operand), 1);
    OperandTable table = {
        .axes = {},
        .footprint = Footprint(OperandOf(nest, operand), element_bytes, IsPacked(nest, operand),
                               target.dram, GatheredAxes(nest, operand)),
        .element_bytes = element_bytes};
    table.axes.resize(OperandOf(nest, operand).axes.size());
    operands_.push_back(std::move(table));
  }
  dims_.resize(nest.dimensions.size());
  radix_.resize(nest.dimensions.size());
  index_.resize(nest.dimensions.size());
  lengths_.resize(nest.dimensions.size());
}

void CycleModel::FillAxis(const ir::Axis& axis, int rolling, AxisTable* table) const {
  table->terms.clear();
  table->lengths.clear();
  int64_t size = 1;
  for (const ir::Term& term : axis.terms) {
    table->terms.emplace_back(At(term.dimension), size);
    size *= dims_[At(term.dimension)].count;
  }
  std::vector<int64_t> index(dims_.size(), 0);
  for (int64_t i = 0; i < size; ++i) {
    table->lengths.push_back(RolledInterval(nest_, axis, mapping_, index, rolling).length());
    for (const auto& [d, stride] : table->terms) {
      if (++index[d] < dims_[d].count) break;
      index[d] = 0;
    }
  }
}

bool CycleModel::SameKind(size_t d, int64_t a, int64_t b) const {
  const int64_t last = dims_[d].count - 1;
  if ((a == 0) != (b == 0) || (a == last) != (b == last)) return false;
  for (size_t o = 0; o < nest_.operands.size(); ++o) {
    for (const AxisTable& table : operands_[o].axes) {
      for (const auto& [dim, stride] : table.terms) {
        if (dim != d) continue;
        const int64_t size = static_cast<int64_t>(table.lengths.size());
        for (int64_t block = 0; block < size; block += stride * dims_[d].count) {
          const auto at = table.lengths.begin() + block;
          if (!std::equal(at + a * stride, at + (a + 1) * stride, at + b * stride)) return false;
        }
      }
    }
  }
  return true;
}

void CycleModel::FindKinds(size_t d) {
  Dim& dim = dims_[d];
  const Blocks blocks(mapping_);
  dim.kinds.clear();
  dim.runs.clear();
  dim.kind_of.resize(static_cast<size_t>(dim.count));
  for (int64_t i = 0; i < dim.count; ++i) {
    // Most often the kind of the block before.
    int kind = i > 0 ? dim.kind_of[static_cast<size_t>(i - 1)] : 0;
    const int kinds = static_cast<int>(dim.kinds.size());
    if (kinds == 0 || !SameKind(d, i, dim.kinds[At(kind)].index)) {
      for (kind = 0; kind < kinds && !SameKind(d, i, dim.kinds[At(kind)].index);) ++kind;
    }
    if (kind == kinds) {
      const int64_t length = blocks.Length(nest_, static_cast<int>(d), i);
      dim.kinds.push_back({length, i == 0, i + 1 == dim.count, i});
    }
    dim.kind_of[static_cast<size_t>(i)] = kind;
    if (dim.runs.empty() || dim.runs.back().kind != kind) dim.runs.push_back({kind, i, 0});
    ++dim.runs.back().blocks;
  }
}

void CycleModel::SetBlocks(const Mapping& mapping, int rolling) {
  mapping_.block = mapping.block;
  mapping_.stripe = mapping.stripe;
  rolling_ = rolling;
  for (size_t d = 0; d < dims_.size(); ++d) {
    dims_[d].count = BlockCount(nest_, mapping, static_cast<int>(d));
  }
  for (size_t o = 0; o < operands_.size(); ++o) {
    const int operand = o < nest_.operands.size() ? static_cast<int>(o) : kAccumulator;
    const int rolls = mapping.stripe.dimension >= 0 ? RollingOf(nest_, mapping, operand)
                      : operand == ir::Nest::kInput ? rolling
                                                    : -1;
    for (size_t a = 0; a < operands_[o].axes.size(); ++a) {
      FillAxis(OperandOf(nest_, operand).axes[a], rolls, &operands_[o].axes[a]);
    }
  }
  int64_t numbers = 1;
  for (size_t d = 0; d < dims_.size(); ++d) {
    FindKinds(d);
    radix_[d] = numbers;
    numbers = std::min(numbers * static_cast<int64_t>(dims_[d].kinds.size()), kMostSteps + 1);
  }
  // Too many: no table, every step is computed.
  steps_.assign(numbers > kMostSteps ? 0 : static_cast<size_t>(numbers), Step());
}

int64_t CycleModel::BusBytes(const OperandTable& table, int64_t* bytes) {
  axis_lengths_.clear();
  *bytes = table.element_bytes;
  for (const AxisTable& axis : table.axes) {
    int64_t position = 0;
    for (const auto& [d, stride] : axis.terms) position += index_[d] * stride;
    axis_lengths_.push_back(axis.lengths[static_cast<size_t>(position)]);
    *bytes *= axis_lengths_.back();
  }
  return *bytes == 0 ? 0 : table.footprint.BusBytes(axis_lengths_);
}

// The load of a gathered tile reads its indices on chip; axis_lengths_ are those of the tile.
void CycleModel::AddIndices(int operand, std::array<int64_t, machine::kMaxMemories>* bytes) const {
  if (operand == kAccumulator || !nest_.operands[At(operand)].gather) return;
  const uint32_t gathered = GatheredAxes(nest_, operand);
  const int indices = nest_.operands[At(operand)].gather->indices;
  int64_t read = TypeBytes(nest_.operands[At(indices)].type, 1);
  for (size_t a = 0; a < axis_lengths_.size(); ++a) {
    if ((gathered >> a & 1U) != 0) read *= axis_lengths_[a];
  }
  (*bytes)[At(PlaceOf(mapping_, indices).memory)] += read;
}

void CycleModel::AddTransfer(const Transfer& t, OpenTransfer* open) {
  const size_t o = t.operand == kAccumulator ? nest_.operands.size() : At(t.operand);
  const int64_t fill_bytes = t.is_store ? 0 : PlaceOf(mapping_, t.operand).fill_bytes;
  int64_t bytes = fill_bytes;
  const int64_t bus_bytes = fill_bytes > 0 ? RoundUp(fill_bytes, target_.dram.burst_bytes)
                                           : BusBytes(operands_[o], &bytes);
  if (bus_bytes == 0) return;
  open->bus_bytes += bus_bytes;
  open->bytes[At(PlaceOf(mapping_, t.operand).memory)] += bytes;
  ++open->descriptors;
  if (fill_bytes > 0) return;
  AddIndices(t.operand, &open->bytes);
}

int64_t CycleModel::CyclesOf(const OpenTransfer& transfer) const {
  return machine::BoundByMemories(
      target_, std::span(transfer.bytes).first(target_.memories.size()),
      machine::TransferCycles(target_, transfer.descriptors, transfer.bus_bytes));
}

CycleModel::Step CycleModel::Compute(uint32_t first, uint32_t last, uint32_t without) {
  OpenTransfer open[2][2];  // [is_store][overlaps]
  Step step;
  for (const Transfer& t : transfers_) {
    if (!t.is_store && t.operand >= 0 && (without >> t.operand & 1U) != 0) continue;
    const bool happens = Holds(t.first, first) && Holds(t.last, last) &&
                         (t.not_first == 0 || !Holds(t.not_first, first)) &&
                         (t.not_last == 0 || !Holds(t.not_last, last));
    if (!happens) continue;
    if (!t.is_move) {
      AddTransfer(t, &open[t.is_store][t.overlaps]);
      continue;
    }
    int64_t bytes = 0;
    if (BusBytes(operands_[At(t.operand)], &bytes) == 0) continue;
    const OperandPlace& place = PlaceOf(mapping_, t.operand);
    std::array<int64_t, machine::kMaxMemories> touched{};
    touched[At(place.source)] += bytes;
    touched[At(place.memory)] += bytes;
    const machine::Rational rate = target_.FindLink(place.source, place.memory)->bytes_per_cycle;
    step.move +=
        machine::BoundByMemories(target_, std::span(touched).first(target_.memories.size()),
                                 machine::CyclesAtRate(bytes, rate));
  }
  step.load_d = CyclesOf(open[0][1]);
  step.load_s = CyclesOf(open[0][0]);
  step.store_d = CyclesOf(open[1][1]);
  step.store_s = CyclesOf(open[1][0]);
  step.compute = work_.Cycles(lengths_, first, last);
  return step;
}

// The step whose blocks are index_.
const CycleModel::Step& CycleModel::StepAt(int64_t id) {
  Step& step = steps_.empty() ? scratch_ : steps_[static_cast<size_t>(id)];
  if (!steps_.empty() && step.mapping_number == mapping_number_) return step;
  step = ComputeHere(0);
  step.mapping_number = mapping_number_;
  return step;
}

CycleModel::Step CycleModel::ComputeHere(uint32_t without) {
  uint32_t first = 0;
  uint32_t last = 0;
  for (size_t d = 0; d < dims_.size(); ++d) {
    const Dim& dim = dims_[d];
    const Kind& kind = dim.kinds[At(dim.kind_of[static_cast<size_t>(index_[d])])];
    lengths_[d] = kind.length;
    if (kind.first) first |= uint32_t{1} << d;
    if (kind.last) last |= uint32_t{1} << d;
  }
  return Compute(first, last, without);
}

// `times` equal steps. Once the state repeats, after one or two steps, all that follows does.
void CycleModel::Repeat(const Step& step, int64_t times, Recurrence* recurrence) {
  std::array<int64_t, 6> before[2];
  int64_t end[2] = {}, bus[2] = {};
  for (int64_t i = 0; i < times; ++i) {
    recurrence->Advance(step);
    ++steps_walked_;
    const int64_t left = times - i - 1;
    if (left < 2) continue;
    const std::array<int64_t, 6> now = recurrence->Relative();
    for (const int64_t period : {1, 2}) {
      if (i < period || before[(i - period) % 2] != now) continue;
      const int64_t periods = left / period;
      const size_t from = static_cast<size_t>((i - period) % 2);
      recurrence->Shift(periods * (recurrence->end1 - end[from]), bus[from]);
      i += periods * period;
      break;
    }
    before[i % 2] = now;
    end[i % 2] = recurrence->end1;
    bus[i % 2] = recurrence->bus;
  }
}

int64_t CycleModel::Cycles(const Mapping& mapping, int64_t limit, int64_t least_compute) {
  Prepare(mapping);
  return Walk(limit, least_compute, {}, nullptr);
}

GroupTime CycleModel::CyclesBetween(const Mapping& mapping, const Neighbours& neighbours) {
  Prepare(mapping);
  GroupTime between;
  Walk(std::numeric_limits<int64_t>::max(), 0, neighbours, &between);
  return between;
}

GroupTime CycleModel::EndBetween(const Neighbours& neighbours, Recurrence* recurrence) const {
  // In its last step the load engine waits for buffers before it comes to the prefetch.
  int64_t loads_wait = 0;
  for (const Transfer& t : transfers_) {
    if (t.is_store || t.is_move) continue;
    loads_wait = std::max(loads_wait, t.overlaps ? recurrence->end3 : recurrence->end2);
  }
  const int64_t retired = recurrence->Retire(neighbours.next_prefetch, loads_wait);
  if (!neighbours.next_is_joined) return {.cycles = std::max(retired, neighbours.before.bus)};
  const int64_t cycles = std::max(recurrence->end1, neighbours.before.bus);
  return {.cycles = cycles,
          .after = {.bus = std::max<int64_t>(recurrence->bus - cycles, 0),
                    .data = std::max<int64_t>(recurrence->prefetched - cycles, 0)}};
}

int64_t CycleModel::PrefetchCycles(const Mapping& mapping, uint32_t operands) {
  Prepare(mapping);
  OpenTransfer open;
  for (const Transfer& t : transfers_) {
    const bool counts = !t.is_store && t.operand >= 0 && (operands >> t.operand & 1U) != 0;
    if (counts) AddTransfer(t, &open);
  }
  return CyclesOf(open);
}

void CycleModel::Prepare(const Mapping& mapping) {
  const int rolling = RollingOf(nest_, mapping, ir::Nest::kInput);
  const bool striped = mapping.stripe.dimension >= 0;  // then other operands may roll, too
  if (mapping_.block != mapping.block || rolling_ != rolling || striped ||
      mapping_.stripe != mapping.stripe) {
    SetBlocks(mapping, rolling);
  }
  mapping_.order = mapping.order;
  mapping_.operands = mapping.operands;
  mapping_.accumulator = mapping.accumulator;
  mapping_.rolling = mapping.rolling;
  transfers_ = TransfersOf(nest_, mapping_);
  ++mapping_number_;
  std::fill(index_.begin(), index_.end(), 0);
}

// Of the prepared mapping; `between` may be null.
int64_t CycleModel::Walk(int64_t limit, int64_t least_compute, const Neighbours& neighbours,
                         GroupTime* between) {
  // A group that is not cut along the stripes runs in one.
  const bool striped = mapping_.stripe.dimension >= 0 && !mapping_.order.empty() &&
                       mapping_.order.front() == mapping_.stripe.dimension;
  Recurrence start;
  start.latency = target_.dram.latency_cycles;
  Recurrence recurrence = start;
  recurrence.bus = neighbours.before.bus;
  recurrence.prefetched = neighbours.before.data;
  bool is_first = true;
  int64_t stripes = 0;  // cycles of those before: a barrier ends each
  const size_t loops = mapping_.order.size();
  const std::vector<Run> one = {{0, 0, 1}};
  const size_t inner = loops == 0 ? 0 : At(mapping_.order.back());
  const std::vector<Run>& runs = loops == 0 ? one : dims_[inner].runs;
  while (true) {
    int64_t outer = 0;  // number of the step but for the innermost loop
    for (size_t k = 0; k + 1 < loops; ++k) {
      const size_t d = At(mapping_.order[k]);
      outer += radix_[d] * dims_[d].kind_of[static_cast<size_t>(index_[d])];
    }
    for (const Run& run : runs) {
      if (loops > 0) index_[inner] = run.index;
      if (is_first && neighbours.prefetched != 0) {
        scratch_ = ComputeHere(neighbours.prefetched);
      }
      const Step& step = is_first && neighbours.prefetched != 0
                             ? scratch_
                             : StepAt(outer + (loops > 0 ? radix_[inner] * run.kind : 0));
      is_first = false;
      least_compute -= step.compute * run.blocks;
      if (striped && loops == 1) {
        Recurrence alone = start;
        alone.Advance(step);
        stripes += run.blocks * alone.Retire();
        ++steps_walked_;
        continue;
      }
      Repeat(step, run.blocks, &recurrence);
      if (recurrence.end1 + std::max<int64_t>(least_compute, 0) >= limit) {
        return recurrence.end1 + std::max<int64_t>(least_compute, 0);
      }
    }
    if (loops > 0) index_[inner] = 0;
    size_t k = loops == 0 ? 0 : loops - 1;
    while (k > 0) {
      const size_t d = At(mapping_.order[k - 1]);
      if (++index_[d] < dims_[d].count) break;
      index_[d] = 0;
      --k;
    }
    if (k == 0 && between != nullptr) *between = EndBetween(neighbours, &recurrence);
    if (k == 0) return between != nullptr ? between->cycles : stripes + recurrence.Retire();
    if (striped && k == 1) {
      stripes += recurrence.Retire();
      recurrence = start;
    }
  }
}

}  // namespace dla::scheduler
