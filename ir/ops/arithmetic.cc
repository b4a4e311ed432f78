// Arithmetic: sums and products, powers, rounding, trigonometry, bits.
#include "ir/ops/map.h"
#include "ir/ops/ops.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kModAttributes[] = {
    {"fmod", AttributeKind::kInt, "0", false, "1: the sign of the dividend"}};
constexpr AttributeDef kShiftAttributes[] = {
    {"direction", AttributeKind::kString, "", true, "LEFT or RIGHT"}};

int EmitMod(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  const bool fmod = GetInt(attributes, "fmod", 0) != 0;
  return w->Op(fmod ? MicroOp::kRemainder : MicroOp::kMod, x[0], x[1]);
}

int EmitShift(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  const bool left = GetString(attributes, "direction", "LEFT") == "LEFT";
  return w->Op(left ? MicroOp::kShiftLeft : MicroOp::kShiftRight, x[0], x[1]);
}

// Integers are raised in f64. The exponent may have a type of its own.
int EmitPow(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  const ElementType type = w->TypeOf(x[0]);
  const bool single = type == ElementType::kF32 && w->TypeOf(x[1]) != ElementType::kF64;
  const ElementType wide = single ? ElementType::kF32 : ElementType::kF64;
  const int base = w->Cast(x[0], wide);
  return w->Cast(w->Op(MicroOp::kPow, base, w->Cast(x[1], wide)), type);
}

Status InferPow(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const ElementType types[] = {InputValue(graph, node, 0).type, InputValue(graph, node, 1).type};
  for (const ElementType type : types) {
    if (type == ElementType::kBool) return Malformed("an operand has type bool");
  }
  DLA_ASSIGN_OR_RETURN(Shape shape, BroadcastOperands(graph, node));
  outputs->push_back({types[0], std::move(shape)});
  return {};
}

// Any number of operands become a chain of pairs; a mean divides at the end.
Status LowerVariadic(Rewriter* rewriter, const Node& node) {
  const Value& output = rewriter->value(node.outputs[0]);
  const bool mean = node.op == "Mean" && node.inputs.size() > 1;
  const std::string op = node.op == "Sum" || node.op == "Mean" ? "Add" : node.op;
  if (node.inputs.size() == 1) {
    const Shape shape = output.shape;
    rewriter->Finish("View", {node.inputs[0]}, {{"shape", shape}}, node.outputs[0]);
    return {};
  }
  ValueId value = node.inputs[0];
  const size_t last = node.inputs.size() - (mean ? 0 : 1);
  Tensor count = Tensor::Zeros({output.type, {}});
  WriteDouble(&count, 0, static_cast<double>(node.inputs.size()));
  for (size_t i = 1; i < last; ++i) {
    DLA_ASSIGN_OR_RETURN(value, rewriter->Add(op, {value, node.inputs[i]}));
  }
  if (mean) {
    const ValueId divisor = rewriter->AddConstant(std::move(count), "count");
    rewriter->Finish("Div", {value, divisor}, {}, node.outputs[0]);
  } else {
    rewriter->Finish(op, {value, node.inputs[last]}, {}, node.outputs[0]);
  }
  return {};
}

// In a file any number of operands, two in the canonical form.
constexpr OpDef Variadic(OpDef row) {
  row.min_inputs = 1;
  row.max_file_inputs = OpDef::kVariadic;
  row.note = "in a file: any number of operands";
  row.lower = LowerVariadic;
  return row;
}

constexpr OpDef VariadicOnnx(std::string_view name) {
  OpDef row;
  row.name = name;
  row.max_inputs = OpDef::kVariadic;
  row.infer = InferMap;
  row.lower = LowerVariadic;
  return row;
}

constexpr OpDef PowRow() { return Aligned<InferPow>(Map("Pow", 2, EmitPow)); }

constexpr OpDef kRows[] = {
    Map("Abs", 1, EmitUnary<MicroOp::kAbs>),
    Map("Acos", 1, EmitUnary<MicroOp::kAcos>),
    Since(Map("Acosh", 1, EmitUnary<MicroOp::kAcosh>), 9),
    Aligned<InferMap>(Map("Add", 2, EmitBinary<MicroOp::kAdd>)),
    Map("Asin", 1, EmitUnary<MicroOp::kAsin>),
    Since(Map("Asinh", 1, EmitUnary<MicroOp::kAsinh>), 9),
    Map("Atan", 1, EmitUnary<MicroOp::kAtan>),
    Since(Map("Atanh", 1, EmitUnary<MicroOp::kAtanh>), 9),
    Since(Map("BitShift", 2, EmitShift, kShiftAttributes), 11),
    Since(Map("BitwiseAnd", 2, EmitBinary<MicroOp::kBitAnd>), 18),
    Since(Map("BitwiseNot", 1, EmitUnary<MicroOp::kBitNot>), 18),
    Since(Map("BitwiseOr", 2, EmitBinary<MicroOp::kBitOr>), 18),
    Since(Map("BitwiseXor", 2, EmitBinary<MicroOp::kBitXor>), 18),
    Map("Ceil", 1, EmitUnary<MicroOp::kCeil>),
    Map("Cos", 1, EmitUnary<MicroOp::kCos>),
    Since(Map("Cosh", 1, EmitUnary<MicroOp::kCosh>), 9),
    Aligned<InferMap>(Map("Div", 2, EmitBinary<MicroOp::kDiv>)),
    Since(Map("Erf", 1, EmitUnary<MicroOp::kErf>), 9),
    Map("Exp", 1, EmitUnary<MicroOp::kExp>),
    Map("Floor", 1, EmitUnary<MicroOp::kFloor>),
    Map("Log", 1, EmitUnary<MicroOp::kLog>),
    Variadic(Map("Max", 2, EmitBinary<MicroOp::kMax>)),
    VariadicOnnx("Mean"),
    Variadic(Map("Min", 2, EmitBinary<MicroOp::kMin>)),
    Since(Map("Mod", 2, EmitMod, kModAttributes), 10),
    Aligned<InferMap>(Map("Mul", 2, EmitBinary<MicroOp::kMul>)),
    Map("Neg", 1, EmitUnary<MicroOp::kNeg>),
    PowRow(),
    Map("Reciprocal", 1, EmitUnary<MicroOp::kReciprocal>),
    Since(Map("Round", 1, EmitUnary<MicroOp::kRound>), 11),
    Since(Map("Sign", 1, EmitUnary<MicroOp::kSign>), 9),
    Map("Sin", 1, EmitUnary<MicroOp::kSin>),
    Since(Map("Sinh", 1, EmitUnary<MicroOp::kSinh>), 9),
    Map("Sqrt", 1, EmitUnary<MicroOp::kSqrt>),
    Aligned<InferMap>(Map("Sub", 2, EmitBinary<MicroOp::kSub>)),
    VariadicOnnx("Sum"),
    Map("Tan", 1, EmitUnary<MicroOp::kTan>),
};

}  // namespace

std::span<const OpDef> ArithmeticRows() { return kRows; }

}  // namespace dla::ir
