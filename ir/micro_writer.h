// Writes typed micro-programs: what the `emit` functions of the operator table use.
#pragma once

#include "ir/graph.h"
#include "support/micro_program.h"

namespace dla::ir {

// Values are named by their numbers. Operations take the type of their first argument unless said
// otherwise.
class MicroWriter {
 public:
  explicit MicroWriter(MicroProgram* program) : program_(program) {}

  ElementType TypeOf(int value) const { return program_->ops[static_cast<size_t>(value)].type; }
  bool IsFloat(int value) const { return dla::IsFloat(TypeOf(value)); }

  int Load(int operand, ElementType stored);
  int Const(ElementType value_type, double number);
  // A constant of the type of `value`.
  int Like(int value, double number) { return Const(TypeOf(value), number); }
  // The index of a loop (in nests: by number) or axis (where programs are run directly).
  int Index(int axis);

  int Op(MicroOp op, int a);
  int Op(MicroOp op, int a, int b);
  int Op(MicroOp op, int a, double immediate0, double immediate1);
  // Comparisons and tests: the result is a bool.
  int Test(MicroOp op, int a, int b);
  int Test(MicroOp op, int a, double immediate0 = 0, double immediate1 = 0);
  int Select(int condition, int yes, int no);
  int Cast(int a, ElementType value_type);  // nothing if it has that type

  int Add(int a, int b) { return Op(MicroOp::kAdd, a, b); }
  int Sub(int a, int b) { return Op(MicroOp::kSub, a, b); }
  int Mul(int a, int b) { return Op(MicroOp::kMul, a, b); }
  int Div(int a, int b) { return Op(MicroOp::kDiv, a, b); }
  // With a constant of the same type.
  int Plus(int a, double number) { return Add(a, Like(a, number)); }
  int Times(int a, double number) { return number == 1 ? a : Mul(a, Like(a, number)); }
  int Over(int a, double number) { return Div(a, Like(a, number)); }

  // The value as it is after being stored as this type: integers that are narrower wrap.
  int Stored(int value, ElementType type);

 private:
  int Append(MicroOp op, ElementType type, std::array<int, 3> arguments,
             std::array<double, 2> immediates = {0, 0});

  MicroProgram* program_;
};

}  // namespace dla::ir
