#include "scheduler/predict.h"

#include <algorithm>
#include <array>

#include "scheduler/axis_lengths.h"
#include "scheduler/dram.h"
#include "scheduler/footprint.h"
#include "scheduler/operand_view.h"
#include "scheduler/step_work.h"
#include "scheduler/transfers.h"
#include "scheduler/work.h"
#include "support/checked.h"
#include "support/status.h"

namespace dla::scheduler {
namespace {

// The dimension along which the operand rolls. Tiles share lines with the one before only where
// that dimension is the innermost cut loop on which the operand depends.
int RollingOf(const ir::Nest& nest, const Mapping& mapping, int operand) {
  // A resident is filled along the stripes of its cascade; elsewhere tiles do not overlap.
  if (operand >= 0 && mapping.operands[At(operand)].resident) return mapping.stripe.dimension;
  if (operand != ir::Nest::kInput || mapping.rolling < 0) return -1;
  const uint32_t dims = DependenceMask(nest, operand);
  int innermost = -1;
  for (const int d : mapping.order) {
    if (dims & (uint32_t{1} << d)) innermost = d;
  }
  return innermost == mapping.rolling ? mapping.rolling : -1;
}

std::vector<AxisLengths> AxesOf(const ir::Nest& nest, const Mapping& mapping, int operand) {
  std::vector<AxisLengths> axes;
  for (const ir::Axis& axis : OperandOf(nest, operand).axes) {
    axes.push_back(LengthsOf(nest, axis, mapping, RollingOf(nest, mapping, operand)));
  }
  return axes;
}

// The load of a gathered tile reads its indices from the scratchpad. They are never clipped.
void CountIndices(const ir::Nest& nest, const Mapping& mapping, const Transfer& transfer,
                  const std::vector<AxisLengths>& axes, machine::Counters* counters) {
  const ir::Operand& operand = OperandOf(nest, transfer.operand);
  if (!operand.gather) return;
  const uint32_t gathered = GatheredAxes(nest, transfer.operand);
  int64_t elements = transfer.times;
  for (size_t a = 0; a < axes.size(); ++a) {
    elements *= (gathered >> a & 1U) != 0 ? axes[a].sum : axes[a].present;
  }
  const int indices = operand.gather->indices;
  counters->memory[At(PlaceOf(mapping, indices).memory)].read_bytes +=
      TypeBytes(nest.operands[At(indices)].type, elements);
}

// Adds what one transfer moves in the whole group.
void CountTransfer(const ir::Nest& nest, const Mapping& mapping, const machine::Target& target,
                   const Transfer& transfer, machine::Counters* counters) {
  const int64_t element_bytes = TypeBytes(TypeOf(nest, target, transfer.operand), 1);
  const Footprint footprint(OperandOf(nest, transfer.operand), element_bytes,
                            IsPacked(nest, transfer.operand), target.dram,
                            GatheredAxes(nest, transfer.operand));
  const std::vector<AxisLengths> axes = AxesOf(nest, mapping, transfer.operand);
  int64_t elements = transfer.times;
  int64_t present = transfer.times;
  for (const AxisLengths& axis : axes) {
    elements *= axis.sum;
    present *= axis.present;
  }
  const int64_t bytes = elements * element_bytes;
  if (transfer.is_move) {
    const OperandPlace& place = PlaceOf(mapping, transfer.operand);
    counters->memory[At(place.source)].read_bytes += bytes;
    counters->memory[At(place.memory)].write_bytes += bytes;
    counters->move_bytes += bytes;
    return;
  }
  std::vector<const AxisLengths*> views;
  for (const AxisLengths& axis : axes) views.push_back(&axis);
  const int64_t bus_bytes = footprint.TotalBusBytes(views) * transfer.times;
  machine::Counters::Traffic& traffic =
      counters->traffic[static_cast<size_t>(ClassOf(nest, transfer.operand))];
  machine::Counters::Access& memory =
      counters->memory[At(PlaceOf(mapping, transfer.operand).memory)];
  counters->descriptors += present;
  if (transfer.is_store) {
    traffic.store_bytes += bytes;
    traffic.store_bus_bytes += bus_bytes;
    memory.read_bytes += bytes;
    memory.store_bytes += bytes;
  } else {
    traffic.load_bytes += bytes;
    traffic.load_bus_bytes += bus_bytes;
    memory.write_bytes += bytes;
    memory.load_bytes += bytes;
    CountIndices(nest, mapping, transfer, axes, counters);
  }
}

// The recurrence's view of one transfer: which steps it happens in, what it moves there.
class TransferSteps {
 public:
  TransferSteps(const ir::Nest& nest, const Mapping& mapping, const machine::Target& target,
                const Transfer& transfer)
      : transfer_(transfer),
        footprint_(
            OperandOf(nest, transfer.operand), TypeBytes(TypeOf(nest, target, transfer.operand), 1),
            IsPacked(nest, transfer.operand), target.dram, GatheredAxes(nest, transfer.operand)) {
    const ir::Operand& operand = OperandOf(nest, transfer.operand);
    for (const ir::Axis& axis : operand.axes)
      AddTable(nest, mapping, axis, RollingOf(nest, mapping, transfer.operand));
    lengths_.resize(tables_.size());
    element_bytes_ = TypeBytes(TypeOf(nest, target, transfer.operand), 1);
    const OperandPlace& place = PlaceOf(mapping, transfer.operand);
    memory_ = At(place.memory);
    if (operand.gather) {
      gathered_ = GatheredAxes(nest, transfer.operand);
      index_bytes_ = TypeBytes(nest.operands[At(operand.gather->indices)].type, 1);
      source_ = At(PlaceOf(mapping, operand.gather->indices).memory);
    }
    if (transfer.is_move) {
      source_ = At(place.source);
      link_rate_ = target.FindLink(place.source, place.memory)->bytes_per_cycle;
    }
  }

