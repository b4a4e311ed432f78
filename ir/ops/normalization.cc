// Normalisation of rows: LayerNormalization, InstanceNormalization, GroupNormalization and
// MeanVarianceNormalization are one canonical row, Normalize; LpNormalization is another; LRN is a
// sum pool over channels. Statistics take two passes: the mean, then the centred squares.
#include <algorithm>

#include "ir/ops/ops.h"
#include "ir/ops/row.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kNormalizeAttributes[] = {
    {"axes", AttributeKind::kInts, "", true, ""},
    {"count", AttributeKind::kInt, "", true, "elements of a row"},
    {"epsilon", AttributeKind::kFloat, "0", false, "added to the variance"},
    {"root_epsilon", AttributeKind::kFloat, "0", false, "added to its root"},
};
constexpr AttributeDef kLayerAttributes[] = {
    {"axis", AttributeKind::kInt, "-1", false, ""},
    {"epsilon", AttributeKind::kFloat, "1e-5", false, ""},
    {"stash_type", AttributeKind::kInt, "1", false, "of the statistics: f32"},
};
constexpr AttributeDef kEpsilonAttributes[] = {
    {"epsilon", AttributeKind::kFloat, "1e-5", false, ""}};
constexpr AttributeDef kGroupAttributes[] = {
    {"epsilon", AttributeKind::kFloat, "1e-5", false, ""},
    {"num_groups", AttributeKind::kInt, "", true, ""},
    {"stash_type", AttributeKind::kInt, "1", false, "of the statistics: f32"},
};
constexpr AttributeDef kAxesAttributes[] = {{"axes", AttributeKind::kInts, "0, 2, 3", false, ""}};
constexpr AttributeDef kLpAttributes[] = {
    {"axes", AttributeKind::kInts, "", false, "of the canonical form"},
    {"axis", AttributeKind::kInt, "-1", false, ""},
    {"p", AttributeKind::kInt, "2", false, "1 or 2"},
};
constexpr AttributeDef kLrnAttributes[] = {
    {"alpha", AttributeKind::kFloat, "0.0001", false, ""},
    {"beta", AttributeKind::kFloat, "0.75", false, ""},
    {"bias", AttributeKind::kFloat, "1", false, ""},
    {"size", AttributeKind::kInt, "", true, ""},
};

// (x - mean) / sqrt(variance + epsilon) * scale + bias
int EmitNormalize(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  const double count = static_cast<double>(GetInt(attributes, "count", 1));
  const double epsilon = static_cast<double>(GetFloat(attributes, "epsilon", 0));
  const float root_epsilon = GetFloat(attributes, "root_epsilon", 0);
  const int centred = w->Sub(x[0], w->Over(w->Op(MicroOp::kReduceSum, x[0]), count));
  const int squares = w->Op(MicroOp::kReduceSum, w->Mul(centred, centred));
  int root = w->Op(MicroOp::kSqrt, w->Plus(w->Over(squares, count), epsilon));
  if (root_epsilon != 0) root = w->Plus(root, static_cast<double>(root_epsilon));
  int result = w->Div(centred, root);
  if (x.size() > 1) result = w->Mul(result, x[1]);
  if (x.size() > 2) result = w->Add(result, x[2]);
  return result;
}

Status InferNormalize(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  DLA_RETURN_IF_ERROR(InferMap(graph, node, outputs));
  if (outputs->back().shape != InputValue(graph, node, 0).shape) {
    return Malformed("scale or bias do not broadcast to the input");
  }
  return {};
}

std::vector<int64_t> AxesFrom(int64_t first, size_t rank) {
  std::vector<int64_t> axes;
  for (int64_t i = first; i < static_cast<int64_t>(rank); ++i) axes.push_back(i);
  return axes;
}

AttributeMap NormalizeAttributes(const Shape& shape, const std::vector<int64_t>& axes,
                                 float epsilon) {
  int64_t count = 1;
  for (const int64_t axis : axes) count *= shape[Idx(axis)];
  return {{"axes", axes}, {"count", count}, {"epsilon", epsilon}};
}

float Epsilon(const Node& node) { return GetFloat(node.attributes, "epsilon", 1e-5f); }

// --- LayerNormalization, with its statistics as further results.

