// Softmax, LogSoftmax and Hardmax over one axis; before opset 13 over all axes from `axis` on,
// taken as one.
#include "ir/ops/ops.h"
#include "ir/ops/row.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"axes", AttributeKind::kInts, "", false, "of the canonical form"},
    {"axis", AttributeKind::kInt, "-1; before opset 13: 1", false,
     "before opset 13: the first axis of the block"},
};

// Axes of the canonical spelling, which names them; else the axis, or the first of the block.
Result<std::vector<int64_t>> AxesOf(const Node& node, const Shape& shape) {
  const int64_t rank = static_cast<int64_t>(shape.size());
  std::vector<int64_t> axes = GetInts(node.attributes, "axes");
  if (!axes.empty()) return NormalizeAxes(axes, rank);
  int64_t axis = GetInt(node.attributes, "axis", node.opset >= 13 ? -1 : 1);
  if (node.opset < 13 && axis == rank) return axes;  // a block of nothing: rows of one element
  DLA_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, rank));
  axes = {axis};
  while (node.opset < 13 && ++axis < rank) axes.push_back(axis);
  return axes;
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  DLA_RETURN_IF_ERROR(AxesOf(node, input.shape).status());
  outputs->push_back({input.type, input.shape});
  return {};
}

// An axis of extent 1 is added where there is none to reduce.
Status Lower(Rewriter* rewriter, const Node& node) {
  const Shape shape = InputValue(rewriter->graph(), node, 0).shape;
  DLA_ASSIGN_OR_RETURN(std::vector<int64_t> axes, AxesOf(node, shape));
  // Of a block of several axes Hardmax wants one index: they become one.
  const bool flatten = axes.empty() || (node.op == "Hardmax" && axes.size() > 1);
  if (!flatten) {
    rewriter->Finish(node.op, node.inputs, {{"axes", axes}}, node.outputs[0]);
    return {};
  }
  Shape flat = shape;
  flat.resize(axes.empty() ? shape.size() : Idx(axes[0]));
  flat.push_back(axes.empty() ? 1 : ElementCount({shape.begin() + axes[0], shape.end()}));
  axes = {static_cast<int64_t>(flat.size()) - 1};
  DLA_ASSIGN_OR_RETURN(const ValueId rows,
                       rewriter->Add("View", {node.inputs[0]}, {{"shape", flat}}));
  DLA_ASSIGN_OR_RETURN(const ValueId result, rewriter->Add(node.op, {rows}, {{"axes", axes}}));
  rewriter->Finish("View", {result}, {{"shape", shape}}, node.outputs[0]);
  return {};
}

int EmitSoftmax(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  const int shifted = w->Sub(x[0], w->Op(MicroOp::kReduceMax, x[0]));
  const int power = w->Op(MicroOp::kExp, shifted);
  return w->Div(power, w->Op(MicroOp::kReduceSum, power));
}

int EmitLogSoftmax(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  const int shifted = w->Sub(x[0], w->Op(MicroOp::kReduceMax, x[0]));
  const int sum = w->Op(MicroOp::kReduceSum, w->Op(MicroOp::kExp, shifted));
  return w->Sub(shifted, w->Op(MicroOp::kLog, sum));
}

// 1 at the first maximum.
int EmitHardmax(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  const int found = w->Test(MicroOp::kEqual, x[0], w->Op(MicroOp::kReduceMax, x[0]));
  const int index = w->Index(static_cast<int>(GetInts(attributes, "axes")[0]));
  const int candidate = w->Select(found, index, w->Const(ElementType::kI64, 0x1p52));
  const int first = w->Test(MicroOp::kEqual, index, w->Op(MicroOp::kReduceMin, candidate));
  return w->Select(first, w->Like(x[0], 1), w->Like(x[0], 0));
}

constexpr OpDef Block(std::string_view name, Emitter emit) {
  OpDef row = RowOf(name, emit, kAttributes);
  row.infer = Infer;
  row.lower = Lower;
  return row;
}

constexpr OpDef kRows[] = {
    Block("Hardmax", EmitHardmax),
    Block("LogSoftmax", EmitLogSoftmax),
    Block("Softmax", EmitSoftmax),
};

}  // namespace

std::span<const OpDef> SoftmaxRows() { return kRows; }

}  // namespace dla::ir