  const Transfer& transfer() const { return transfer_; }

  bool Happens(uint32_t first, uint32_t last) const {
    return Holds(transfer_.first, first) && Holds(transfer_.last, last) &&
           (transfer_.not_first == 0 || !Holds(transfer_.not_first, first)) &&
           (transfer_.not_last == 0 || !Holds(transfer_.not_last, last));
  }

  // Cycles of the move with the loops at these block indices.
  int64_t MoveCycles(std::span<const int64_t> index, const machine::Target& target) {
    if (BusBytes(index) == 0) return 0;
    std::vector<int64_t> bytes(target.memories.size());
    bytes[source_] += Bytes();
    bytes[memory_] += Bytes();
    return machine::BoundByMemories(target, bytes, machine::CyclesAtRate(Bytes(), link_rate_));
  }

  size_t memory() const { return memory_; }
  size_t source() const { return source_; }
  // Bytes of the indices that the load of that tile reads.
  int64_t IndexBytes() const {
    int64_t bytes = index_bytes_;
    for (size_t a = 0; a < lengths_.size(); ++a) {
      if ((gathered_ >> a & 1U) != 0) bytes *= lengths_[a];
    }
    return bytes;
  }
  // Bytes of the tile that BusBytes was asked about last.
  int64_t Bytes() const {
    int64_t bytes = element_bytes_;
    for (const int64_t length : lengths_) bytes *= length;
    return bytes;
  }

  // Bus bytes with the loops at these block indices; 0: absent.
  int64_t BusBytes(std::span<const int64_t> index) {
    for (size_t a = 0; a < tables_.size(); ++a) {
      int64_t position = 0;
      for (const auto& [dim, stride] : tables_[a].terms) position += index[dim] * stride;
      lengths_[a] = tables_[a].lengths[static_cast<size_t>(position)];
      if (lengths_[a] == 0) return 0;
    }
    return footprint_.BusBytes(lengths_);
  }

 private:
  // Clipped lengths of an axis for all combinations of its blocks.
  struct Table {
    std::vector<std::pair<size_t, int64_t>> terms;  // dimension, stride in `lengths`
    std::vector<int64_t> lengths;
  };

