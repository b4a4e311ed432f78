// Broadcast (canonical) repeats entries; Expand is one, Tile is one of a view with an axis more.
#include "ir/ops/map.h"
#include "ir/ops/ops.h"
#include "ir/ops/pick.h"
#include "support/checked.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {{"shape", AttributeKind::kInts, "", true, "of the output"}};

Status InferBroadcast(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  const Shape shape = GetInts(node.attributes, "shape");
  const auto result = BroadcastShapes(input.shape, shape);
  if (!CheckedElementCount(shape) || !result || *result != shape) {
    return Malformed("a tensor of shape ", ShapeText(input.shape), " does not broadcast to ",
                     ShapeText(shape));
  }
  outputs->push_back({input.type, shape});
  return {};
}

int EmitCopy(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  return w->Op(MicroOp::kCopy, x[0]);
}

Status InferExpand(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const Shape shape, RequireInts(graph, node, 1, "shape"));
  for (const int64_t extent : shape) {
    if (extent < 0) return Malformed("the shape ", ShapeText(shape), " is not possible");
  }
  const auto result = BroadcastShapes(input.shape, shape);
  if (!result || !CheckedElementCount(*result)) {
    return Malformed("a tensor of shape ", ShapeText(input.shape), " does not broadcast to ",
                     ShapeText(shape));
  }
  outputs->push_back({input.type, *result});
  return {};
}

Status LowerExpand(Rewriter* rewriter, const Node& node) {
  const Shape shape = rewriter->value(node.outputs[0]).shape;
  const Shape own = rewriter->value(node.inputs[0]).shape;
  if (ElementCount(own) == ElementCount(shape)) {
    return Reshaped(rewriter, node.inputs[0], shape, node.outputs[0]).status();
  }
  rewriter->Finish("Broadcast", {node.inputs[0]}, {{"shape", shape}}, node.outputs[0]);
  return {};
}

Status InferTile(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> repeats, RequireInts(graph, node, 1, "repeats"));
  if (repeats.size() != input.shape.size()) {
    return Malformed("there are ", repeats.size(), " repeats, the input has rank ",
                     input.shape.size());
  }
  Shape shape = input.shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto extent = repeats[i] < 0 ? std::nullopt : CheckedMul(shape[i], repeats[i]);
    if (!extent) return Malformed("axis ", i, " is repeated ", repeats[i], " times");
    shape[i] = *extent;
  }
  outputs->push_back({input.type, shape});
  return {};
}

Status LowerTile(Rewriter* rewriter, const Node& node) {
  const Shape own = rewriter->value(node.inputs[0]).shape;
  const Shape shape = rewriter->value(node.outputs[0]).shape;
  Shape split, repeated;
  for (size_t i = 0; i < own.size(); ++i) {
    if (shape[i] != own[i]) {
      split.push_back(1);
      repeated.push_back(shape[i] / own[i]);
    }
    split.push_back(own[i]);
    repeated.push_back(own[i]);
  }
  if (split.size() == own.size()) {
    return Reshaped(rewriter, node.inputs[0], shape, node.outputs[0]).status();
  }
  DLA_ASSIGN_OR_RETURN(const ValueId input, Reshaped(rewriter, node.inputs[0], split));
  DLA_ASSIGN_OR_RETURN(const ValueId result,
                       rewriter->Add("Broadcast", {input}, {{"shape", repeated}}));
  return Reshaped(rewriter, result, shape, node.outputs[0]).status();
}

constexpr OpDef BroadcastRow() {
  OpDef row = Map("Broadcast", 1, EmitCopy, kAttributes);
  row.onnx = false;
  row.note = "what Expand and Tile become";
  row.infer = InferBroadcast;
  return row;
}

constexpr OpDef Onnx(std::string_view name, int opset, decltype(OpDef::infer) infer,
                     decltype(OpDef::lower) lower) {
  OpDef row;
  row.name = name;
  row.first_opset = opset;
  row.min_inputs = 2;
  row.max_inputs = 2;
  row.infer = infer;
  row.lower = lower;
  return row;
}

constexpr OpDef kRows[] = {
    BroadcastRow(),
    Onnx("Expand", 8, InferExpand, LowerExpand),
    Onnx("Tile", 6, InferTile, LowerTile),
};

}  // namespace

std::span<const OpDef> BroadcastRows() { return kRows; }

}  // namespace dla::ir
