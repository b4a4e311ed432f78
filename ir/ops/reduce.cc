// Reductions over whole axes, and global pooling, which is one.
#include <algorithm>

#include "ir/ops/ops.h"
#include "ir/ops/row.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"axes", AttributeKind::kInts, "all", false, "an input since opset 18 (ReduceSum: 13)"},
    {"count", AttributeKind::kInt, "", false, "of the canonical ReduceMean"},
    {"keepdims", AttributeKind::kInt, "1", false, ""},
    {"noop_with_empty_axes", AttributeKind::kInt, "0", false, ""},
};
constexpr AttributeDef kArgAttributes[] = {
    {"axes", AttributeKind::kInts, "", false, "of the canonical form: one axis"},
    {"axis", AttributeKind::kInt, "0", false, ""},
    {"keepdims", AttributeKind::kInt, "1", false, ""},
    {"select_last_index", AttributeKind::kInt, "0", false, "since opset 12"},
};
constexpr AttributeDef kLpAttributes[] = {{"p", AttributeKind::kInt, "2", false, ""}};

// The axes that a reduction runs over, ascending.
Result<std::vector<int64_t>> Axes(const Graph& graph, const Node& node) {
  const int64_t rank = static_cast<int64_t>(InputValue(graph, node, 0).shape.size());
  std::vector<int64_t> axes = GetInts(node.attributes, "axes");
  if (HasInput(node, 1)) {
    DLA_ASSIGN_OR_RETURN(axes, RequireInts(graph, node, 1, "axes"));
  }
  if (axes.empty() && GetInt(node.attributes, "noop_with_empty_axes", 0) == 0) {
    for (int64_t i = 0; i < rank; ++i) axes.push_back(i);
  }
  return NormalizeAxes(axes, rank);
}

Shape DroppedShape(const Shape& shape, const std::vector<int64_t>& axes) {
  Shape result;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i))) {
      result.push_back(shape[i]);
    }
  }
  return result;
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, Axes(graph, node));
  const bool keep = GetInt(node.attributes, "keepdims", 1) != 0;
  outputs->push_back(
      {input.type, keep ? KeptShape(input.shape, axes) : DroppedShape(input.shape, axes)});
  return {};
}

Status InferArg(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  const int64_t rank = static_cast<int64_t>(input.shape.size());
  std::vector<int64_t> axes = GetInts(node.attributes, "axes");
  if (axes.empty()) axes = {GetInt(node.attributes, "axis", 0)};
  DLA_ASSIGN_OR_RETURN(axes, NormalizeAxes(axes, rank));
  if (input.shape[Idx(axes[0])] == 0) return Malformed("axis ", axes[0], " is empty");
  const bool keep = GetInt(node.attributes, "keepdims", 1) != 0;
  outputs->push_back(
      {ElementType::kI64, keep ? KeptShape(input.shape, axes) : DroppedShape(input.shape, axes)});
  return {};
}

Status InferGlobal(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  if (input.shape.size() < 2) {
    return Malformed("the input has rank ", input.shape.size(), "; at least 2 is needed");
  }
  Shape shape(input.shape.size(), 1);
  shape[0] = input.shape[0];
  shape[1] = input.shape[1];
  outputs->push_back({input.type, shape});
  return {};
}

// --- Programs.

template <MicroOp reduce>
int EmitReduce(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  return w->Op(reduce, x[0]);
}

int EmitMean(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  return w->Over(w->Op(MicroOp::kReduceSum, x[0]),
                 static_cast<double>(GetInt(attributes, "count", 1)));
}

int EmitL1(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  return w->Op(MicroOp::kReduceSum, w->Op(MicroOp::kAbs, x[0]));
}

int EmitSumSquare(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  return w->Op(MicroOp::kReduceSum, w->Mul(x[0], x[0]));
}

// Functions of floats: integers go by way of f64.
template <typename F>
int InFloat(int x, MicroWriter* w, F f) {
  const ElementType type = w->TypeOf(x);
  return w->Cast(f(w->IsFloat(x) ? x : w->Cast(x, ElementType::kF64)), type);
}

