// Element-wise operators: each is a row with the micro-operations that it emits; inference,
// evaluation and the nest are the same for all. Two operands broadcast as numpy's do.
#include <cmath>
#include <limits>

#include "ir/kernels/micro.h"
#include "ir/kernels/strided.h"
#include "ir/nest_builder.h"
#include "ir/ops/ops.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr AttributeDef kAlpha001[] = {{"alpha", AttributeKind::kFloat, "0.01", false, ""}};
constexpr AttributeDef kHardSigmoid[] = {{"alpha", AttributeKind::kFloat, "0.2", false, ""},
                                         {"beta", AttributeKind::kFloat, "0.5", false, ""}};
constexpr AttributeDef kClip[] = {
    {"max", AttributeKind::kFloat, "none", false, "an input since opset 11"},
    {"min", AttributeKind::kFloat, "none", false, "an input since opset 11"},
};

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  TensorType result{InputValue(graph, node, 0).type, InputValue(graph, node, 0).shape};
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Value& other = InputValue(graph, node, static_cast<int>(i));
    if (other.type != result.type) {
      return Malformed("the operands have types ", TypeName(result.type), " and ",
                       TypeName(other.type));
    }
    const auto shape = BroadcastShapes(result.shape, other.shape);
    if (!shape) {
      return Malformed("the operands have shapes ", ShapeText(result.shape), " and ",
                       ShapeText(other.shape), ", which do not broadcast");
    }
    result.shape = *shape;
  }
  outputs->push_back(std::move(result));
  return {};
}

Tensor Broadcast(const TensorView& operand, const Shape& shape) {
  Tensor result = Tensor::Zeros({operand.type, shape});
  const int64_t bytes = TypeBytes(operand.type, 1);
  CopyStrided(shape, bytes, operand.bytes,
              BroadcastStrides(operand.shape, DenseStrides(operand.shape), shape),
              result.bytes.data(), DenseStrides(shape));
  return result;
}

// Integers wrap around; division truncates towards zero.
Result<int64_t> IntegerOp(const std::string& op, int64_t a, int64_t b) {
  const auto wrap = [](uint64_t value) { return static_cast<int64_t>(value); };
  const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  if (op == "Add") return wrap(x + y);
  if (op == "Sub") return wrap(x - y);
  if (op == "Mul") return wrap(x * y);
  if (op == "Max") return std::max(a, b);
  if (op == "Min") return std::min(a, b);
  if (op == "Neg") return wrap(0 - x);
  if (op == "Abs") return a < 0 ? wrap(0 - x) : a;
  if (op == "Relu") return std::max<int64_t>(a, 0);
  if (op == "Div") {
    if (b == 0) return Malformed("division by zero");
    return b == -1 ? wrap(0 - x) : a / b;
  }
  return Unsupported("no integer arithmetic for ", op);
}

// The program of the bare operator: loads, then what it emits.
MicroProgram ProgramOf(const Node& node, size_t operands) {
  MicroProgram program;
  std::vector<int> arguments;
  for (size_t i = 0; i < operands; ++i) {
    arguments.push_back(AppendMicro(&program, MicroOp::kLoad));
    program.ops.back().operand = static_cast<uint8_t>(i);
  }
  FindOperator(node.op)->emit(node.attributes, arguments, &program);
  return program;
}

Status Evaluate(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  Tensor& output = outputs[0];
  std::vector<Tensor> operands;
  for (const TensorView& input : inputs) operands.push_back(Broadcast(input, output.shape));
  if (output.type == ElementType::kF32) {
    std::vector<const float*> arguments;
    for (Tensor& operand : operands) arguments.push_back(operand.f32());
    RunMicroProgram(ProgramOf(node, operands.size()), arguments, output.elements(), output.f32());
    return {};
  }
  if (IsFloat(output.type) || !IsReadable(output.type)) {
    return Unsupported("no arithmetic for ", TypeName(output.type));
  }
  for (int64_t i = 0; i < output.elements(); ++i) {
    const int64_t a = ReadInt(operands[0].view(), i);
    const int64_t b = operands.size() > 1 ? ReadInt(operands[1].view(), i) : 0;
    DLA_ASSIGN_OR_RETURN(const int64_t result, IntegerOp(node.op, a, b));
    WriteInt(&output, i, result);
  }
  return {};
}

