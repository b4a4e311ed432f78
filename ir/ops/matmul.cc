// MatMul (canonical: rank >= 2, either operand transposed, optional bias) and Gemm, which becomes
// one.
#include <algorithm>

#include "ir/kernels/contraction.h"
#include "ir/kernels/strided.h"
#include "ir/nest_builder.h"
#include "ir/ops/ops.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kGemmAttributes[] = {
    {"alpha", AttributeKind::kFloat, "1", false, ""},
    {"beta", AttributeKind::kFloat, "1", false, ""},
    {"broadcast", AttributeKind::kInt, "0", false, "before opset 7; ignored"},
    {"transA", AttributeKind::kInt, "0", false, ""},
    {"transB", AttributeKind::kInt, "0", false, ""},
};

// out[batch.., e, m] = bias[m] + sum of a[batch.., e, c] * b[batch.., c, m].
struct MatMulShape {
  Shape batch;
  int64_t e = 1, c = 1, m = 1;
  bool trans_a = false, trans_b = false;
};

// `a` and `b` have rank >= 2; transposition attributes are those of the canonical spelling.
Result<MatMulShape> Resolve(const Node& node, const Shape& a, const Shape& b) {
  MatMulShape shape;
  shape.trans_a = GetInt(node.attributes, "trans_a", 0) != 0;
  shape.trans_b = GetInt(node.attributes, "trans_b", 0) != 0;
  shape.e = a[a.size() - (shape.trans_a ? 1 : 2)];
  shape.c = a[a.size() - (shape.trans_a ? 2 : 1)];
  shape.m = b[b.size() - (shape.trans_b ? 2 : 1)];
  const int64_t inner = b[b.size() - (shape.trans_b ? 1 : 2)];
  const auto batch = BroadcastShapes({a.begin(), a.end() - 2}, {b.begin(), b.end() - 2});
  if (inner != shape.c || !batch) {
    return Malformed("the operands have shapes ", ShapeText(a), " and ", ShapeText(b),
                     ", which do not fit");
  }
  shape.batch = *batch;
  return shape;
}

// Vectors become matrices with an axis of extent 1, as numpy does.
Shape AsMatrix(const Shape& shape, bool first) {
  if (shape.size() != 1) return shape;
  return first ? Shape{1, shape[0]} : Shape{shape[0], 1};
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& a = InputValue(graph, node, 0);
  const Value& b = InputValue(graph, node, 1);
  if (a.shape.empty() || b.shape.empty()) return Malformed("an operand is a scalar");
  if (a.type != b.type) {
    return Malformed("the operands have types ", TypeName(a.type), " and ", TypeName(b.type));
  }
  DLA_ASSIGN_OR_RETURN(const MatMulShape shape,
                       Resolve(node, AsMatrix(a.shape, true), AsMatrix(b.shape, false)));
  if (HasInput(node, 2) && InputValue(graph, node, 2).shape != Shape{shape.m}) {
    return Malformed("the bias has shape ", ShapeText(InputValue(graph, node, 2).shape), ", not ",
                     shape.m);
  }
  Shape result = shape.batch;
  if (a.shape.size() > 1) result.push_back(shape.e);
  if (b.shape.size() > 1) result.push_back(shape.m);
  outputs->push_back({a.type, result});
  return {};
}

// A dense copy of one operand: all batches, its matrix not transposed.
Tensor Expand(const TensorView& operand, const Shape& batch, bool transposed) {
  Shape shape = batch;
  const size_t rank = operand.shape.size();
  Shape from = operand.shape;
  Shape strides = DenseStrides(from);
  if (transposed) {
    std::swap(from[rank - 1], from[rank - 2]);
    std::swap(strides[rank - 1], strides[rank - 2]);
  }
  shape.push_back(from[rank - 2]);
  shape.push_back(from[rank - 1]);
  Tensor result = Tensor::Zeros({ElementType::kF32, shape});
  CopyStrided(shape, 4, operand.bytes, BroadcastStrides(from, strides, shape), result.bytes.data(),
              DenseStrides(shape));
  return result;
}

Status Evaluate(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  DLA_ASSIGN_OR_RETURN(const MatMulShape shape, Resolve(node, AsMatrix(inputs[0].shape, true),
                                                        AsMatrix(inputs[1].shape, false)));
  TensorView a_view = inputs[0], b_view = inputs[1];
  a_view.shape = AsMatrix(a_view.shape, true);
  b_view.shape = AsMatrix(b_view.shape, false);
  Tensor a = Expand(a_view, shape.batch, shape.trans_a);
  Tensor b = Expand(b_view, shape.batch, shape.trans_b);
  const bool bias = inputs.size() > 2 && inputs[2].present();
  for (int64_t i = 0; i < ElementCount(shape.batch); ++i) {
    MatMulKernel(shape.e, shape.c, shape.m, a.f32() + i * shape.e * shape.c,
                 b.f32() + i * shape.c * shape.m, bias ? inputs[2].f32() : nullptr,
                 outputs[0].f32() + i * shape.e * shape.m);
  }
  return {};
}