  void AddTable(const ir::Nest& nest, const Mapping& mapping, const ir::Axis& axis, int rolling) {
    Table table;
    int64_t size = 1;
    for (const ir::Term& term : axis.terms) {
      table.terms.emplace_back(At(term.dimension), size);
      size *= BlockCount(nest, mapping, term.dimension);
    }
    std::vector<int64_t> index(nest.dimensions.size(), 0);
    for (int64_t i = 0; i < size; ++i) {
      for (const auto& [dim, stride] : table.terms) {
        index[dim] = i / stride % BlockCount(nest, mapping, static_cast<int>(dim));
      }
      table.lengths.push_back(RolledInterval(nest, axis, mapping, index, rolling).length());
    }
    tables_.push_back(std::move(table));
  }

  Transfer transfer_;
  Footprint footprint_;
  int64_t element_bytes_ = 1;
  size_t memory_ = 0, source_ = 0;  // source: of a move, or where the indices lie
  uint32_t gathered_ = 0;           // axes that are gathered
  int64_t index_bytes_ = 0;         // of one index; 0: nothing is gathered
  machine::Rational link_rate_;
  std::vector<Table> tables_;
  std::vector<int64_t> lengths_;
};

// Cycles on the bus in one step: loads and stores, overlapping (D) and not (S); cycles of moves.
struct StepTransfers {
  int64_t load_d = 0, load_s = 0, store_d = 0, store_s = 0;
  int64_t move = 0;
};

// Walks the loops of a nest in order.
class LoopWalk {
 public:
  LoopWalk(const ir::Nest& nest, const Mapping& mapping) : nest_(nest), mapping_(mapping) {
    index.resize(nest.dimensions.size(), 0);
    lengths.resize(nest.dimensions.size());
    const uint32_t cut = CutMask(nest, mapping);
    const uint32_t all = (uint32_t{1} << nest.dimensions.size()) - 1;
    first = all;
    last = all & ~cut;
    for (size_t d = 0; d < lengths.size(); ++d) {
      lengths[d] = Blocks(mapping).Length(nest, static_cast<int>(d), 0);
    }
  }

  // To the next step; false after the last one.
  bool Next() {
    for (size_t k = mapping_.order.size(); k-- > 0;) {
      const int d = mapping_.order[k];
      const bool wraps = index[At(d)] + 1 == BlockCount(nest_, mapping_, d);
      Set(d, wraps ? 0 : index[At(d)] + 1);
      if (!wraps) return true;
    }
    return false;
  }

  std::vector<int64_t> index, lengths;
  uint32_t first = 0, last = 0;

 private:
  void Set(int d, int64_t value) {
    const size_t i = At(d);
    const uint32_t bit = uint32_t{1} << d;
    const bool at_end = value + 1 == BlockCount(nest_, mapping_, d);
    index[i] = value;
    lengths[i] = Blocks(mapping_).Length(nest_, d, value);
    first = value == 0 ? first | bit : first & ~bit;
    last = at_end ? last | bit : last & ~bit;
  }

  const ir::Nest& nest_;
  const Mapping& mapping_;
};

StepTransfers TransfersInStep(const LoopWalk& walk, const machine::Target& target,
                              std::vector<TransferSteps>* transfers) {
  struct Open {  // a transfer of several descriptors
    int64_t bus_bytes = 0, descriptors = 0;
    std::array<int64_t, machine::kMaxMemories> bytes{};  // by memory
  };
  Open open[2][2];  // [is_store][overlaps]
  int64_t move = 0;
  for (TransferSteps& t : *transfers) {
    if (!t.Happens(walk.first, walk.last)) continue;
    if (t.transfer().is_move) {
      move += t.MoveCycles(walk.index, target);
      continue;
    }
    const int64_t bus_bytes = t.BusBytes(walk.index);
    if (bus_bytes == 0) continue;
    Open& transfer = open[t.transfer().is_store][t.transfer().overlaps];
    transfer.bus_bytes += bus_bytes;
    transfer.bytes[t.memory()] += t.Bytes();
    transfer.bytes[t.source()] += t.IndexBytes();
    ++transfer.descriptors;
  }
  const auto cycles = [&](const Open& transfer) {
    return machine::BoundByMemories(
        target, std::span(transfer.bytes).first(target.memories.size()),
        machine::TransferCycles(target, transfer.descriptors, transfer.bus_bytes));
  };
  return {.load_d = cycles(open[0][1]),
          .load_s = cycles(open[0][0]),
          .store_d = cycles(open[1][1]),
          .store_s = cycles(open[1][0]),
          .move = move};
}

// The state of the recurrence (docs/MACHINE.md, "Steps"): E[i-1], E[i-2], when the bus is free, and
// what steps i-1 and i-2 still have to store.
struct Recurrence {
  int64_t latency = 0;
  int64_t bus = 0;
  int64_t moves = 0;  // when the move engine is free
  int64_t end1 = 0, end2 = 0;
  int64_t store_s1 = 0, store_d1 = 0, store_d2 = 0;