Status InferLayer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(GetInt(node.attributes, "axis", -1),
                                                         static_cast<int64_t>(input.shape.size())));
  const Shape row(input.shape.begin() + axis, input.shape.end());
  for (const int i : {1, 2}) {
    if (!HasInput(node, i)) continue;
    const Value& value = InputValue(graph, node, i);
    const auto shape = BroadcastShapes(value.shape, input.shape);
    if (!shape || *shape != input.shape || value.type != input.type) {
      return Malformed("'", value.name, "' is ", TypeName(value.type), " ", ShapeText(value.shape),
                       ", which does not fit the input's ", TypeName(input.type), " ",
                       ShapeText(input.shape));
    }
  }
  const Shape kept = KeptShape(input.shape, AxesFrom(axis, input.shape.size()));
  const ElementType statistics =
      input.type == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32;
  *outputs = {{input.type, input.shape}, {statistics, kept}, {statistics, kept}};
  return {};
}

// The mean and 1 / sqrt(variance + epsilon), as nodes of their own.
Status LowerStatistics(Rewriter* rewriter, const Node& node, const AttributeMap& attributes) {
  ValueId input = node.inputs[0];
  const ElementType wanted =
      rewriter->value(input).type == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32;
  if (rewriter->value(input).type != wanted) {
    DLA_ASSIGN_OR_RETURN(input,
                         rewriter->Add("Cast", {input}, {{"to", std::string(TypeName(wanted))}}));
  }
  AttributeMap row = attributes;
  row.erase("epsilon");
  row["keepdims"] = int64_t{1};
  DLA_ASSIGN_OR_RETURN(const ValueId mean, rewriter->Add("ReduceMean", {input}, row));
  if (node.outputs[1] != kNoValue) {
    rewriter->Finish("View", {mean}, {{"shape", Shape(rewriter->value(mean).shape)}},
                     node.outputs[1]);
  }
  if (node.outputs.size() < 3 || node.outputs[2] == kNoValue) return {};
  DLA_ASSIGN_OR_RETURN(const ValueId centred, rewriter->Add("Sub", {input, mean}));
  DLA_ASSIGN_OR_RETURN(const ValueId squares, rewriter->Add("Mul", {centred, centred}));
  DLA_ASSIGN_OR_RETURN(const ValueId variance, rewriter->Add("ReduceMean", {squares}, row));
  const ValueId epsilon =
      FloatLike(rewriter, variance, static_cast<double>(Epsilon(node)), "epsilon");
  DLA_ASSIGN_OR_RETURN(const ValueId shifted, rewriter->Add("Add", {variance, epsilon}));
  DLA_ASSIGN_OR_RETURN(const ValueId root, rewriter->Add("Sqrt", {shifted}));
  rewriter->Finish("Reciprocal", {root}, {}, node.outputs[2]);
  return {};
}

Status LowerLayer(Rewriter* rewriter, const Node& node) {
  const Shape shape = InputValue(rewriter->graph(), node, 0).shape;
  DLA_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(GetInt(node.attributes, "axis", -1),
                                                         static_cast<int64_t>(shape.size())));
  const AttributeMap attributes =
      NormalizeAttributes(shape, AxesFrom(axis, shape.size()), Epsilon(node));
  if (node.outputs.size() > 1) DLA_RETURN_IF_ERROR(LowerStatistics(rewriter, node, attributes));
  if (node.outputs[0] != kNoValue) {
    rewriter->Finish("Normalize", node.inputs, attributes, node.outputs[0]);
  }
  return {};
}

// --- InstanceNormalization: a scale and a bias for each channel.

Status InferInstance(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  if (input.shape.size() < 3) {
    return Malformed("the input has rank ", input.shape.size(), "; at least 3 is needed");
  }
  for (const int i : {1, 2}) {
    const Value& value = InputValue(graph, node, i);
    if (value.shape != Shape{input.shape[1]} || value.type != input.type) {
      return Malformed("'", value.name, "' is ", TypeName(value.type), " ", ShapeText(value.shape),
                       ", the input has ", input.shape[1], " channels of ", TypeName(input.type));
    }
  }
  outputs->push_back({input.type, input.shape});
  return {};
}

Result<ValueId> AsShape(Rewriter* rewriter, ValueId value, const Shape& shape) {
  return rewriter->Add("View", {value}, {{"shape", shape}});
}

Status LowerInstance(Rewriter* rewriter, const Node& node) {
  const Shape shape = InputValue(rewriter->graph(), node, 0).shape;
  Shape channel(shape.size() - 1, 1);
  channel[0] = shape[1];
  DLA_ASSIGN_OR_RETURN(const ValueId scale, AsShape(rewriter, node.inputs[1], channel));
  DLA_ASSIGN_OR_RETURN(const ValueId bias, AsShape(rewriter, node.inputs[2], channel));
  rewriter->Finish("Normalize", {node.inputs[0], scale, bias},
                   NormalizeAttributes(shape, AxesFrom(2, shape.size()), Epsilon(node)),
                   node.outputs[0]);
  return {};
}

