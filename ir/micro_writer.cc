#include "ir/micro_writer.h"

namespace dla::ir {

int MicroWriter::Append(MicroOp op, ElementType type, std::array<int, 3> arguments,
                        std::array<double, 2> immediates) {
  MicroInstruction instruction;
  instruction.op = op;
  instruction.type = type;
  for (size_t a = 0; a < arguments.size(); ++a) {
    instruction.argument[a] = static_cast<uint8_t>(arguments[a]);
  }
  for (size_t i = 0; i < immediates.size(); ++i) {
    // What an f32 operation computes with is an f32.
    instruction.immediate[i] = type == ElementType::kF32
                                   ? static_cast<double>(static_cast<float>(immediates[i]))
                                   : immediates[i];
  }
  program_->ops.push_back(instruction);
  return static_cast<int>(program_->ops.size()) - 1;
}

int MicroWriter::Load(int operand, ElementType stored) {
  const int value = Append(MicroOp::kLoad, ValueType(stored), {0, 0, 0});
  program_->ops.back().operand = static_cast<uint8_t>(operand);
  return value;
}

int MicroWriter::Const(ElementType value_type, double number) {
  return Append(MicroOp::kConst, value_type, {0, 0, 0}, {number, 0});
}

int MicroWriter::Index(int axis) {
  const int value = Append(MicroOp::kIndex, ElementType::kI64, {0, 0, 0});
  program_->ops.back().operand = static_cast<uint8_t>(axis);
  return value;
}

int MicroWriter::Op(MicroOp op, int a) { return Append(op, TypeOf(a), {a, 0, 0}); }

int MicroWriter::Op(MicroOp op, int a, int b) { return Append(op, TypeOf(a), {a, b, 0}); }

int MicroWriter::Op(MicroOp op, int a, double immediate0, double immediate1) {
  return Append(op, TypeOf(a), {a, 0, 0}, {immediate0, immediate1});
}

int MicroWriter::Test(MicroOp op, int a, int b) {
  return Append(op, ElementType::kBool, {a, b, 0});
}

int MicroWriter::Test(MicroOp op, int a, double immediate0, double immediate1) {
  return Append(op, ElementType::kBool, {a, 0, 0}, {immediate0, immediate1});
}

int MicroWriter::Select(int condition, int yes, int no) {
  return Append(MicroOp::kSelect, TypeOf(yes), {condition, yes, no});
}

int MicroWriter::Cast(int a, ElementType value_type) {
  return TypeOf(a) == value_type ? a : Append(MicroOp::kCast, value_type, {a, 0, 0});
}

int MicroWriter::Stored(int value, ElementType type) {
  if (TypeOf(value) != ElementType::kI64 || TypeBits(type) >= 64) return value;
  const bool is_signed =
      type == ElementType::kI8 || type == ElementType::kI16 || type == ElementType::kI32;
  return Op(MicroOp::kWrap, value, TypeBits(type), is_signed ? 1 : 0);
}

}  // namespace dla::ir
