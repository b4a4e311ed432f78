// Micro-programs and instructions, one by one: form, operands, roles.
#include <algorithm>
#include <bit>
#include <cmath>

#include "machine/isa.h"
#include "machine/program_layout.h"
#include "machine/tile.h"
#include "machine/verifier.h"
#include "machine/verify_parts.h"

namespace dla::machine {
namespace {

// Everything that the checks of one instruction need.
struct Context {
  const Program& program;
  const Group& group;
  std::string where;  // group and instruction
  Faults* faults;

  const OperandDesc& Operand(uint8_t index) const { return group.operands[index]; }
  std::string Text(uint8_t index) const { return where + ": " + OperandText(group, index); }
};

std::string DimNames(const Group& group, unsigned mask) {
  std::string names;
  for (size_t d = 0; d < group.dims.size(); ++d) {
    if ((mask >> d & 1) != 0) names += (names.empty() ? "" : ", ") + group.dims[d].name;
  }
  return names;
}

// The dimensions of more than one index that an operand depends on.
unsigned LongDims(const Context& c, uint8_t index) {
  unsigned mask = DimsOf(c.Operand(index));
  for (size_t d = 0; d < c.group.dims.size(); ++d) {
    if (c.group.dims[d].extent == 1) mask &= ~(1u << d);
  }
  return mask;
}

// The dimension's bit in a mask, if it has more than one index.
unsigned LongBit(const Context& c, uint8_t dim) {
  return c.group.dims[dim].extent == 1 ? 0u : 1u << dim;
}

// Only the weights of an array instruction are block-diagonal, over its channels and its depth.
void CheckDiagonal(const Context& c, const Instruction& i) {
  const auto& diagonal = c.Operand(i.operand2).diagonal;
  if (!diagonal) return;
  const unsigned input = DimsOf(c.Operand(i.operand)), output = DimsOf(c.Operand(i.operand3));
  const unsigned channel = 1u << diagonal->channel_dim, depth = 1u << diagonal->depth_dim;
  if ((output & channel) == 0 || (input & channel) != 0 || (input & depth) == 0 ||
      (output & depth) != 0) {
    c.faults->Add(c.Text(i.operand2), "is block-diagonal over other dimensions than a channel and ",
                  "a depth of the array instruction");
  }
}

// What an engine writes must be inside the value in every step.
void CheckNeverClipped(const Context& c, uint8_t index) {
  for (const AxisDesc& axis : c.Operand(index).axes) {
    int64_t last = axis.offset;
    for (const TermDesc& term : axis.terms) {
      last += term.coefficient * (c.group.dims[term.dim].extent - 1);
    }
    if (axis.offset < 0 || last >= axis.bound) {
      c.faults->Add(c.Text(index), "is written, but its indices ", axis.offset, " to ", last,
                    " leave its bound ", axis.bound);
      return;
    }
  }
}

void CheckDense(const Context& c, uint8_t index) {
  if (c.Operand(index).local_layout != LocalLayout::kDense) {
    c.faults->Add(c.Text(index), "lies in panels, which only the array's weights may");
  }
}

void CheckTransfer(const Context& c, const Instruction& instruction) {
  const OperandDesc& operand = c.Operand(instruction.operand);
  if (operand.dram_layout == DramLayout::kNone) {
    c.faults->Add(c.Text(instruction.operand), "never leaves the chip");
    return;
  }
  if (instruction.op != Opcode::kStore) return;
  if (operand.gather) {
    c.faults->Add(c.Text(instruction.operand), "is gathered, and would be stored");
  }
  const Region& region = c.program.regions[operand.region];
  if (region.kind == RegionKind::kInput || region.kind == RegionKind::kConstant) {
    c.faults->Add(c.Text(instruction.operand), "would be stored into region '", region.name,
                  "', which is ", region.kind == RegionKind::kInput ? "an input" : "constant");
  }
}

void CheckMove(const Context& c, const Instruction& instruction) {
  const OperandDesc& from = c.Operand(instruction.operand);
  const OperandDesc& to = c.Operand(instruction.operand2);
  if (to.gather) c.faults->Add(c.where, "what is gathered cannot be moved");
  if (!from.resident) c.faults->Add(c.Text(instruction.operand), "is moved, but not resident");
  CheckDense(c, instruction.operand);
  if (from.type != to.type) {
    c.faults->Add(c.Text(instruction.operand2), "has type ", TypeName(to.type), ", its source ",
                  TypeName(from.type));
  }
  for (const AxisDesc& axis : from.axes) {
    if (axis.ring != 0) c.faults->Add(c.Text(instruction.operand), "is moved out of a ring");
  }
  bool same = from.axes.size() == to.axes.size();
  for (size_t a = 0; a < from.axes.size() && same; ++a) {
    same = from.axes[a].terms == to.axes[a].terms && from.axes[a].offset == to.axes[a].offset &&
           from.axes[a].bound == to.axes[a].bound;
  }
  if (!same) c.faults->Add(c.Text(instruction.operand2), "has other axes than its source");
  if (c.program.target.FindLink(from.memory, to.memory) == nullptr) {
    const auto& memories = c.program.target.memories;
    c.faults->Add(c.where, "there is no link from memory '", memories[from.memory].name, "' to '",
                  memories[to.memory].name, "'");
  }
}

void CheckClass(const Context& c, uint8_t index, OperandClass cls, const char* role) {
  if (c.Operand(index).cls != cls) {
    c.faults->Add(c.Text(index), "is the array's ", role, ", but of class '",
                  ClassName(c.Operand(index).cls), "'");
  }
}

void CheckArrayTypes(const Context& c, const Instruction& i) {
  const Array& array = c.program.target.array;
  const ElementType input = c.Operand(i.operand).ReadType();
  const ElementType weight = c.Operand(i.operand2).ReadType();
  if (!array.rates.contains({input, weight})) {
    c.faults->Add(c.where, "target '", c.program.target.name, "' does not multiply ",
                  TypeName(input), " by ", TypeName(weight));
    return;
  }
  const ElementType accumulator = array.accumulator.at(input);
  if (c.Operand(i.operand3).type != accumulator) {
    c.faults->Add(c.Text(i.operand3), "accumulates in ", TypeName(c.Operand(i.operand3).type),
                  " instead of ", TypeName(accumulator));
  }
  if (i.operand4 != kNone && c.Operand(i.operand4).type != accumulator) {
    c.faults->Add(c.Text(i.operand4), "is a bias of type ", TypeName(c.Operand(i.operand4).type),
                  " instead of ", TypeName(accumulator));
  }
}

bool IsLooped(const Group& group, size_t d) {
  return std::find(group.loops.begin(), group.loops.end(), d) != group.loops.end();
}

// Every dimension belongs to two or all of input, weight and output.
void CheckArrayDims(const Context& c, const Instruction& i) {
  const unsigned input = LongDims(c, i.operand), weight = LongDims(c, i.operand2);
  const unsigned output = LongDims(c, i.operand3);
  for (size_t d = 0; d < c.group.dims.size(); ++d) {
    const unsigned uses = (input >> d & 1) + (weight >> d & 1) + (output >> d & 1);
    // What no role has, and no loop runs over, is the array's no concern (a load may need it).
    if (uses == 0 && !IsLooped(c.group, d)) continue;
    if (uses < 2 && c.group.dims[d].extent != 1) {
      c.faults->Add(c.where, "dimension '", c.group.dims[d].name,
                    "' belongs to fewer than two of input, weight and output");
    }
  }
  if (LongDims(c, i.operand5) != output) {
    c.faults->Add(c.Text(i.operand5), "depends on other dimensions than the accumulators");
  }
  if (i.operand4 != kNone && (LongDims(c, i.operand4) & ~output) != 0) {
    c.faults->Add(c.Text(i.operand4), "is a bias that depends on a reduction dimension");
  }
}

// Is every stride that of a dense tile, the last axis innermost?
bool IsDenseTile(const Context& c, const OperandDesc& operand) {
  int64_t stride = 1;
  for (size_t a = operand.axes.size(); a-- > 0;) {
    if (operand.axes[a].local_stride != stride) return false;
    stride *= LongestExtent(c.group, operand.axes[a]);
  }
  return true;
}

// What is computed from the accumulators lies apart from them or exactly where they are. Smaller
// elements shrink a dense tile from its start on, so that none is overwritten before it is read.
void CheckDrainPlace(const Context& c, uint8_t accumulators, uint8_t output) {
  const OperandDesc& acc = c.Operand(accumulators);
  const OperandDesc& out = c.Operand(output);
  if (accumulators == output || acc.memory != out.memory) return;
  const bool apart = acc.address + acc.ring_slots * acc.slot_bytes <= out.address ||
                     out.address + out.ring_slots * out.slot_bytes <= acc.address;
  const bool same = acc.address == out.address && acc.slot_bytes == out.slot_bytes &&
                    acc.ring_slots == out.ring_slots && acc.generation_dims == out.generation_dims;
  if (!apart && !same) c.faults->Add(c.Text(output), "overlaps the accumulators in part");
  if (apart || !same || TypeBits(acc.type) == TypeBits(out.type)) return;
  const bool shrinks = TypeBits(out.type) < TypeBits(acc.type) && IsDenseTile(c, acc) &&
                       IsDenseTile(c, out) && acc.axes.size() == out.axes.size();
  if (!shrinks) {
    c.faults->Add(c.Text(output),
                  "lies where the accumulators are, with elements of another size: ",
                  "they must be smaller and both tiles dense");
  }
}

// What the program computes is of the type that the operand it is stored to is loaded as.
void CheckResultType(const Context& c, const MicroProgram& program, uint8_t index) {
  if (program.ops.back().type != ValueType(c.Operand(index).type)) {
    c.faults->Add(c.Text(index), "has type ", TypeName(c.Operand(index).type), ", the result is ",
                  TypeName(program.ops.back().type));
  }
}

void CheckArray(const Context& c, const Instruction& i) {
  CheckClass(c, i.operand, OperandClass::kInput, "input");
  CheckClass(c, i.operand2, OperandClass::kWeight, "weight");
  CheckClass(c, i.operand3, OperandClass::kPartial, "accumulator");
  if (i.operand4 != kNone) CheckClass(c, i.operand4, OperandClass::kWeight, "bias");
  if (i.operand5 != i.operand3) {
    CheckClass(c, i.operand5, OperandClass::kOutput, "drained result");
  }
  for (const uint8_t index : {i.operand, i.operand3, i.operand5}) CheckDense(c, index);
  if (i.operand4 != kNone) CheckDense(c, i.operand4);
  CheckArrayTypes(c, i);
  CheckArrayDims(c, i);
  CheckDiagonal(c, i);
  CheckNeverClipped(c, i.operand3);
  CheckNeverClipped(c, i.operand5);
  CheckDrainPlace(c, i.operand3, i.operand5);
  const MicroProgram& drain = c.group.programs[i.program];
  for (size_t o = 0; o < drain.ops.size(); ++o) {
    if (o == 0 ? drain.ops[o].op != MicroOp::kAccumulator : !drain.ops[o].stage) {
      c.faults->Add(Concat(c.where, ": program ", static_cast<int>(i.program)),
                    "a drain is the accumulator and then output-stage operations; v", o, " is not");
      return;
    }
  }
  if (drain.ops[0].type != ValueType(c.Operand(i.operand3).type)) {
    c.faults->Add(c.Text(i.operand3), "has type ", TypeName(c.Operand(i.operand3).type),
                  ", the drain reads it as ", TypeName(drain.ops[0].type));
  }
  CheckResultType(c, drain, i.operand5);
}

void CheckVector(const Context& c, const Instruction& i) {
  const MicroProgram& program = c.group.programs[i.program];
  const unsigned output = LongDims(c, i.operand);
  CheckDense(c, i.operand);
  CheckNeverClipped(c, i.operand);
  CheckResultType(c, program, i.operand);
  unsigned loaded = 0;
  for (const MicroInstruction& op : program.ops) {
    if (op.op == MicroOp::kAccumulator) {
      c.faults->Add(c.where, "a vector program has no accumulator");
      return;
    }
    if (op.op == MicroOp::kIndex) loaded |= LongBit(c, op.operand);
    if (op.op != MicroOp::kLoad) continue;
    CheckDense(c, op.operand);
    if (c.Operand(op.operand).cls == OperandClass::kPartial) {
      CheckDrainPlace(c, op.operand, i.operand);
    }
    loaded |= LongDims(c, op.operand);
  }
  const unsigned reduced = i.reduce_dims != 0 ? i.reduce_dims : loaded & ~output;
  std::vector<unsigned> depends(program.ops.size());
  for (size_t o = 0; o < program.ops.size(); ++o) {
    const MicroInstruction& op = program.ops[o];
    if (op.op == MicroOp::kLoad) depends[o] = LongDims(c, op.operand);
    if (op.op == MicroOp::kIndex) depends[o] = LongBit(c, op.operand);
    for (int a = 0; a < Info(op.op).arguments; ++a) {
      depends[o] |= depends[op.argument[static_cast<size_t>(a)]];
    }
    if (Info(op.op).reduces) depends[o] &= ~reduced;
  }
  if ((depends.back() & ~output) != 0) {
    c.faults->Add(c.where, "the result depends on ", DimNames(c.group, depends.back() & ~output),
                  ", ", OperandText(c.group, i.operand), " does not");
  }
}

// Fields that name something: in range, or "none" where the row says so.
bool CheckFields(const Context& c, const Instruction& instruction) {
  const size_t before = c.faults->count();
  for (const ArgumentRow& argument : Row(instruction.op).arguments) {
    const int value = GetField(instruction, argument.field);
    const FieldKind kind = Row(argument.field).kind;
    bool good = true;
    if (kind == FieldKind::kToken) good = value < kMaxTokens;
    if (kind == FieldKind::kOperand) {
      good = static_cast<size_t>(value) < c.group.operands.size() ||
             (argument.optional && value == kNone);
    }
    if (kind == FieldKind::kProgram) good = static_cast<size_t>(value) < c.group.programs.size();
    if (kind == FieldKind::kDims) good = (value >> c.group.dims.size()) == 0;
    if (argument.field == Field::kCount) good = value > 0;
    if (argument.field == Field::kLag) good = value <= kMaxBusLag;
    if (argument.field == Field::kSlot) good = value < 4;
    if (!good) c.faults->Add(c.where, argument.name, " ", value, " is out of range");
  }
  const Predicate& p = instruction.predicate;
  if (((p.first | p.last | p.not_first | p.not_last) >> c.group.dims.size()) != 0) {
    c.faults->Add(c.where, "its predicate names a dimension that there is not");
  }
  return c.faults->count() == before;
}

void CheckInstruction(const Context& c, const Instruction& instruction, bool in_body) {
  const OpcodeRow& row = Row(instruction.op);
  if (!row.CanRunOn(instruction.engine)) {
    c.faults->Add(c.where, "engine ", EngineName(instruction.engine), " cannot do this");
  }
  const std::string_view stray = StrayField(instruction);
  if (!stray.empty()) {
    c.faults->Add(c.where, "field '", stray, "' is set, but this instruction has none");
  }
  if (!in_body && instruction.op != Opcode::kWait && instruction.op != Opcode::kSignal) {
    c.faults->Add(c.where, "stands outside of the body, where only wait and signal may");
  }
  if (!CheckFields(c, instruction)) return;
  switch (instruction.op) {
    case Opcode::kLoad:
    case Opcode::kStore:
      return CheckTransfer(c, instruction);
    case Opcode::kMove:
      return CheckMove(c, instruction);
    case Opcode::kArray:
      return CheckArray(c, instruction);
    case Opcode::kVector:
      return CheckVector(c, instruction);
    default:
      return;
  }
}

bool IsPlusZero(double value) { return std::bit_cast<uint64_t>(value) == 0; }

// Is it what an immediate of this operation may be?
bool IsImmediate(const MicroInstruction& op, size_t k) {
  const double value = op.immediate[k];
  const auto flag = [](double x) { return x == 0 || x == 1; };
  if (op.op == MicroOp::kWrap) {
    return k == 1 ? flag(value) : value == 8 || value == 16 || value == 32;
  }
  if (op.op == MicroOp::kIsInf) return flag(value);
  if (std::isnan(value)) return op.op == MicroOp::kConst && IsFloat(op.type);
  if (op.type == ElementType::kF32) {
    return static_cast<double>(static_cast<float>(value)) == value;
  }
  if (op.type == ElementType::kBool) return flag(value);
  return op.type == ElementType::kF64 || std::trunc(value) == value;
}

// Fields that the operation does not have are zero; the others are what they may be.
bool HasCleanFields(const MicroInstruction& op) {
  const MicroOpInfo& info = Info(op.op);
  bool clean = NamesOperand(op.op) || op.operand == 0;
  for (size_t k = 0; k < op.argument.size(); ++k) {
    clean = clean && (static_cast<int>(k) < info.arguments || op.argument[k] == 0);
  }
  for (size_t k = 0; k < op.immediate.size(); ++k) {
    clean = clean && (static_cast<int>(k) < info.immediates ? IsImmediate(op, k)
                                                            : IsPlusZero(op.immediate[k]));
  }
  return clean;
}

// Arguments are earlier values of fitting types, operands and dimensions exist.
bool CheckArguments(const Group& group, const MicroProgram& program, size_t i,
                    const std::string& text, Faults* faults) {
  const MicroInstruction& op = program.ops[i];
  const size_t before = faults->count();
  for (int a = 0; a < Info(op.op).arguments; ++a) {
    if (op.argument[static_cast<size_t>(a)] >= i) faults->Add(text, "uses a later value");
  }
  if (op.op == MicroOp::kLoad && op.operand >= group.operands.size()) {
    faults->Add(text, "there is no operand ", static_cast<int>(op.operand));
  }
  if (op.op == MicroOp::kIndex && op.operand >= group.dims.size()) {
    faults->Add(text, "there is no dimension ", static_cast<int>(op.operand));
  }
  if (faults->count() != before) return false;
  if (!TypesFit(program, i)) {
    faults->Add(text, "type ", TypeName(op.type), " and the types of its arguments do not fit");
  } else if (op.op == MicroOp::kLoad && op.type != ValueType(group.operands[op.operand].type)) {
    faults->Add(text, "loads ", OperandText(group, op.operand), " of type ",
                TypeName(group.operands[op.operand].type), " as ", TypeName(op.type));
  }
  return faults->count() == before;
}

}  // namespace

void VerifyMicroProgram(const Target& target, const Group& group, const MicroProgram& program,
                        const std::string& where, Faults* faults) {
  if (program.ops.empty() || program.ops.size() > kMaxMicroOps) {
    faults->Add(where, "has ", program.ops.size(), " operations (1 to ", kMaxMicroOps, ")");
    return;
  }
  bool stage = false;
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const MicroInstruction& op = program.ops[i];
    const MicroOpInfo& info = Info(op.op);
    const std::string text = Concat(where, ": v", i, " (", info.name, ")");
    if (!CheckArguments(group, program, i, text, faults)) continue;
    if (op.op == MicroOp::kAccumulator && i != 0) faults->Add(text, "is not the first operation");
    if (!HasCleanFields(op))
      faults->Add(text, "has a field that it does not use, or an immediate that it may not have");
    if (stage && !op.stage) faults->Add(text, "comes after the output stage has begun");
    if (op.stage && !target.output_stage.Does(op.op)) {
      faults->Add(text, "target '", target.name, "' cannot do this in its output stage");
    } else if (op.stage && op.argument[0] + size_t{1} != i) {
      faults->Add(text, "in the output stage only the value before it can be used");
    }
    stage = stage || op.stage;
  }
}

void VerifyCode(const Program& program, const Group& group, const std::string& where,
                Faults* faults) {
  const auto verify = [&](const std::vector<Instruction>& code, const char* part) {
    if (code.size() > kMaxInstructions) {
      faults->Add(where, part, " has ", code.size(), " instructions; at most ", kMaxInstructions);
      return;
    }
    for (size_t i = 0; i < code.size() && !faults->full(); ++i) {
      const Context context{program, group,
                            Concat(where, ": ", part, " ", i, " (", Row(code[i].op).name, ")"),
                            faults};
      CheckInstruction(context, code[i], &code == &group.body);
    }
  };
  if (group.programs.size() > kMaxProgramsOfGroup) {
    faults->Add(where, "has ", group.programs.size(), " programs");
  }
  verify(group.prologue, "prologue");
  verify(group.body, "body");
  verify(group.epilogue, "epilogue");
}

}  // namespace dla::machine
