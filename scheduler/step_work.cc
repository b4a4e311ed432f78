#include "scheduler/step_work.h"

#include <algorithm>

#include "scheduler/operand_view.h"
#include "support/checked.h"
#include "support/status.h"

namespace dla::scheduler {
namespace {

void ForEachStepClass(const ir::Nest& nest, const Mapping& mapping, size_t d, StepClass* step,
                      const std::function<void(const StepClass&)>& visit) {
  if (d == nest.dimensions.size()) {
    visit(*step);
    return;
  }
  const Blocks all(mapping);
  const int dimension = static_cast<int>(d);
  const int64_t blocks = all.Count(nest, dimension);
  const StepClass before = *step;
  const auto descend = [&](int64_t length, bool first, bool last, int64_t count) {
    if (count == 0) return;
    *step = before;
    step->lengths[d] = length;
    if (first) step->first |= uint32_t{1} << d;
    if (last) step->last |= uint32_t{1} << d;
    step->count *= count;
    ForEachStepClass(nest, mapping, d + 1, step, visit);
  };
  descend(all.Length(nest, dimension, 0), true, blocks == 1, 1);
  descend(mapping.block[d], false, false, std::max<int64_t>(blocks - 2, 0));
  if (blocks > 1) descend(all.Length(nest, dimension, blocks - 1), false, true, 1);
  *step = before;
}

}  // namespace

void ForEachStepClass(const ir::Nest& nest, const Mapping& mapping,
                      const std::function<void(const StepClass&)>& visit) {
  StepClass step;
  step.lengths.resize(nest.dimensions.size(), 1);
  ForEachStepClass(nest, mapping, 0, &step, visit);
}

// The time of one instruction, whose accesses `count` counts.
template <typename F>
int64_t StepWork::Bounded(int64_t cycles, F count) const {
  if (!limited_) return cycles;
  machine::Counters counters;
  counters.memory.resize(target_.memories.size());
  count(&counters);
  std::vector<int64_t> bytes;
  for (const auto& access : counters.memory) {
    bytes.push_back(access.read_bytes + access.write_bytes);
  }
  return machine::BoundByMemories(target_, bytes, cycles);
}

StepWork::StepWork(const ir::Nest& nest, const Mapping& mapping, const machine::Target& target)
    : nest_(nest), mapping_(mapping), target_(target) {
  work_ = SplitWork(nest, target.output_stage);
  reductions_ = ReductionMask(nest);
  for (const machine::Memory& memory : target.memories) {
    limited_ = limited_ || memory.bytes_per_cycle.has_value();
  }
  if (nest.anchor == ir::Anchor::kContraction) {
    rate_ = target.array.rates.at(
        {nest.operands[ir::Nest::kInput].ReadType(), nest.operands[ir::Nest::kWeight].ReadType()});
  }
}

int64_t StepWork::Cycles(std::span<const int64_t> lengths, uint32_t first, uint32_t last) const {
  StepClass step = {.first = first, .last = last};
  if (limited_) step.lengths.assign(lengths.begin(), lengths.end());
  int64_t cycles = 0;
  if (nest_.anchor == ir::Anchor::kContraction) {
    const int64_t array = machine::ArrayCycles(target_.array, rate_, ExtentsOf(nest_, lengths));
    cycles += Bounded(array, [&](machine::Counters* c) { CountArray(step, c); });
  }
  for (const VectorWork& work : work_.vector) {
    if (!work.RunsIn(first, last)) continue;
    const int64_t vector = machine::VectorCycles(target_.vector, work.program, work.shape.full,
                                                 Points(work.shape.full_dims, lengths),
                                                 Points(work.shape.reduced_dims, lengths));
    cycles += Bounded(vector, [&](machine::Counters* c) { CountVector(step, work, c); });
  }
  return cycles;
}

void StepWork::Count(const StepClass& step, machine::Counters* counters) const {
  if (nest_.anchor == ir::Anchor::kContraction) CountArray(step, counters);
  for (const VectorWork& work : work_.vector) {
    if (work.RunsIn(step.first, step.last)) CountVector(step, work, counters);
  }
}

void StepWork::Read(int operand, int64_t elements, machine::Counters* counters) const {
  counters->memory[At(PlaceOf(mapping_, operand).memory)].read_bytes +=
      TypeBytes(TypeOf(nest_, target_, operand), elements);
}
void StepWork::Write(int operand, int64_t elements, machine::Counters* counters) const {
  counters->memory[At(PlaceOf(mapping_, operand).memory)].write_bytes +=
      TypeBytes(TypeOf(nest_, target_, operand), elements);
}

void StepWork::CountArray(const StepClass& step, machine::Counters* counters) const {
  const machine::ArrayExtents e = ExtentsOf(nest_, step.lengths);
  const bool starts = Holds(reductions_, step.first);
  const machine::ArrayAccesses a = machine::CountArrayAccesses(target_.array, e, !starts);
  Read(ir::Nest::kInput, step.count * a.input_reads, counters);
  Read(ir::Nest::kWeight, step.count * a.weight_reads, counters);
  Read(kAccumulator, step.count * a.partial_reads, counters);
  Write(kAccumulator, step.count * a.partial_writes, counters);
  if (starts && nest_.bias >= 0) {
    Read(nest_.bias, step.count * Points(DependenceMask(nest_, nest_.bias), step.lengths),
         counters);
  }
  const int64_t macs = e.groups * e.pixels * e.channels * e.depth * step.count;
  counters->macs_array += macs;
  counters->macs_issued += macs;
  const bool free_drain =
      !work_.vector.empty() || (DrainsInPlace(nest_, mapping_) &&
                                nest_.operands.back().type == AccumulatorType(nest_, target_));
  if (Holds(reductions_, step.last) && !free_drain) {
    const int64_t points = e.groups * e.pixels * e.channels * step.count;
    Read(kAccumulator, points, counters);
    Write(nest_.output(), points, counters);
  }
}

void StepWork::CountVector(const StepClass& step, const VectorWork& work,
                           machine::Counters* counters) const {
  const int64_t full = Points(work.shape.full_dims, step.lengths);
  const int64_t reduced = Points(work.shape.reduced_dims, step.lengths);
  for (size_t i = 0; i < work.program.ops.size(); ++i) {
    if (work.program.ops[i].op != MicroOp::kLoad) continue;
    Read(LoadedOperand(nest_, work.program.ops[i]),
         step.count * (work.shape.full[i] ? full : reduced), counters);
  }
  Write(work.output, step.count * (work.shape.full.back() ? full : reduced), counters);
  counters->vector_ops +=
      step.count * machine::VectorOps(work.program, work.shape.full, full, reduced);
  const int64_t macs = step.count * machine::VectorMacs(work.program, full);
  counters->macs_vector += macs;
  counters->macs_issued += macs;
}

}  // namespace dla::scheduler
