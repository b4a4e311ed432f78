#include "scheduler/work.h"

#include "scheduler/transfers.h"

namespace dla::scheduler {
namespace {

bool IsStageStep(const MicroInstruction& op, size_t argument, const machine::OutputStage& stage) {
  return stage.Does(op.op) && op.argument[0] == argument;
}

// Marks the longest tail of operations that the output stage can do one after the other.
void MarkStageTail(MicroProgram* program, const machine::OutputStage& stage) {
  // A value of the tail may have no use but the operation behind it.
  std::vector<int> uses(program->ops.size(), 0);
  for (const MicroInstruction& op : program->ops) {
    for (int a = 0; a < Info(op.op).arguments; ++a) ++uses[op.argument[static_cast<size_t>(a)]];
  }
  for (size_t i = program->ops.size(); i-- > 1;) {
    MicroInstruction& op = program->ops[i];
    if (!IsStageStep(op, i - 1, stage)) return;
    if (i + 1 < program->ops.size() && uses[i] != 1) return;
    op.stage = true;
  }
}

// Operations [0, end) of the program can be the drain: nothing behind uses a value before end - 1.
bool CanCutAt(const MicroProgram& program, size_t end) {
  for (size_t i = end; i < program.ops.size(); ++i) {
    for (int a = 0; a < Info(program.ops[i].op).arguments; ++a) {
      if (program.ops[i].argument[static_cast<size_t>(a)] + 1U < end) return false;
    }
  }
  return true;
}

VectorShape ShapeOf(const ir::Nest& nest, const MicroProgram& program, int output) {
  VectorShape shape;
  const bool behind_array = nest.anchor == ir::Anchor::kContraction;
  uint32_t dims = DependenceMask(nest, output);
  for (const MicroInstruction& op : program.ops) {
    if (op.op == MicroOp::kLoad) dims |= DependenceMask(nest, op.operand);
    if (op.op == MicroOp::kIndex) dims |= uint32_t{1} << op.operand;
  }
  uint32_t reduced = nest.reduce_mask;
  if (reduced == 0) reduced = behind_array ? 0 : dims & ReductionMask(nest);
  shape.full_dims = dims;
  shape.reduced_dims = dims & ~reduced;
  std::vector<bool> operand_is_full;
  for (int o = 0; o <= nest.output(); ++o) {
    operand_is_full.push_back((DependenceMask(nest, o) & reduced) != 0);
  }
  shape.full = FullValues(program, operand_is_full, reduced);
  return shape;
}

// The vector instruction of a phase of a cut program.
VectorWork WorkOf(const ir::Nest& nest, const ir::Phase& phase) {
  VectorWork work = {.program = phase.program, .output = phase.output};
  const uint32_t pass = uint32_t{1} << nest.pass_dimension;
  const int64_t passes = nest.dimensions[static_cast<size_t>(nest.pass_dimension)].extent;
  if (phase.pass == 0) {
    work.first |= pass;
  } else if (phase.pass + 1 == passes) {
    work.last |= pass;
  } else {
    work.not_first = pass;
    work.not_last = pass;
  }
  if (phase.kind == ir::Phase::Kind::kBegin) work.first |= nest.reduce_mask;
  const bool reduced_output = (DependenceMask(nest, phase.output) & nest.reduce_mask) == 0;
  if (phase.kind == ir::Phase::Kind::kFinish && reduced_output) work.last |= nest.reduce_mask;
  return work;
}

std::vector<VectorWork> VectorWorks(const ir::Nest& nest, const machine::OutputStage& stage) {
  std::vector<VectorWork> works;
  for (const ir::Phase& phase : nest.phases) works.push_back(WorkOf(nest, phase));
  if (nest.phases.empty()) works.push_back({.program = nest.program, .output = nest.output()});
  for (VectorWork& work : works) {
    if (work.output == nest.output()) MarkStageTail(&work.program, stage);
    work.shape = ShapeOf(nest, work.program, work.output);
  }
  return works;
}

}  // namespace

bool VectorWork::RunsIn(uint32_t at_first, uint32_t at_last) const {
  return (first & ~at_first) == 0 && (last & ~at_last) == 0 &&
         (not_first == 0 || (not_first & ~at_first) != 0) &&
         (not_last == 0 || (not_last & ~at_last) != 0);
}

EngineWork SplitWork(const ir::Nest& nest, const machine::OutputStage& stage) {
  EngineWork work;
  if (nest.anchor == ir::Anchor::kMove) return work;
  if (nest.anchor == ir::Anchor::kVector) {
    work.vector = VectorWorks(nest, stage);
    return work;
  }
  const std::vector<MicroInstruction>& ops = nest.program.ops;
  size_t drained = 1;  // the accumulator
  for (size_t end = 2; end <= ops.size() && IsStageStep(ops[end - 1], end - 2, stage); ++end) {
    if (CanCutAt(nest.program, end)) drained = end;
  }
  for (size_t i = 0; i < drained; ++i) {
    work.drain.ops.push_back(ops[i]);
    work.drain.ops.back().stage = i > 0;
  }
  if (drained == ops.size()) return work;
  const uint8_t shift = static_cast<uint8_t>(drained - 1);
  VectorWork behind = {.output = nest.output(), .last = ReductionMask(nest)};
  behind.program.ops.push_back({.op = MicroOp::kLoad,
                                .type = ValueType(nest.operands.back().type),
                                .operand = static_cast<uint8_t>(nest.output())});
  for (size_t i = drained; i < ops.size(); ++i) {
    MicroInstruction op = ops[i];
    for (int a = 0; a < Info(op.op).arguments; ++a) {
      uint8_t& argument = op.argument[static_cast<size_t>(a)];
      argument = static_cast<uint8_t>(argument - shift);
    }
    behind.program.ops.push_back(op);
  }
  MarkStageTail(&behind.program, stage);
  behind.shape = ShapeOf(nest, behind.program, behind.output);
  work.vector.push_back(std::move(behind));
  return work;
}

machine::ArrayExtents ExtentsOf(const ir::Nest& nest, std::span<const int64_t> lengths) {
  const uint32_t input = DependenceMask(nest, ir::Nest::kInput);
  const uint32_t weight = DependenceMask(nest, ir::Nest::kWeight);
  const uint32_t output = DependenceMask(nest, nest.output());
  return {.groups = Points(input & weight & output, lengths),
          .pixels = Points(input & output & ~weight, lengths),
          .channels = Points(weight & output & ~input, lengths),
          .depth = Points(input & weight & ~output, lengths)};
}

int64_t Points(uint32_t dims, std::span<const int64_t> lengths) {
  int64_t points = 1;
  for (size_t d = 0; d < lengths.size(); ++d) {
    if (dims & (uint32_t{1} << d)) points *= lengths[d];
  }
  return points;
}

}  // namespace dla::scheduler