Result<Nest> MapNest(const Graph& graph, const Node& node) {
  NestBuilder builder(graph, node, Anchor::kVector);
  std::vector<NestBuilder::OutputAxis> axes;
  const Shape& shape = graph.values[Idx(node.outputs[0])].shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    axes.push_back({-1, builder.AddNumberedLoop("d", i, shape[i])});
  }
  const size_t own = Idx(FindOperator(node.op)->max_inputs);
  std::vector<ValueId> seen;
  std::vector<int> operands;
  for (size_t i = 0; i < own && i < node.inputs.size(); ++i) {
    const ValueId value = node.inputs[i];
    if (ConstantScalar(graph, value)) continue;
    if (i == 1 && value == node.inputs[0]) {
      builder.BindInput(1, operands[0]);
      continue;
    }
    operands.push_back(
        builder.AddOperand(value, OperandClass::kVector, builder.OutputStrides(value, axes)));
    builder.BindInput(static_cast<int>(i), operands.back());
  }
  builder.AddFusedAndOutput(axes, OperandClass::kVector);
  builder.EmitLoads(0);
  std::vector<int> arguments;
  for (size_t i = 0; i < own && i < node.inputs.size(); ++i) {
    arguments.push_back(builder.InputValue(static_cast<int>(i)));
  }
  builder.EmitFused(FindOperator(node.op)->emit(node.attributes, arguments, builder.program()));
  return builder.Build();
}

// --- What each operator emits.

template <MicroOp op>
int EmitUnary(const AttributeMap&, std::span<const int> x, MicroProgram* program) {
  return AppendMicro(program, op, x[0]);
}

template <MicroOp op>
int EmitBinary(const AttributeMap&, std::span<const int> x, MicroProgram* program) {
  return AppendMicro(program, op, x[0], x[1]);
}

int EmitLeakyRelu(const AttributeMap& attributes, std::span<const int> x, MicroProgram* program) {
  return AppendMicro(program, MicroOp::kLeakyRelu, x[0], 0, GetFloat(attributes, "alpha", 0.01f));
}

int EmitClip(const AttributeMap& attributes, std::span<const int> x, MicroProgram* program) {
  return AppendMicro(program, MicroOp::kClamp, x[0], 0, GetFloat(attributes, "min", -kInfinity),
                     GetFloat(attributes, "max", kInfinity));
}

// max(0, min(1, alpha * x + beta))
int EmitHardSigmoid(const AttributeMap& attributes, std::span<const int> x, MicroProgram* program) {
  const int alpha =
      AppendMicro(program, MicroOp::kConst, 0, 0, GetFloat(attributes, "alpha", 0.2f));
  const int scaled = AppendMicro(program, MicroOp::kMul, x[0], alpha);
  const int beta = AppendMicro(program, MicroOp::kConst, 0, 0, GetFloat(attributes, "beta", 0.5f));
  const int line = AppendMicro(program, MicroOp::kAdd, scaled, beta);
  return AppendMicro(program, MicroOp::kClamp, line, 0, 0.0f, 1.0f);
}

// x * max(0, min(1, x / 6 + 0.5))
int EmitHardSwish(const AttributeMap&, std::span<const int> x, MicroProgram* program) {
  const AttributeMap sixth = {{"alpha", 1.0f / 6.0f}, {"beta", 0.5f}};
  return AppendMicro(program, MicroOp::kMul, x[0], EmitHardSigmoid(sixth, x, program));
}

// --- Rewriting.

// Before opset 11 the bounds are attributes, then inputs.
Status ClipBounds(const Graph& graph, const Node& node, AttributeMap* attributes) {
  *attributes = node.attributes;
  const char* const names[] = {"min", "max"};
  for (int i = 0; i < 2; ++i) {
    if (!HasInput(node, i + 1)) continue;
    const Value& bound = InputValue(graph, node, i + 1);
    const auto number = ConstantScalar(graph, node.inputs[Idx(i + 1)]);
    if (!number) {
      return Unsupported("input '", bound.name, "' (", names[i],
                         ") must be a constant with one element");
    }
    (*attributes)[names[i]] = static_cast<float>(*number);
  }
  return {};
}

Status InferClip(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  AttributeMap attributes;
  DLA_RETURN_IF_ERROR(ClipBounds(graph, node, &attributes));
  const Value& input = InputValue(graph, node, 0);
  outputs->push_back({input.type, input.shape});
  return {};
}

Status LowerClip(Rewriter* rewriter, const Node& node) {
  AttributeMap attributes;
  DLA_RETURN_IF_ERROR(ClipBounds(rewriter->graph(), node, &attributes));
  rewriter->Finish("Clip", {node.inputs[0]}, std::move(attributes), node.outputs[0]);
  return {};
}

// The exponent may have a type of its own.
Status InferPow(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& base = InputValue(graph, node, 0);
  const Value& exponent = InputValue(graph, node, 1);
  if (exponent.type == base.type) return Infer(graph, node, outputs);
  if (exponent.constant == nullptr || base.type != ElementType::kF32 ||
      !IsReadable(exponent.type)) {
    return Unsupported("the operands have types ", TypeName(base.type), " and ",
                       TypeName(exponent.type), "; f32 and a constant are supported");
  }
  const auto shape = BroadcastShapes(base.shape, exponent.shape);
  if (!shape) {
    return Malformed("the operands have shapes ", ShapeText(base.shape), " and ",
                     ShapeText(exponent.shape), ", which do not broadcast");
  }
  outputs->push_back({base.type, *shape});
  return {};
}