// --- GroupNormalization: before opset 21 scale and bias of each group, then of each channel.

Status InferGroup(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  const int64_t groups = GetInt(node.attributes, "num_groups", 1);
  if (input.shape.size() < 3 || groups < 1 || input.shape[1] % groups != 0) {
    return Malformed("the input has shape ", ShapeText(input.shape), ", which does not split into ",
                     groups, " groups of channels");
  }
  const int64_t entries = node.opset >= 21 ? input.shape[1] : groups;
  for (const int i : {1, 2}) {
    const Value& value = InputValue(graph, node, i);
    if (value.shape != Shape{entries} || value.type != input.type) {
      return Malformed("'", value.name, "' is ", TypeName(value.type), " ", ShapeText(value.shape),
                       ", not ", entries, " elements of ", TypeName(input.type));
    }
  }
  outputs->push_back({input.type, input.shape});
  return {};
}

Status LowerGroup(Rewriter* rewriter, const Node& node) {
  const Shape shape = InputValue(rewriter->graph(), node, 0).shape;
  const int64_t groups = GetInt(node.attributes, "num_groups", 1);
  Shape split = {shape[0], groups, shape[1] / groups,
                 ElementCount({shape.begin() + 2, shape.end()})};
  const Shape channel = {groups, node.opset >= 21 ? split[2] : 1, 1};
  DLA_ASSIGN_OR_RETURN(const ValueId input, AsShape(rewriter, node.inputs[0], split));
  DLA_ASSIGN_OR_RETURN(const ValueId scale, AsShape(rewriter, node.inputs[1], channel));
  DLA_ASSIGN_OR_RETURN(const ValueId bias, AsShape(rewriter, node.inputs[2], channel));
  DLA_ASSIGN_OR_RETURN(const ValueId result,
                       rewriter->Add("Normalize", {input, scale, bias},
                                     NormalizeAttributes(split, {2, 3}, Epsilon(node))));
  rewriter->Finish("View", {result}, {{"shape", shape}}, node.outputs[0]);
  return {};
}

// --- MeanVarianceNormalization.

Result<std::vector<int64_t>> VarianceAxes(const Node& node, const Shape& shape) {
  return NormalizeAxes(GetInts(node.attributes, "axes", {0, 2, 3}),
                       static_cast<int64_t>(shape.size()));
}

Status InferVariance(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  DLA_RETURN_IF_ERROR(VarianceAxes(node, input.shape).status());
  outputs->push_back({input.type, input.shape});
  return {};
}

Status LowerVariance(Rewriter* rewriter, const Node& node) {
  const Shape shape = InputValue(rewriter->graph(), node, 0).shape;
  DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, VarianceAxes(node, shape));
  AttributeMap attributes = NormalizeAttributes(shape, axes, 0);
  attributes["root_epsilon"] = 1e-9f;
  rewriter->Finish("Normalize", {node.inputs[0]}, std::move(attributes), node.outputs[0]);
  return {};
}

// --- LpNormalization: a row of zeros stays one.

int EmitLp(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  const bool one = GetInt(attributes, "p", 2) == 1;
  const int powers = one ? w->Op(MicroOp::kAbs, x[0]) : w->Mul(x[0], x[0]);
  int norm = w->Op(MicroOp::kReduceSum, powers);
  if (!one) norm = w->Op(MicroOp::kSqrt, norm);
  const int zero = w->Like(norm, 0);
  return w->Select(w->Test(MicroOp::kEqual, norm, zero), zero, w->Div(x[0], norm));
}

Status InferLp(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  const int64_t p = GetInt(node.attributes, "p", 2);
  if (p != 1 && p != 2) return Malformed("attribute 'p' is ", p, ", not 1 or 2");
  DLA_RETURN_IF_ERROR(
      NormalizeAxis(GetInt(node.attributes, "axis", -1), static_cast<int64_t>(input.shape.size()))
          .status());
  outputs->push_back({input.type, input.shape});
  return {};
}

Status LowerLp(Rewriter* rewriter, const Node& node) {
  const int64_t rank = static_cast<int64_t>(InputValue(rewriter->graph(), node, 0).shape.size());
  DLA_ASSIGN_OR_RETURN(const int64_t axis,
                       NormalizeAxis(GetInt(node.attributes, "axis", -1), rank));
  rewriter->Finish("LpNormalization", node.inputs,
                   {{"axes", std::vector<int64_t>{axis}}, {"p", GetInt(node.attributes, "p", 2)}},
                   node.outputs[0]);
  return {};
}

