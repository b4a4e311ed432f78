#include "machine/isa.h"

#include <array>
#include <sstream>

namespace dla::machine {
namespace {

// In the order of the enumerators.
constexpr std::array<FieldRow, kFieldCount> kFields = {{
    {Field::kToken, "token", 2, 1, FieldKind::kToken, "number of the token, 0 to 15"},
    {Field::kCount, "count", 3, 1, FieldKind::kNumber, "credits taken or given"},
    {Field::kLag, "lag", 4, 1, FieldKind::kNumber, "steps by which the ticket is late"},
    {Field::kSlot, "slot", 5, 1, FieldKind::kNumber, "place of the transfer in its step, 0 to 3"},
    {Field::kOperand, "operand", 6, 1, FieldKind::kOperand, "operand of the group; 255: none"},
    {Field::kOperand2, "operand2", 7, 1, FieldKind::kOperand, "operand of the group; 255: none"},
    {Field::kOperand3, "operand3", 8, 1, FieldKind::kOperand, "operand of the group; 255: none"},
    {Field::kOperand4, "operand4", 9, 1, FieldKind::kOperand, "operand of the group; 255: none"},
    {Field::kOperand5, "operand5", 10, 1, FieldKind::kOperand, "operand of the group; 255: none"},
    {Field::kProgram, "program", 11, 1, FieldKind::kProgram, "micro-program of the group"},
    {Field::kFirst, "first", 12, 2, FieldKind::kDims, "all of these dimensions at first block"},
    {Field::kLast, "last", 14, 2, FieldKind::kDims, "all of these dimensions at last block"},
    {Field::kNotFirst, "not_first", 16, 2, FieldKind::kDims, "not all of these at first block"},
    {Field::kNotLast, "not_last", 18, 2, FieldKind::kDims, "not all of these at last block"},
    {Field::kReduceDims, "reduce_dims", 20, 2, FieldKind::kDims, "dimensions reduced over"},
}};
static_assert(kFields.back().offset + kFields.back().width <= kInstructionBytes);

constexpr uint8_t Mask(Engine engine) {
  return static_cast<uint8_t>(1u << static_cast<unsigned>(engine));
}
constexpr uint8_t kAnyEngine = (1 << kEngineCount) - 1;

constexpr ArgumentRow kTokenArguments[] = {{Field::kToken, "token"},
                                           {Field::kCount, "count", true}};
constexpr ArgumentRow kTransferArguments[] = {{Field::kOperand, "tile"}};
constexpr ArgumentRow kBusArguments[] = {{Field::kLag, "lag"}, {Field::kSlot, "slot"}};
constexpr ArgumentRow kMoveArguments[] = {{Field::kOperand, "from"}, {Field::kOperand2, "to"}};
constexpr ArgumentRow kArrayArguments[] = {
    {Field::kOperand, "input"},       {Field::kOperand2, "weight"}, {Field::kOperand3, "acc"},
    {Field::kOperand4, "bias", true}, {Field::kOperand5, "out"},    {Field::kProgram, "drain"}};
constexpr ArgumentRow kVectorArguments[] = {
    {Field::kOperand, "out"}, {Field::kProgram, "program"}, {Field::kReduceDims, "reduce", true}};

// In the order of the enumerators.
constexpr std::array<OpcodeRow, kOpcodeCount> kOpcodes = {{
    {Opcode::kWait, "wait", kAnyEngine, false, kTokenArguments,
     "takes `count` credits of the token, waiting until it has them"},
    {Opcode::kSignal, "signal", kAnyEngine, false, kTokenArguments,
     "gives the token `count` credits"},
    {Opcode::kLoad, "load", Mask(Engine::kLoad), true, kTransferArguments,
     "adds the tile's DRAM -> chip descriptor to the open transfer"},
    {Opcode::kStore, "store", Mask(Engine::kStore), true, kTransferArguments,
     "adds the tile's chip -> DRAM descriptor to the open transfer"},
    {Opcode::kBus, "bus", Mask(Engine::kLoad) | Mask(Engine::kStore), false, kBusArguments,
     "hands the open transfer to the bus with ticket 4 * (step + lag) + slot"},
    {Opcode::kMove, "move", Mask(Engine::kMove), true, kMoveArguments,
     "copies a tile from a resident operand over a link"},
    {Opcode::kArray, "array", Mask(Engine::kArray), true, kArrayArguments,
     "acc += sum of input * weight; set at the reduction's first block, drained at its last"},
    {Opcode::kVector, "vector", Mask(Engine::kVector), true, kVectorArguments,
     "runs the micro-program over the points of the tile"},
}};

// Pointers to the members, by width; exactly one of them is set.
struct Member {
  uint8_t Instruction::*byte = nullptr;
  uint16_t Predicate::*mask = nullptr;
  uint16_t Instruction::*word = nullptr;
};
Member MemberOf(Field field) {
  switch (field) {
    case Field::kToken:
      return {.byte = &Instruction::token};
    case Field::kCount:
      return {.byte = &Instruction::count};
    case Field::kLag:
      return {.byte = &Instruction::lag};
    case Field::kSlot:
      return {.byte = &Instruction::slot};
    case Field::kOperand:
      return {.byte = &Instruction::operand};
    case Field::kOperand2:
      return {.byte = &Instruction::operand2};
    case Field::kOperand3:
      return {.byte = &Instruction::operand3};
    case Field::kOperand4:
      return {.byte = &Instruction::operand4};
    case Field::kOperand5:
      return {.byte = &Instruction::operand5};
    case Field::kProgram:
      return {.byte = &Instruction::program};
    case Field::kFirst:
      return {.mask = &Predicate::first};
    case Field::kLast:
      return {.mask = &Predicate::last};
    case Field::kNotFirst:
      return {.mask = &Predicate::not_first};
    case Field::kNotLast:
      return {.mask = &Predicate::not_last};
    case Field::kReduceDims:
      return {.word = &Instruction::reduce_dims};
  }
  return {};
}

constexpr bool IsPredicate(Field field) {
  return field == Field::kFirst || field == Field::kLast || field == Field::kNotFirst ||
         field == Field::kNotLast;
}

constexpr std::array<std::string_view, kEngineCount> kEngines = {"load",  "store",  "move",
                                                                 "array", "vector", "host"};

}  // namespace

std::string_view EngineName(Engine engine) { return kEngines[static_cast<size_t>(engine)]; }

std::optional<Engine> ParseEngine(std::string_view name) {
  for (size_t i = 0; i < kEngines.size(); ++i) {
    if (kEngines[i] == name) return static_cast<Engine>(i);
  }
  return std::nullopt;
}

std::span<const FieldRow> Fields() { return kFields; }
const FieldRow& Row(Field field) { return kFields[static_cast<size_t>(field)]; }
std::span<const OpcodeRow> Opcodes() { return kOpcodes; }
const OpcodeRow& Row(Opcode op) { return kOpcodes[static_cast<size_t>(op)]; }

const OpcodeRow* FindOpcode(std::string_view name) {
  for (const OpcodeRow& row : kOpcodes) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

uint16_t GetField(const Instruction& instruction, Field field) {
  const Member member = MemberOf(field);
  if (member.byte != nullptr) return instruction.*member.byte;
  if (member.mask != nullptr) return instruction.predicate.*member.mask;
  return instruction.*member.word;
}

bool SetField(Instruction* instruction, Field field, int64_t value) {
  const Member member = MemberOf(field);
  if (value < 0 || value > (member.byte != nullptr ? UINT8_MAX : UINT16_MAX)) return false;
  if (member.byte != nullptr) {
    instruction->*member.byte = static_cast<uint8_t>(value);
  } else if (member.mask != nullptr) {
    instruction->predicate.*member.mask = static_cast<uint16_t>(value);
  } else {
    instruction->*member.word = static_cast<uint16_t>(value);
  }
  return true;
}

bool UsesField(Opcode op, Field field) {
  const OpcodeRow& row = Row(op);
  if (IsPredicate(field)) return row.predicated;
  for (const ArgumentRow& argument : row.arguments) {
    if (argument.field == field) return true;
  }
  return false;
}

std::string_view StrayField(const Instruction& instruction) {
  const Instruction plain;
  for (const FieldRow& row : kFields) {
    if (!UsesField(instruction.op, row.field) &&
        GetField(instruction, row.field) != GetField(plain, row.field)) {
      return row.name;
    }
  }
  return "";
}

std::string InstructionTableMarkdown() {
  std::ostringstream out;
  out << "| instruction | engines | arguments | predicate | what it does |\n"
         "| --- | --- | --- | --- | --- |\n";
  for (const OpcodeRow& row : kOpcodes) {
    out << "| `" << row.name << "` (" << static_cast<int>(row.op) << ") | ";
    bool first = true;
    for (int e = 0; e < kEngineCount; ++e) {
      const auto engine = static_cast<Engine>(e);
      if (row.engines != kAnyEngine && !row.CanRunOn(engine)) continue;
      out << (first ? "" : ", ") << (row.engines == kAnyEngine ? "any" : EngineName(engine));
      first = false;
      if (row.engines == kAnyEngine) break;
    }
    out << " | ";
    for (const ArgumentRow& argument : row.arguments) {
      out << (&argument == row.arguments.data() ? "" : ", ") << argument.name << " = "
          << Row(argument.field).name << (argument.optional ? "?" : "");
    }
    out << " | " << (row.predicated ? "yes" : "no") << " | " << row.meaning << " |\n";
  }
  out << "\n| field | byte | width | meaning |\n| --- | --- | --- | --- |\n"
      << "| opcode | 0 | 1 | number of the instruction |\n"
      << "| engine | 1 | 1 | number of the engine: load, store, move, array, vector, host |\n";
  for (const FieldRow& row : kFields) {
    out << "| " << row.name << " | " << row.offset << " | " << row.width << " | " << row.meaning
        << " |\n";
  }
  return out.str();
}

}  // namespace dla::machine
