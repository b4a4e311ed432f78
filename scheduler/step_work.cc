#include "scheduler/step_work.h"

#include <algorithm>

#include "scheduler/operand_view.h"
#include "support/checked.h"
#include "support/status.h"

namespace dla::scheduler {
namespace {

// Visits the kinds of blocks of dimension d: length, nominal length, at the first and last block?,
// how many blocks.
template <typename F>
void ForEachBlockClass(const ir::Nest& nest, const Mapping& mapping, int d, F visit) {
  const Blocks all(mapping);
  const int64_t blocks = all.Count(nest, d);
  const int64_t repeated = nest.dimensions[At(d)].repeated;
  const auto single = [&](int64_t index) {
    const int64_t length = all.Length(nest, d, index);
    const int64_t skipped = std::clamp<int64_t>(repeated - all.Start(d, index), 0, length);
    visit(length, length - skipped, index == 0, index == blocks - 1, 1);
  };
  single(0);
  if (blocks > 2) {  // those in between are repeated as a whole, in part (one of them), or not
    const int64_t length = mapping.block[At(d)], count = blocks - 2;
    const int64_t skipped = std::clamp<int64_t>(repeated - all.Start(d, 1), 0, length * count);
    const int64_t whole = skipped / length, part = skipped % length;
    if (whole > 0) visit(length, 0, false, false, whole);
    if (part > 0) visit(length, length - part, false, false, 1);
    const int64_t rest = count - whole - (part > 0 ? 1 : 0);
    if (rest > 0) visit(length, length, false, false, rest);
  }
  if (blocks > 1) single(blocks - 1);
}

void ForEachStepClass(const ir::Nest& nest, const Mapping& mapping, size_t d, StepClass* step,
                      const std::function<void(const StepClass&)>& visit) {
  if (d == nest.dimensions.size()) {
    visit(*step);
    return;
  }
  const uint32_t bit = uint32_t{1} << d, at_first = step->first, at_last = step->last;
  const int64_t before = step->count;
  ForEachBlockClass(nest, mapping, static_cast<int>(d),
                    [&](int64_t length, int64_t nominal, bool first, bool last, int64_t count) {
                      step->lengths[d] = length;
                      step->nominal[d] = nominal;
                      step->first = first ? at_first | bit : at_first;
                      step->last = last ? at_last | bit : at_last;
                      step->count = before * count;
                      ForEachStepClass(nest, mapping, d + 1, step, visit);
                    });
  step->first = at_first;
  step->last = at_last;
  step->count = before;
}

int64_t MacsOf(const machine::ArrayExtents& e) {
  return e.groups * e.pixels * e.channels * e.depth;
}

}  // namespace

void ForEachStepClass(const ir::Nest& nest, const Mapping& mapping,
                      const std::function<void(const StepClass&)>& visit) {
  StepClass step;
  step.lengths.resize(nest.dimensions.size(), 1);
  step.nominal = step.lengths;
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
  if (limited_) {
    step.lengths.assign(lengths.begin(), lengths.end());
    step.nominal = step.lengths;  // takes the time of any other
  }
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
  counters->macs_array += step.count * MacsOf(ExtentsOf(nest_, step.nominal));
  counters->macs_issued += step.count * MacsOf(e);
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
  const int64_t nominal = Points(work.shape.full_dims, step.nominal);
  counters->macs_vector += step.count * machine::VectorMacs(work.program, nominal);
  counters->macs_issued += step.count * machine::VectorMacs(work.program, full);
}

}  // namespace dla::scheduler