int EmitL2(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  return InFloat(x[0], w, [&](int v) {
    return w->Op(MicroOp::kSqrt, w->Op(MicroOp::kReduceSum, w->Mul(v, v)));
  });
}

int EmitLogSum(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  return InFloat(x[0], w,
                 [&](int v) { return w->Op(MicroOp::kLog, w->Op(MicroOp::kReduceSum, v)); });
}

// Shifted by the maximum, where that is finite.
int EmitLogSumExp(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  return InFloat(x[0], w, [&](int v) {
    const int max = w->Op(MicroOp::kReduceMax, v);
    const int shift = w->Select(w->Test(MicroOp::kIsInf, max, 1.0, 1.0), w->Like(max, 0), max);
    const int power = w->Op(MicroOp::kExp, w->Sub(v, shift));
    return w->Add(w->Op(MicroOp::kLog, w->Op(MicroOp::kReduceSum, power)), shift);
  });
}

// The lowest (or highest) index at which the extreme stands.
template <MicroOp extreme>
int EmitArg(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  const bool last = GetInt(attributes, "select_last_index", 0) != 0;
  const int found = w->Test(MicroOp::kEqual, x[0], w->Op(extreme, x[0]));
  const int index = w->Index(static_cast<int>(GetInts(attributes, "axes")[0]));
  const int elsewhere = w->Const(ElementType::kI64, last ? -1 : 0x1p52);
  const int candidate = w->Select(found, index, elsewhere);
  return w->Op(last ? MicroOp::kReduceMax : MicroOp::kReduceMin, candidate);
}

// --- Rewriting: the canonical reduction has its axes as an attribute and keeps them.

Status LowerTo(Rewriter* rewriter, const Node& node, ValueId input, const std::string& op,
               AttributeMap attributes) {
  const std::vector<int64_t> axes = GetInts(attributes, "axes");
  const Shape wanted = rewriter->value(node.outputs[0]).shape;
  attributes["keepdims"] = int64_t{1};
  if (wanted.size() == rewriter->value(input).shape.size()) {
    rewriter->Finish(op, {input}, std::move(attributes), node.outputs[0]);
    return {};
  }
  DLA_ASSIGN_OR_RETURN(const ValueId value, rewriter->Add(op, {input}, std::move(attributes)));
  rewriter->Finish("View", {value}, {{"shape", wanted}}, node.outputs[0]);
  return {};
}

AttributeMap WithCount(const Shape& shape, const std::vector<int64_t>& axes,
                       const std::string& op) {
  AttributeMap attributes = {{"axes", axes}};
  int64_t count = 1;
  for (const int64_t axis : axes) count *= shape[Idx(axis)];
  if (op == "ReduceMean") attributes["count"] = count;
  return attributes;
}

Status Lower(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, Axes(rewriter->graph(), node));
  const Shape shape = InputValue(rewriter->graph(), node, 0).shape;
  AttributeMap attributes = WithCount(shape, axes, node.op);
  // Over no axes, what is done to each element remains: ReduceL1 gives absolute values.
  if (axes.empty()) attributes["noop_with_empty_axes"] = int64_t{1};
  return LowerTo(rewriter, node, node.inputs[0], node.op, std::move(attributes));
}

Status LowerArg(Rewriter* rewriter, const Node& node) {
  const int64_t rank = static_cast<int64_t>(InputValue(rewriter->graph(), node, 0).shape.size());
  DLA_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(GetInt(node.attributes, "axis", 0), rank));
  return LowerTo(rewriter, node, node.inputs[0], node.op,
                 {{"axes", std::vector<int64_t>{axis}},
                  {"select_last_index", GetInt(node.attributes, "select_last_index", 0)}});
}

