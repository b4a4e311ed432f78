// The instruction set as a table: one row an instruction, one row a field.
//
// Encoder, decoder, disassembler, assembler, the verifier's rule that unused fields are at their
// defaults, and the table of docs/MACHINE.md all come from these rows. Every instruction takes
// kInstructionBytes, every field lies at the same place in each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "machine/program.h"

namespace dla::machine {

inline constexpr size_t kInstructionBytes = 24;

enum class FieldKind : uint8_t { kNumber, kToken, kOperand, kProgram, kDims };

enum class Field : uint8_t {
  kToken,
  kCount,
  kLag,
  kSlot,
  kOperand,
  kOperand2,
  kOperand3,
  kOperand4,
  kOperand5,
  kProgram,
  kFirst,
  kLast,
  kNotFirst,
  kNotLast,
  kReduceDims,
};
inline constexpr int kFieldCount = 15;

// Where a field lies (after opcode and engine, bytes 0 and 1) and what it holds.
struct FieldRow {
  Field field;
  std::string_view name;  // in member lists of docs/MACHINE.md
  size_t offset;          // bytes from the instruction's start
  size_t width;           // bytes
  FieldKind kind;
  std::string_view meaning;
};
std::span<const FieldRow> Fields();
const FieldRow& Row(Field field);
uint16_t GetField(const Instruction& instruction, Field field);
// False if the field cannot hold `value`.
bool SetField(Instruction* instruction, Field field, int64_t value);

// An argument of an instruction in its text form: "name=value".
struct ArgumentRow {
  Field field;
  std::string_view name;
  bool optional = false;  // left out of the text when it is at its default
};
struct OpcodeRow {
  Opcode op;
  std::string_view name;
  uint8_t engines;  // mask of Engine: those that can execute it
  bool predicated;  // may carry a predicate
  std::span<const ArgumentRow> arguments;
  std::string_view meaning;
  bool CanRunOn(Engine engine) const { return (engines >> static_cast<int>(engine) & 1) != 0; }
};
std::span<const OpcodeRow> Opcodes();
const OpcodeRow& Row(Opcode op);
const OpcodeRow* FindOpcode(std::string_view name);
std::optional<Engine> ParseEngine(std::string_view name);

// Does the instruction's row mention the field (predicates included)?
bool UsesField(Opcode op, Field field);

// The name of the first field that this instruction does not use and that is not at its default,
// or "" (then encoding loses nothing).
std::string_view StrayField(const Instruction& instruction);

// The table as Markdown, for docs/MACHINE.md.
std::string InstructionTableMarkdown();

}  // namespace dla::machine
