#include "ir/vector_form.h"

#include <algorithm>

namespace dla::ir {
namespace {

MicroInstruction Load(int operand) {
  return {.op = MicroOp::kLoad, .operand = static_cast<uint8_t>(operand)};
}

bool IsF32(const Operand& operand) {
  return ValueType(operand.type) == ElementType::kF32 && !operand.read_as;
}

// Dimensions of extent 1 that the output lacks reduce nothing.
bool Reduces(const Nest& nest) {
  for (size_t d = 0; d < nest.dimensions.size(); ++d) {
    if (nest.IsReduction(static_cast<int>(d))) return true;
  }
  return false;
}

}  // namespace

std::optional<Nest> VectorForm(const Nest& contraction) {
  if (contraction.anchor != Anchor::kContraction || !Reduces(contraction)) return std::nullopt;
  if (contraction.operands[Nest::kWeight].diagonal) return std::nullopt;
  if (!IsF32(contraction.operands[Nest::kInput]) || !IsF32(contraction.operands[Nest::kWeight])) {
    return std::nullopt;
  }
  Nest nest = contraction;
  nest.anchor = Anchor::kVector;
  nest.bias = -1;
  for (Operand& operand : nest.operands) operand.cls = OperandClass::kVector;
  std::vector<MicroInstruction> ops = {
      Load(Nest::kInput), Load(Nest::kWeight), {.op = MicroOp::kReduceDot, .argument = {0, 1}}};
  if (contraction.bias >= 0) {
    ops.push_back(Load(contraction.bias));
    ops.push_back({.op = MicroOp::kAdd, .argument = {2, 3}});
  }
  // The operations behind the accumulator, which is the sum now.
  const auto sum = static_cast<uint8_t>(ops.size() - 1);
  for (size_t i = 1; i < contraction.program.ops.size(); ++i) {
    MicroInstruction op = contraction.program.ops[i];
    for (int a = 0; a < Info(op.op).arguments; ++a) {
      op.argument[static_cast<size_t>(a)] =
          static_cast<uint8_t>(op.argument[static_cast<size_t>(a)] + sum);
    }
    ops.push_back(op);
  }
  if (ops.size() > static_cast<size_t>(kMaxMicroOps)) return std::nullopt;
  nest.program.ops = std::move(ops);
  return nest;
}

}  // namespace dla::ir