Status LowerPow(Rewriter* rewriter, const Node& node) {
  std::vector<ValueId> inputs = node.inputs;
  const TensorView exponent = ConstantView(rewriter->graph(), inputs[1]);
  if (exponent.present() && exponent.type != ElementType::kF32) {
    Tensor converted = Tensor::Zeros({ElementType::kF32, exponent.shape});
    for (int64_t i = 0; i < exponent.elements(); ++i) {
      WriteDouble(&converted, i, ReadDouble(exponent, i));
    }
    inputs[1] = rewriter->AddConstant(std::move(converted), "exponent");
  }
  rewriter->Finish("Pow", inputs, {}, node.outputs[0]);
  return {};
}

// Max and Min of any number of operands become a chain of pairs.
Status LowerVariadic(Rewriter* rewriter, const Node& node) {
  if (node.inputs.size() == 1) {
    const Shape shape = rewriter->value(node.outputs[0]).shape;
    rewriter->Finish("View", {node.inputs[0]}, {{"shape", shape}}, node.outputs[0]);
    return {};
  }
  ValueId value = node.inputs[0];
  const size_t last = node.inputs.size() - 1;
  const std::string op = node.op == "Sum" ? "Add" : node.op;
  for (size_t i = 1; i < last; ++i) {
    DLA_ASSIGN_OR_RETURN(value, rewriter->Add(op, {value, node.inputs[i]}));
  }
  rewriter->Finish(op, {value, node.inputs[last]}, {}, node.outputs[0]);
  return {};
}

using Emitter = int (*)(const AttributeMap&, std::span<const int>, MicroProgram*);

constexpr OpDef Map(std::string_view name, int inputs, Emitter emit,
                    std::span<const AttributeDef> attributes = {}) {
  OpDef row;
  row.name = name;
  row.kind = OpKind::kMap;
  row.min_inputs = inputs;
  row.max_inputs = inputs;
  row.attributes = attributes;
  row.infer = Infer;
  row.evaluate = Evaluate;
  row.emit = emit;
  row.nest = MapNest;
  return row;
}

constexpr OpDef Since(OpDef row, int opset) {
  row.first_opset = opset;
  return row;
}

// In a file any number of operands, two in the canonical form.
constexpr OpDef Variadic(OpDef row) {
  row.min_inputs = 1;
  row.max_file_inputs = OpDef::kVariadic;
  row.note = "in a file: any number of operands";
  row.lower = LowerVariadic;
  return row;
}

constexpr OpDef ClipRow() {
  OpDef row = Map("Clip", 1, EmitClip, kClip);
  row.max_file_inputs = 3;
  row.note = "bounds must be constant";
  row.infer = InferClip;
  row.lower = LowerClip;
  return row;
}

constexpr OpDef PowRow() {
  OpDef row = Map("Pow", 2, EmitBinary<MicroOp::kPow>);
  row.infer = InferPow;
  row.lower = LowerPow;
  return row;
}

constexpr OpDef SumRow() {
  OpDef row;
  row.name = "Sum";
  row.max_inputs = OpDef::kVariadic;
  row.infer = Infer;
  row.lower = LowerVariadic;
  return row;
}

constexpr OpDef kRows[] = {
    Map("Abs", 1, EmitUnary<MicroOp::kAbs>),
    Map("Add", 2, EmitBinary<MicroOp::kAdd>),
    Map("Ceil", 1, EmitUnary<MicroOp::kCeil>),
    ClipRow(),
    Map("Div", 2, EmitBinary<MicroOp::kDiv>),
    Since(Map("Erf", 1, EmitUnary<MicroOp::kErf>), 9),
    Map("Exp", 1, EmitUnary<MicroOp::kExp>),
    Map("Floor", 1, EmitUnary<MicroOp::kFloor>),
    Map("HardSigmoid", 1, EmitHardSigmoid, kHardSigmoid),
    Since(Map("HardSwish", 1, EmitHardSwish), 14),
    Map("LeakyRelu", 1, EmitLeakyRelu, kAlpha001),
    Map("Log", 1, EmitUnary<MicroOp::kLog>),
    Variadic(Map("Max", 2, EmitBinary<MicroOp::kMax>)),
    Variadic(Map("Min", 2, EmitBinary<MicroOp::kMin>)),
    Map("Mul", 2, EmitBinary<MicroOp::kMul>),
    Map("Neg", 1, EmitUnary<MicroOp::kNeg>),
    PowRow(),
    Map("Reciprocal", 1, EmitUnary<MicroOp::kReciprocal>),
    Map("Relu", 1, EmitUnary<MicroOp::kRelu>),
    Since(Map("Round", 1, EmitUnary<MicroOp::kRound>), 11),
    Map("Sigmoid", 1, EmitUnary<MicroOp::kSigmoid>),
    Map("Sqrt", 1, EmitUnary<MicroOp::kSqrt>),
    Map("Sub", 2, EmitBinary<MicroOp::kSub>),
    SumRow(),
    Map("Tanh", 1, EmitUnary<MicroOp::kTanh>),
};

}  // namespace

std::span<const OpDef> MapRows() { return kRows; }

}  // namespace dla::ir
