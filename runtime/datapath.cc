#include "runtime/datapath.h"

#include "machine/timing.h"
#include "runtime/access_tally.h"
#include "runtime/strided_copy.h"

namespace dla::runtime {
namespace {

using machine::Counters;
using machine::Group;
using machine::Instruction;
using machine::kNone;
using machine::Opcode;
using machine::OperandDesc;

int64_t ProductOf(const std::vector<uint8_t>& dims, const Step& step) {
  int64_t product = 1;
  for (const uint8_t d : dims) product *= step.length[d];
  return product;
}

std::vector<int64_t> LengthsOf(const std::vector<uint8_t>& dims, const Step& step) {
  std::vector<int64_t> lengths;
  for (const uint8_t d : dims) lengths.push_back(step.length[d]);
  return lengths;
}

bool All(uint16_t mask, uint16_t at) { return (mask & ~unsigned{at}) == 0; }

machine::ArrayExtents ExtentsOf(const ArrayPlan& plan, const Step& step) {
  return {.groups = ProductOf(plan.groups, step),
          .pixels = ProductOf(plan.pixels, step),
          .channels = ProductOf(plan.channels, step),
          .depth = ProductOf(plan.depth, step)};
}

struct VectorPoints {
  int64_t full = 1, reduced = 1;
};

VectorPoints PointsOf(const VectorPlan& plan, const Step& step) {
  VectorPoints points;
  points.reduced = ProductOf(plan.kept, step);
  points.full = points.reduced * ProductOf(plan.reduced, step);
  return points;
}

// Reads of all loads and the write of the result.
void CountProgram(const Group& group, const VectorPlan& plan, const MicroProgram& program,
                  uint8_t output, const VectorPoints& points, AccessTally* tally) {
  const auto bytes = [&](const OperandDesc& operand, bool full) {
    return (full ? points.full : points.reduced) * ElementBytes(operand);
  };
  for (size_t i = 0; i < program.ops.size(); ++i) {
    if (program.ops[i].op != MicroOp::kLoad) continue;
    const OperandDesc& operand = group.operands[program.ops[i].operand];
    tally->Read(operand.memory, bytes(operand, plan.full[i]));
  }
  const OperandDesc& result = group.operands[output];
  tally->Write(result.memory, bytes(result, plan.full.back()));
}

// Where a tile is written: its first element, and the strides of its axes in elements. A tile that
// goes round the end of a ring is written dense beside it first; `pieces` then lie in the ring.
struct Target {
  uint8_t* data;
  AxisArray strides;
  std::vector<Tile> pieces;
};

Target TargetOf(const OperandDesc& operand, const Tile& tile, Storage* storage,
                Reused<uint8_t>* beside) {
  DLA_CHECK(!tile.clipped(), "tile of '", operand.value, "' is written and leaves its bounds");
  Target target{};
  std::vector<Tile> pieces = PiecesOf(operand, tile);
  if (pieces.size() == 1) {
    target.data = storage->Scratchpad(operand.memory) + tile.address +
                  LocalOffset(operand, tile) * ElementBytes(operand);
    for (size_t a = 0; a < operand.axes.size(); ++a) {
      target.strides[a] = operand.axes[a].local_stride;
    }
    return target;
  }
  target.pieces = std::move(pieces);
  int64_t elements = 1;
  for (size_t a = operand.axes.size(); a-- > 0;) {
    target.strides[a] = elements;
    elements *= tile.length[a];
  }
  target.data = beside->Get(elements * ElementBytes(operand));
  return target;
}

// What was written beside the ring goes into it.
void WritePieces(const OperandDesc& operand, const Tile& tile, const Target& target,
                 Storage* storage) {
  const int64_t size = ElementBytes(operand);
  for (const Tile& piece : target.pieces) {
    CopyBox box;
    int64_t offset = 0;
    for (size_t a = 0; a < operand.axes.size(); ++a) {
      box.Add(piece.length[a], operand.axes[a].local_stride, target.strides[a]);
      offset += (piece.begin[a] - tile.begin[a]) * target.strides[a];
    }
    box.Run(
        storage->Scratchpad(operand.memory) + piece.address + LocalOffset(operand, piece) * size,
        target.data + offset * size, size);
  }
}

// MACs a cycle of the whole array.
double PeakRate(const machine::Array& array, machine::Rational rate) {
  return static_cast<double>(array.rows * array.cols) * static_cast<double>(rate.numerator) /
         static_cast<double>(rate.denominator);
}

ContractionDiagonal DiagonalOf(const machine::DiagonalDesc& diagonal, const Step& step) {
  return {.first_channel = step.start[diagonal.channel_dim],
          .first_depth = step.start[diagonal.depth_dim],
          .channels = diagonal.channels,
          .depths = diagonal.depths};
}

// The step without the indices that another group computes, too.
Step NominalStep(const Group& group, const Step& step) {
  Step nominal = step;
  for (size_t d = 0; d < group.dims.size(); ++d) {
    const int64_t repeated = group.dims[d].RepeatedIn(step.start[d], step.length[d]);
    nominal.start[d] += repeated;
    nominal.length[d] -= repeated;
  }
  return nominal;
}

int64_t MacsOf(const machine::ArrayExtents& e) {
  return e.groups * e.pixels * e.channels * e.depth;
}

// The multiplications of a step that are not repeated, with elements that exist.
int64_t NominalMacs(const Group& group, const ArrayPlan& array, const OperandDesc& weight,
                    const Step& step) {
  const Step nominal = NominalStep(group, step);
  const int64_t macs = MacsOf(ExtentsOf(array, nominal));
  if (macs == 0 || !weight.diagonal) return macs;
  const int64_t channels = nominal.length[weight.diagonal->channel_dim];
  const int64_t depths = nominal.length[weight.diagonal->depth_dim];
  return macs / (channels * depths) *
         DiagonalPairs(DiagonalOf(*weight.diagonal, nominal), channels, depths);
}

bool OnlyCopies(const MicroProgram& program) { return program.ops.size() == 1; }

}  // namespace

Result<Work> Datapath::Execute(const Group& group, const GroupPlan& plan,
                               const Instruction& instruction, const Step& step,
                               Counters* counters) {
  overflows_ = 0;
  read_overflows_ = 0;
  DLA_ASSIGN_OR_RETURN(Work work, Run(group, plan, instruction, step, counters));
  work.overflows = overflows_;
  work.read_overflows = read_overflows_;
  return work;
}

Result<Work> Datapath::Run(const Group& group, const GroupPlan& plan,
                           const Instruction& instruction, const Step& step, Counters* counters) {
  switch (instruction.op) {
    case Opcode::kArray:
      return Array(group, plan, instruction, step, counters);
    case Opcode::kVector:
      return Vector(group, plan, instruction, step, counters);
    default:
      return Move(group, instruction, step, counters);
  }
}

Result<Work> Datapath::Array(const Group& group, const GroupPlan& plan,
                             const Instruction& instruction, const Step& step, Counters* counters) {
  const ArrayPlan& array = plan.arrays.at(&instruction);
  const machine::Target& target = program_.target;
  const machine::ArrayExtents extents = ExtentsOf(array, step);
  const bool initialise = All(array.reduction_mask, step.at_first);
  const bool drain = All(array.reduction_mask, step.at_last);
  const OperandDesc& input = group.operands[instruction.operand];
  const OperandDesc& weight = group.operands[instruction.operand2];
  const OperandDesc& accumulator = group.operands[instruction.operand3];

  AccessTally tally(target, counters);
  const machine::ArrayAccesses accesses =
      machine::CountArrayAccesses(target.array, extents, !initialise);
  tally.Read(input.memory, accesses.input_reads * ElementBytes(input));
  tally.Read(weight.memory, accesses.weight_reads * ElementBytes(weight));
  tally.Read(accumulator.memory, accesses.partial_reads * ElementBytes(accumulator));
  tally.Write(accumulator.memory, accesses.partial_writes * ElementBytes(accumulator));
  if (initialise && instruction.operand4 != kNone) {
    const OperandDesc& bias = group.operands[instruction.operand4];
    tally.Read(bias.memory, TileOf(group, bias, step).elements * ElementBytes(bias));
  }
  const int64_t points = extents.groups * extents.pixels * extents.channels;
  const MicroProgram& program = group.programs[instruction.program];
  const VectorPlan& drained = plan.vectors.at(&instruction);
  if (drain && !array.drain_in_place) {
    tally.Read(accumulator.memory, points * ElementBytes(accumulator));
    CountProgram(group, drained, program, instruction.operand5, {points, points}, &tally);
  }
  const int64_t macs = MacsOf(extents);
  const int64_t nominal = NominalMacs(group, array, weight, step);
  counters->macs_array += nominal;
  counters->macs_issued += macs;
  if (storage_ != nullptr) {
    DLA_RETURN_IF_ERROR(Contract(group, array, instruction, step, initialise));
    if (drain && !(array.drain_in_place && OnlyCopies(program))) {
      RunProgram(group, drained, program, instruction.operand3, instruction.operand5, step);
    }
  }
  return Work{
      .cycles = tally.Bound(machine::ArrayCycles(target.array, array.rate, extents)),
      .mac_energy_pj = static_cast<double>(macs) * array.energy_pj_per_mac,
      .peak_array_cycles = static_cast<double>(nominal) / PeakRate(target.array, array.rate)};
}

Result<Work> Datapath::Vector(const Group& group, const GroupPlan& plan,
                              const Instruction& instruction, const Step& step,
                              Counters* counters) {
  const VectorPlan& vector = plan.vectors.at(&instruction);
  const MicroProgram& program = group.programs[instruction.program];
  const VectorPoints points = PointsOf(vector, step);
  AccessTally tally(program_.target, counters);
  CountProgram(group, vector, program, instruction.operand, points, &tally);
  counters->vector_ops += machine::VectorOps(program, vector.full, points.full, points.reduced);
  const int64_t macs = machine::VectorMacs(program, points.full);
  const VectorPoints nominal = PointsOf(vector, NominalStep(group, step));
  counters->macs_vector += machine::VectorMacs(program, nominal.full);
  counters->macs_issued += macs;
  if (storage_ != nullptr) {
    RunProgram(group, vector, program, kNone, instruction.operand, step);
  }
  return Work{.cycles = tally.Bound(machine::VectorCycles(
                  program_.target.vector, program, vector.full, points.full, points.reduced)),
              .mac_energy_pj = static_cast<double>(macs) * vector.energy_pj_per_mac};
}

Result<Work> Datapath::Move(const Group& group, const Instruction& instruction, const Step& step,
                            Counters* counters) {
  const OperandDesc& from = group.operands[instruction.operand];
  const OperandDesc& to = group.operands[instruction.operand2];
  const machine::Link* link = program_.target.FindLink(from.memory, to.memory);
  if (link == nullptr) {
    return Malformed("a move from '", program_.target.memories[from.memory].name, "' to '",
                     program_.target.memories[to.memory].name, "', between which is no link");
  }
  const Tile to_tile = TileOf(group, to, step);
  const int64_t bytes = to_tile.elements * ElementBytes(to);
  AccessTally tally(program_.target, counters);
  tally.Read(from.memory, bytes);
  tally.Write(to.memory, bytes);
  counters->move_bytes += bytes;
  if (storage_ != nullptr && bytes > 0) {
    DLA_RETURN_IF_ERROR(storage_->Move(from, TileOf(group, from, step), to, to_tile));
  }
  return Work{.cycles = tally.Bound(machine::CyclesAtRate(bytes, link->bytes_per_cycle))};
}

View Datapath::Stage(const Group& group, uint8_t operand, const Step& step,
                     Reused<uint8_t>* buffer) {
  const OperandDesc& desc = group.operands[operand];
  return StageTile(desc, TileOf(group, desc, step), storage_->Scratchpad(desc.memory), buffer);
}

View Datapath::StageRead(const Group& group, uint8_t operand, const Step& step, size_t buffer) {
  const OperandDesc& desc = group.operands[operand];
  const bool plain = desc.type == ElementType::kF32 && desc.ReadType() == ElementType::kF32;
  const Tile tile = TileOf(group, desc, step);
  const uint8_t* scratchpad = storage_->Scratchpad(desc.memory);
  if (desc.local_layout == machine::LocalLayout::kPanels) {
    if (plain) return {.data = scratchpad + tile.address};
    float* values = rounded_[buffer].Get(tile.elements);
    read_overflows_ += RoundToRead(desc, scratchpad + tile.address, tile.elements, values);
    return {.data = reinterpret_cast<const uint8_t*>(values)};
  }
  if (plain) return StageTile(desc, tile, scratchpad, &staging_[buffer]);
  return StageRounded(desc, tile, scratchpad, &staging_[buffer], &rounded_[buffer],
                      &read_overflows_);
}

void Datapath::InitialiseAccumulators(const Group& group, const Instruction& instruction,
                                      const Step& step) {
  // The accumulators become the bias, repeated where it does not depend on a dimension, or zero.
  MicroProgram program;
  MicroInstruction value;
  value.op = instruction.operand4 == kNone ? MicroOp::kConst : MicroOp::kLoad;
  value.type = ValueType(group.operands[instruction.operand3].type);
  value.operand = instruction.operand4;
  program.ops.push_back(value);
  VectorPlan plan;
  plan.full = {false};
  const OperandDesc& accumulator = group.operands[instruction.operand3];
  for (const machine::AxisDesc& axis : accumulator.axes) {
    for (const machine::TermDesc& term : axis.terms) plan.kept.push_back(term.dim);
  }
  RunProgram(group, plan, program, kNone, instruction.operand3, step);
}

Status Datapath::Contract(const Group& group, const ArrayPlan& plan, const Instruction& instruction,
                          const Step& step, bool initialise) {
  const OperandDesc& input = group.operands[instruction.operand];
  const OperandDesc& weight = group.operands[instruction.operand2];
  const OperandDesc& accumulator = group.operands[instruction.operand3];
  const auto reads_float = [](const OperandDesc& operand) {
    return ValueType(operand.type) == ElementType::kF32 && IsFloat(operand.ReadType());
  };
  if (!reads_float(input) || !reads_float(weight) || accumulator.type != ElementType::kF32) {
    return Unsupported("array instruction on ", TypeName(input.ReadType()), " x ",
                       TypeName(weight.ReadType()), " into ", TypeName(accumulator.type));
  }
  if (initialise) InitialiseAccumulators(group, instruction, step);
  const View in = StageRead(group, instruction.operand, step, 0);
  const View wt = StageRead(group, instruction.operand2, step, 1);
  const Target acc = TargetOf(accumulator, TileOf(group, accumulator, step), storage_, &beside_);
  Contraction c;
  if (weight.diagonal) c.diagonal = DiagonalOf(*weight.diagonal, step);
  const auto add = [&](const std::vector<uint8_t>& dims, std::vector<ContractionDim>* to) {
    for (const uint8_t d : dims) {
      const bool is_channel = weight.diagonal && d == weight.diagonal->channel_dim;
      const bool is_depth = weight.diagonal && d == weight.diagonal->depth_dim;
      if (is_channel) c.diagonal->channel_dim = to->size();
      if (is_depth) c.diagonal->depth_dim = to->size();
      if (step.length[d] == 1 && !is_channel && !is_depth) continue;
      to->push_back({.length = step.length[d],
                     .input_stride = StrideAlong(input, in.strides, d),
                     .weight_stride = StrideAlong(weight, wt.strides, d),
                     .output_stride = StrideAlong(accumulator, acc.strides, d)});
    }
  };
  add(plan.groups, &c.groups);
  add(plan.pixels, &c.pixels);
  add(plan.channels, &c.channels);
  add(plan.depth, &c.depth);
  c.input = in.data;
  c.weight = wt.data;
  c.accumulator = acc.data;
  c.weight_panels = weight.local_layout == machine::LocalLayout::kPanels;
  ContractF32(c, &contraction_workspace_);
  return Status();
}

void Datapath::RunProgram(const Group& group, const VectorPlan& plan, const MicroProgram& program,
                          uint8_t accumulator, uint8_t output, const Step& step) {
  VectorJob job;
  job.program = &program;
  job.kept = LengthsOf(plan.kept, step);
  job.reduced = LengthsOf(plan.reduced, step);
  job.full = plan.full;
  const auto strides = [&](const OperandDesc& operand, const AxisArray& along) {
    std::vector<int64_t> all;
    for (const uint8_t d : plan.kept) all.push_back(StrideAlong(operand, along, d));
    for (const uint8_t d : plan.reduced) all.push_back(StrideAlong(operand, along, d));
    return all;
  };
  const auto steps = [&](uint8_t dim) {
    std::vector<int64_t> all;
    for (const uint8_t d : plan.kept) all.push_back(d == dim ? 1 : 0);
    for (const uint8_t d : plan.reduced) all.push_back(d == dim ? 1 : 0);
    return all;
  };
  for (const MicroInstruction& op : program.ops) {
    VectorSource source;
    if (op.op == MicroOp::kIndex) {
      source = {.strides = steps(op.operand), .start = step.start[op.operand]};
    }
    if (op.op == MicroOp::kLoad || op.op == MicroOp::kAccumulator) {
      const uint8_t number = op.op == MicroOp::kLoad ? op.operand : accumulator;
      const OperandDesc& operand = group.operands[number];
      const View view = Stage(group, number, step, &staging_[number]);
      source = {.type = operand.type, .data = view.data, .strides = strides(operand, view.strides)};
    }
    job.sources.push_back(std::move(source));
  }
  const OperandDesc& result = group.operands[output];
  const Tile tile = TileOf(group, result, step);
  const Target target = TargetOf(result, tile, storage_, &beside_);
  job.type = result.type;
  job.output = target.data;
  job.output_strides = strides(result, target.strides);
  overflows_ += RunVectorProgram(job, &vector_workspace_);
  WritePieces(result, tile, target, storage_);
}

}  // namespace dla::runtime