// --- LRN: x / (bias + alpha / size * sum of squares of the channels around)^beta.

Status InferLrn(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  const int64_t size = GetInt(node.attributes, "size", 1);
  if (input.shape.size() < 2) return Malformed("the input has rank ", input.shape.size());
  if (size < 1 || size > (1 << 20)) return Malformed("attribute 'size' is ", size);
  outputs->push_back({input.type, input.shape});
  return {};
}

Status LowerLrn(Rewriter* rewriter, const Node& node) {
  const Shape shape = InputValue(rewriter->graph(), node, 0).shape;
  const int64_t size = GetInt(node.attributes, "size", 1);
  const double alpha = static_cast<double>(GetFloat(node.attributes, "alpha", 1e-4f));
  const Shape flat = {shape[0], 1, shape[1], ElementCount({shape.begin() + 2, shape.end()})};
  DLA_ASSIGN_OR_RETURN(const ValueId x, AsShape(rewriter, node.inputs[0], flat));
  DLA_ASSIGN_OR_RETURN(const ValueId squares, rewriter->Add("Mul", {x, x}));
  const int64_t before = (size - 1) / 2;
  DLA_ASSIGN_OR_RETURN(
      const ValueId sums,
      rewriter->Add("SumPool", {squares},
                    {{"kernel_shape", std::vector<int64_t>{size, 1}},
                     {"pads", std::vector<int64_t>{before, 0, size - 1 - before, 0}}}));
  const auto constant = [&](double number, const char* name) {
    return FloatLike(rewriter, x, number, name);
  };
  const ValueId factor = constant(alpha / static_cast<double>(size), "alpha");
  DLA_ASSIGN_OR_RETURN(ValueId value, rewriter->Add("Mul", {sums, factor}));
  const float bias = GetFloat(node.attributes, "bias", 1);
  DLA_ASSIGN_OR_RETURN(value,
                       rewriter->Add("Add", {value, constant(static_cast<double>(bias), "bias")}));
  const float beta = GetFloat(node.attributes, "beta", 0.75f);
  DLA_ASSIGN_OR_RETURN(value,
                       rewriter->Add("Pow", {value, constant(static_cast<double>(beta), "beta")}));
  DLA_ASSIGN_OR_RETURN(value, rewriter->Add("Div", {x, value}));
  rewriter->Finish("View", {value}, {{"shape", shape}}, node.outputs[0]);
  return {};
}

constexpr OpDef Onnx(std::string_view name, int opset, int min_inputs, int max_inputs,
                     std::span<const AttributeDef> attributes, decltype(OpDef::infer) infer,
                     decltype(OpDef::lower) lower) {
  OpDef row;
  row.name = name;
  row.first_opset = opset;
  row.min_inputs = min_inputs;
  row.max_inputs = max_inputs;
  row.attributes = attributes;
  row.infer = infer;
  row.lower = lower;
  return row;
}

constexpr OpDef NormalizeRow() {
  OpDef row = RowOf("Normalize", EmitNormalize, kNormalizeAttributes);
  row.onnx = false;
  row.max_inputs = 3;
  row.note = "what the normalisations of rows become";
  row.infer = InferNormalize;
  return row;
}

constexpr OpDef LayerRow() {
  OpDef row = Onnx("LayerNormalization", 17, 2, 3, kLayerAttributes, InferLayer, LowerLayer);
  row.max_outputs = 3;
  return row;
}

constexpr OpDef LpRow() {
  OpDef row = RowOf("LpNormalization", EmitLp, kLpAttributes);
  row.infer = InferLp;
  row.lower = LowerLp;
  return row;
}

constexpr OpDef kRows[] = {
    Onnx("GroupNormalization", 18, 3, 3, kGroupAttributes, InferGroup, LowerGroup),
    Onnx("InstanceNormalization", 1, 3, 3, kEpsilonAttributes, InferInstance, LowerInstance),
    Onnx("LRN", 1, 1, 1, kLrnAttributes, InferLrn, LowerLrn),
    LayerRow(),
    LpRow(),
    Onnx("MeanVarianceNormalization", 9, 1, 1, kAxesAttributes, InferVariance, LowerVariance),
    NormalizeRow(),
};

}  // namespace

std::span<const OpDef> NormalizationRows() { return kRows; }

}  // namespace dla::ir