Status LowerGlobal(Rewriter* rewriter, const Node& node) {
  const Shape shape = InputValue(rewriter->graph(), node, 0).shape;
  std::vector<int64_t> axes;
  for (size_t i = 2; i < shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (axes.empty()) {
    rewriter->Finish("View", {node.inputs[0]}, {{"shape", shape}}, node.outputs[0]);
    return {};
  }
  const std::string op = node.op == "GlobalAveragePool" ? "ReduceMean"
                         : node.op == "GlobalMaxPool"   ? "ReduceMax"
                                                        : "";
  if (!op.empty()) {
    return LowerTo(rewriter, node, node.inputs[0], op, WithCount(shape, axes, op));
  }
  const int64_t p = GetInt(node.attributes, "p", 2);
  if (p == 1 || p == 2) {
    return LowerTo(rewriter, node, node.inputs[0], p == 1 ? "ReduceL1" : "ReduceL2",
                   {{"axes", axes}});
  }
  DLA_ASSIGN_OR_RETURN(const ValueId powers, PowerOfAbs(rewriter, node.inputs[0], p));
  DLA_ASSIGN_OR_RETURN(const ValueId sum, rewriter->Add("ReduceSum", {powers}, {{"axes", axes}}));
  rewriter->Finish("Pow", {sum, FloatLike(rewriter, sum, 1.0 / static_cast<double>(p), "root")}, {},
                   node.outputs[0]);
  return {};
}

constexpr OpDef Reduction(std::string_view name, Emitter emit) {
  OpDef row = RowOf(name, emit, kAttributes);
  row.max_file_inputs = 2;
  row.infer = Infer;
  row.lower = Lower;
  return row;
}

constexpr OpDef Arg(std::string_view name, Emitter emit) {
  OpDef row = RowOf(name, emit, kArgAttributes);
  row.infer = InferArg;
  row.lower = LowerArg;
  return row;
}

constexpr OpDef Global(std::string_view name, std::span<const AttributeDef> attributes = {}) {
  OpDef row;
  row.name = name;
  row.attributes = attributes;
  row.infer = InferGlobal;
  row.lower = LowerGlobal;
  return row;
}

constexpr OpDef kRows[] = {
    Arg("ArgMax", EmitArg<MicroOp::kReduceMax>),
    Arg("ArgMin", EmitArg<MicroOp::kReduceMin>),
    Global("GlobalAveragePool"),
    Global("GlobalLpPool", kLpAttributes),
    Global("GlobalMaxPool"),
    Reduction("ReduceL1", EmitL1),
    Reduction("ReduceL2", EmitL2),
    Reduction("ReduceLogSum", EmitLogSum),
    Reduction("ReduceLogSumExp", EmitLogSumExp),
    Reduction("ReduceMax", EmitReduce<MicroOp::kReduceMax>),
    Reduction("ReduceMean", EmitMean),
    Reduction("ReduceMin", EmitReduce<MicroOp::kReduceMin>),
    Reduction("ReduceProd", EmitReduce<MicroOp::kReduceProduct>),
    Reduction("ReduceSum", EmitReduce<MicroOp::kReduceSum>),
    Reduction("ReduceSumSquare", EmitSumSquare),
};

}  // namespace

ValueId FloatLike(Rewriter* rewriter, ValueId like, double number, const std::string& name) {
  Tensor tensor = Tensor::Zeros({rewriter->value(like).type, {}});
  WriteDouble(&tensor, 0, number);
  return rewriter->AddConstant(std::move(tensor), name);
}

Result<ValueId> PowerOfAbs(Rewriter* rewriter, ValueId value, int64_t p) {
  DLA_ASSIGN_OR_RETURN(const ValueId abs, rewriter->Add("Abs", {value}));
  if (p == 1) return abs;
  if (p == 2) return rewriter->Add("Mul", {abs, abs});
  const ValueId exponent = FloatLike(rewriter, value, static_cast<double>(p), "p");
  return rewriter->Add("Pow", {abs, exponent});
}

std::span<const OpDef> ReductionRows() { return kRows; }

}  // namespace dla::ir
