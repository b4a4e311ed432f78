#include "scheduler/predict.h"

#include <algorithm>
#include <array>

#include "ir/packed_groups.h"
#include "scheduler/axis_lengths.h"
#include "scheduler/cycle_model.h"
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

void CountLoad(const ir::Nest& nest, const Mapping& mapping, int operand, int64_t bytes,
               int64_t bus_bytes, machine::Counters* counters) {
  machine::Counters::Traffic& traffic =
      counters->traffic[static_cast<size_t>(ClassOf(nest, operand))];
  machine::Counters::Access& memory = counters->memory[At(PlaceOf(mapping, operand).memory)];
  traffic.load_bytes += bytes;
  traffic.load_bus_bytes += bus_bytes;
  memory.write_bytes += bytes;
  memory.load_bytes += bytes;
}

// Adds what one transfer moves in the whole group.
void CountTransfer(const ir::Nest& nest, const Mapping& mapping, const machine::Target& target,
                   const Transfer& transfer, machine::Counters* counters) {
  const int64_t fill_bytes = PlaceOf(mapping, transfer.operand).fill_bytes;
  if (fill_bytes > 0 && !transfer.is_store) {  // one run, once
    CountLoad(nest, mapping, transfer.operand, fill_bytes,
              RoundUp(fill_bytes, target.dram.burst_bytes), counters);
    ++counters->descriptors;
    return;
  }
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
    CountLoad(nest, mapping, transfer.operand, bytes, bus_bytes, counters);
    CountIndices(nest, mapping, transfer, axes, counters);
  }
}

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
  if (nest.anchor == ir::Anchor::kContraction) {
    counters.macs_array /= ir::ZeroFactor(nest.operands[ir::Nest::kWeight], nest);
  }
  return counters;
}

int64_t PredictCycles(const ir::Nest& nest, const Mapping& mapping, const machine::Target& target) {
  return CycleModel(nest, target).Cycles(mapping);
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
    for (const ir::Axis& axis : nest.operands[At(o)].axes) elements *= TouchedEntries(nest, axis);
    elements /= ir::ZeroFactor(nest.operands[At(o)], nest);
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