  void Step(const StepTransfers& t, int64_t compute_cycles) {
    int64_t ready = end1;
    if (store_d2 > 0) ready = std::max(ready, Serve(end2, store_d2));
    if (t.load_d > 0) ready = std::max(ready, Serve(end2, t.load_d) + latency);
    if (store_s1 > 0) ready = std::max(ready, Serve(end1, store_s1));
    if (t.load_s > 0) ready = std::max(ready, Serve(end1, t.load_s) + latency);
    if (t.move > 0) {
      moves = std::max(moves, end2) + t.move;
      ready = std::max(ready, moves);
    }
    end2 = end1;
    end1 = ready + compute_cycles;
    store_d2 = store_d1;
    store_d1 = t.store_d;
    store_s1 = t.store_s;
  }

  int64_t Retire() {
    if (store_d2 > 0) Serve(end2, store_d2);
    if (store_s1 > 0) Serve(end1, store_s1);
    if (store_d1 > 0) Serve(end1, store_d1);
    return std::max(bus, end1);
  }

 private:
  int64_t Serve(int64_t not_before, int64_t cycles) {
    bus = std::max(bus, not_before) + cycles;
    return bus;
  }
};

}  // namespace

ElementType AccumulatorType(const ir::Nest& nest, const machine::Target& target) {
  const auto it = target.array.accumulator.find(nest.operands[ir::Nest::kInput].ReadType());
  DLA_CHECK(it != target.array.accumulator.end(), "no accumulator for this type");
  return it->second;
}

int64_t TileBytes(const ir::Nest& nest, const Mapping& mapping, const machine::Target& target,
                  int operand) {
  int64_t elements = 1;
  for (const ir::Axis& axis : OperandOf(nest, operand).axes) {
    elements *= LengthsOf(nest, axis, mapping, -1).longest;
  }
  return TypeBytes(TypeOf(nest, target, operand), elements);
}

int64_t BufferBytes(const ir::Nest& nest, const Mapping& mapping, const machine::Target& target,
                    int operand) {
  const OperandPlace& place = PlaceOf(mapping, operand);
  const bool shared = operand == nest.output() &&
                      (DrainsInPlace(nest, mapping) || nest.anchor == ir::Anchor::kMove);
  if (place.resident || shared) return 0;
  if (operand == kAccumulator && nest.anchor != ir::Anchor::kContraction) return 0;
  const int64_t align = target.memories[At(place.memory)].align_bytes;
  return RoundUp(TileBytes(nest, mapping, target, operand), align) *
         RingSlots(nest, mapping, operand);
}

machine::Counters PredictCounts(const ir::Nest& nest, const Mapping& mapping,
                                const machine::Target& target) {
  machine::Counters counters;
  counters.memory.resize(target.memories.size());
  for (const Transfer& transfer : TransfersOf(nest, mapping)) {
    CountTransfer(nest, mapping, target, transfer, &counters);
  }
  const StepWork work(nest, mapping, target);
  ForEachStepClass(nest, mapping, [&](const StepClass& step) { work.Count(step, &counters); });
  return counters;
}

int64_t PredictCycles(const ir::Nest& nest, const Mapping& mapping, const machine::Target& target) {
  std::vector<TransferSteps> transfers;
  for (const Transfer& transfer : TransfersOf(nest, mapping)) {
    transfers.emplace_back(nest, mapping, target, transfer);
  }
  const StepWork work(nest, mapping, target);
  const Recurrence start = {.latency = target.dram.latency_cycles};
  Recurrence recurrence = start;
  LoopWalk walk(nest, mapping);
  int64_t stripe = 0;
  int64_t cycles = 0;  // of the stripes before: a barrier ends each
  do {
    if (mapping.stripe.dimension >= 0 && walk.index[At(mapping.stripe.dimension)] != stripe) {
      stripe = walk.index[At(mapping.stripe.dimension)];
      cycles += recurrence.Retire();
      recurrence = start;
    }
    const StepTransfers step = TransfersInStep(walk, target, &transfers);
    recurrence.Step(step, work.Cycles(walk.lengths, walk.first, walk.last));
  } while (walk.Next());
  return cycles + recurrence.Retire();
}

machine::Counters Predict(const ir::Nest& nest, const Mapping& mapping,
                          const machine::Target& target) {
  machine::Counters counters = PredictCounts(nest, mapping, target);
  counters.cycles = PredictCycles(nest, mapping, target);
  return counters;
}

int64_t ComputeCycles(const ir::Nest& nest, const Mapping& mapping, const machine::Target& target) {
  const StepWork work(nest, mapping, target);
  int64_t cycles = 0;
  ForEachStepClass(nest, mapping, [&](const StepClass& step) {
    cycles += step.count * work.Cycles(step.lengths, step.first, step.last);
  });
  return cycles;
}

int64_t CompulsoryBytes(const ir::Nest& nest, const Mapping& mapping) {
  int64_t bytes = 0;
  for (int o = 0; o <= nest.output(); ++o) {
    if (StaysOnChip(mapping.operands[At(o)]) || nest.operands[At(o)].is_local) continue;
    int64_t elements = 1;
    for (const ir::Axis& axis : nest.operands[At(o)].axes) {
      // With blocks of 1 every combination is one index; the touched ones are counted once.
      std::vector<bool> touched(static_cast<size_t>(axis.bound), false);
      const std::vector<int64_t> ones(nest.dimensions.size(), 1);
      std::vector<int64_t> index(nest.dimensions.size(), 0);
      size_t t = 0;
      do {
        const Interval interval = AxisInterval(nest, axis, ones, index);
        if (interval.length() > 0) touched[static_cast<size_t>(interval.begin)] = true;
        for (t = 0; t < axis.terms.size(); ++t) {
          const size_t d = At(axis.terms[t].dimension);
          if (++index[d] < nest.dimensions[d].extent) break;
          index[d] = 0;
        }
      } while (t < axis.terms.size());
      elements *= std::count(touched.begin(), touched.end(), true);
    }
    bytes += TypeBytes(nest.operands[At(o)].type, elements);
  }
  return bytes;
}

int64_t StepCount(const ir::Nest& nest, const Mapping& mapping) {
  int64_t steps = 1;
  for (const int d : mapping.order) steps *= BlockCount(nest, mapping, d);
  return steps;
}

double EnergyPj(const machine::Counters& counters, const machine::Target& target,
                ElementType mac_type) {
  double energy = target.dram.energy_pj_per_byte * static_cast<double>(counters.dram_bus_bytes());
  for (size_t m = 0; m < counters.memory.size(); ++m) {
    energy += target.memories[m].energy_pj_per_byte *
              static_cast<double>(counters.memory[m].read_bytes + counters.memory[m].write_bytes);
  }
  const auto mac = target.array.energy_pj_per_mac.find(mac_type);
  if (mac != target.array.energy_pj_per_mac.end()) {
    energy += mac->second * static_cast<double>(counters.macs_issued);
  }
  return energy + target.vector.energy_pj_per_op * static_cast<double>(counters.vector_ops);
}

}  // namespace dla::scheduler