// Operands of rank 1 become matrices; the result drops the axis again.
Status LowerMatMul(Rewriter* rewriter, const Node& node) {
  const Shape a = InputValue(rewriter->graph(), node, 0).shape;
  const Shape b = InputValue(rewriter->graph(), node, 1).shape;
  std::vector<ValueId> inputs = node.inputs;
  if (a.size() > 1 && b.size() > 1) {
    rewriter->Finish("MatMul", inputs, {}, node.outputs[0]);
    return {};
  }
  if (a.size() == 1) {
    DLA_ASSIGN_OR_RETURN(inputs[0],
                         rewriter->Add("View", {inputs[0]}, {{"shape", AsMatrix(a, true)}}));
  }
  if (b.size() == 1) {
    DLA_ASSIGN_OR_RETURN(inputs[1],
                         rewriter->Add("View", {inputs[1]}, {{"shape", AsMatrix(b, false)}}));
  }
  DLA_ASSIGN_OR_RETURN(const ValueId product, rewriter->Add("MatMul", inputs));
  const Shape wanted = rewriter->value(node.outputs[0]).shape;
  rewriter->Finish("View", {product}, {{"shape", wanted}}, node.outputs[0]);
  return {};
}

Node CanonicalGemm(const Node& node) {
  Node canonical = node;
  canonical.op = "MatMul";
  canonical.attributes = {{"trans_a", GetInt(node.attributes, "transA", 0)},
                          {"trans_b", GetInt(node.attributes, "transB", 0)}};
  return canonical;
}

Status InferGemm(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& a = InputValue(graph, node, 0);
  const Value& b = InputValue(graph, node, 1);
  if (a.shape.size() != 2 || b.shape.size() != 2) {
    return Malformed("the operands have ranks ", a.shape.size(), " and ", b.shape.size(),
                     "; both must be matrices");
  }
  const ElementType last = HasInput(node, 2) ? InputValue(graph, node, 2).type : b.type;
  if (a.type != b.type || b.type != last) {
    return Malformed("the operands have types ", TypeName(a.type), ", ", TypeName(b.type), " and ",
                     TypeName(last));
  }
  DLA_ASSIGN_OR_RETURN(const MatMulShape shape, Resolve(CanonicalGemm(node), a.shape, b.shape));
  const Shape result = {shape.e, shape.m};
  if (HasInput(node, 2)) {
    const Value& c = InputValue(graph, node, 2);
    const auto sum = BroadcastShapes(result, c.shape);
    if (!sum || *sum != result) {
      return Malformed("operand C has shape ", ShapeText(c.shape), ", which does not broadcast to ",
                       ShapeText(result));
    }
  }
  outputs->push_back({a.type, result});
  return {};
}

Status LowerGemm(Rewriter* rewriter, const Node& node) {
  const float alpha = GetFloat(node.attributes, "alpha", 1);
  const float beta = GetFloat(node.attributes, "beta", 1);
  const AttributeMap attributes = CanonicalGemm(node).attributes;
  const std::vector<ValueId> operands = {node.inputs[0], node.inputs[1]};
  const bool add = HasInput(node, 2) && beta != 0;
  if (alpha == 1 && !add) {
    rewriter->Finish("MatMul", operands, attributes, node.outputs[0]);
    return {};
  }
  DLA_ASSIGN_OR_RETURN(ValueId value, rewriter->Add("MatMul", operands, attributes));
  const auto scale = [&](ValueId operand, float factor, const char* name, ValueId output) {
    const ValueId constant = FloatLike(rewriter, operand, static_cast<double>(factor), name);
    if (output == kNoValue) return rewriter->Add("Mul", {operand, constant});
    rewriter->Finish("Mul", {operand, constant}, {}, output);
    return Result<ValueId>(output);
  };
  if (alpha != 1) {
    DLA_ASSIGN_OR_RETURN(value, scale(value, alpha, "alpha", add ? kNoValue : node.outputs[0]));
  }
  if (!add) return {};
  ValueId addend = node.inputs[2];
  if (beta != 1) {
    DLA_ASSIGN_OR_RETURN(addend, scale(addend, beta, "beta", kNoValue));
  }
  rewriter->Finish("Add", {value, addend}, {}, node.outputs[0]);
  return {};
}

// Loops of the nest: batch axes, then e, c, m. N and G are always there.
struct MatMulLoops {
  std::vector<int> batch;
  int n, g, e, c, m;
};

// Strides of a matrix operand; `row` and `column` are the loops of its two last axes.
std::vector<int64_t> MatrixStrides(const Value& value, const MatMulShape& shape,
                                   const MatMulLoops& l, int row, int column, bool transposed) {
  std::vector<int64_t> strides(Idx(l.m) + 1, 0);
  const Shape& own = value.storage.strides;
  const size_t rank = value.shape.size();
  const auto fix = [](int64_t stride) { return stride == 0 ? 1 : stride; };
  strides[Idx(row)] = fix(own[rank - (transposed ? 1 : 2)]);
  strides[Idx(column)] = fix(own[rank - (transposed ? 2 : 1)]);
  const Shape batch(value.shape.begin(), value.shape.end() - 2);
  const Shape batch_strides(own.begin(), own.end() - 2);
  const Shape along = BroadcastStrides(batch, batch_strides, shape.batch);
  for (size_t i = 0; i < along.size(); ++i) strides[Idx(l.batch[i])] = along[i];
  return strides;
}

MatMulLoops AddLoops(const MatMulShape& shape, const Shape& b, NestBuilder* builder) {
  MatMulLoops l{};
  l.n = builder->AddLoop("N", 1, true);
  l.g = builder->AddLoop("G", 1, true);
  bool rows = false;
  for (size_t i = 0; i < shape.batch.size(); ++i) {
    // A batch axis of both operands is like a group, one of the first operand more rows of it.
    const size_t back = shape.batch.size() - i;
    const bool grouped = b.size() >= back + 2 && b[b.size() - 2 - back] > 1;
    rows = rows || (!grouped && shape.batch[i] > 1);
    l.batch.push_back(builder->AddLoop(grouped ? "G" : "E", shape.batch[i]));
  }
  l.e = builder->AddLoop("E", shape.e, shape.e == 1 && !rows);
  l.c = builder->AddLoop("C", shape.c, true);
  l.m = builder->AddLoop("M", shape.m, true);
  return l;
}

Result<Nest> MatMulNest(const Graph& graph, const Node& node) {
  const Value& a = InputValue(graph, node, 0);
  const Value& b = InputValue(graph, node, 1);
  DLA_ASSIGN_OR_RETURN(const MatMulShape shape, Resolve(node, a.shape, b.shape));
  NestBuilder builder(graph, node, Anchor::kContraction);
  const MatMulLoops l = AddLoops(shape, b.shape, &builder);
  std::vector<int64_t> input = MatrixStrides(a, shape, l, l.e, l.c, shape.trans_a);
  input[Idx(l.n)] = input[Idx(l.g)] = 1;
  builder.AddOperand(node.inputs[0], OperandClass::kInput, input);
  std::vector<int64_t> weight = MatrixStrides(b, shape, l, l.c, l.m, shape.trans_b);
  weight[Idx(l.g)] = 1;
  builder.AddOperand(node.inputs[1], OperandClass::kWeight, weight);
  if (HasInput(node, 2)) {
    std::vector<int64_t> bias(Idx(l.m) + 1, 0);
    bias[Idx(l.g)] = 1;
    bias[Idx(l.m)] = std::max<int64_t>(1, InputValue(graph, node, 2).storage.strides[0]);
    builder.set_bias(builder.AddOperand(node.inputs[2], OperandClass::kWeight, bias));
  }
  std::vector<NestBuilder::OutputAxis> axes;
  for (const int loop : l.batch) axes.push_back({-1, loop});
  axes.push_back({-1, l.e});
  axes.push_back({-1, l.m});
  builder.AddFusedAndOutput(axes, OperandClass::kOutput, l.n, l.g);
  const int accumulator = builder.Emit(MicroOp::kAccumulator);
  builder.EmitLoads(HasInput(node, 2) ? 3 : 2);
  builder.EmitFused(accumulator);
  return builder.Build();
}

}  // namespace

const OpDef kMatMulOp = {
    .name = "MatMul",
    .kind = OpKind::kContraction,
    .min_inputs = 2,
    .max_inputs = 3,
    .note = "the canonical form may have a bias and transposed operands",
    .infer = Infer,
    .evaluate = Evaluate,
    .lower = LowerMatMul,
    .nest = MatMulNest,
};

const OpDef kGemmOp = {
    .name = "Gemm",
    .min_inputs = 2,
    .max_inputs = 3,
    .attributes = kGemmAttributes,
    .infer = InferGemm,
    .lower = LowerGemm,
};

}  // namespace dla::ir
