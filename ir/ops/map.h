// Element-wise rows: each is the micro-operations that it emits. Inference, evaluation, the nest,
// broadcasting and fusion are the same for all.
#pragma once

#include <span>
#include <string_view>

#include "ir/micro_writer.h"
#include "ir/op.h"

namespace dla::ir {

using Emitter = int (*)(const AttributeMap&, std::span<const int>, MicroWriter*);

// Operands of one type, broadcast as numpy's; the result has their type, or is bool.
Status InferMap(const Graph& graph, const Node& node, std::vector<TensorType>* outputs);
Status InferTest(const Graph& graph, const Node& node, std::vector<TensorType>* outputs);
// The broadcast of all operands' shapes.
Result<Shape> BroadcastOperands(const Graph& graph, const Node& node);

Status EvaluateMap(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs);
Result<Nest> MapNest(const Graph& graph, const Node& node);

// The program of a bare node with an emitter: loads of its operands, then what it emits.
MicroProgram ProgramOf(const Node& node, std::span<const ElementType> operands);

template <MicroOp op>
int EmitUnary(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  return w->Op(op, x[0]);
}
template <MicroOp op>
int EmitBinary(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  return w->Op(op, x[0], x[1]);
}

constexpr OpDef Map(std::string_view name, int inputs, Emitter emit,
                    std::span<const AttributeDef> attributes = {}) {
  OpDef row;
  row.name = name;
  row.kind = OpKind::kMap;
  row.min_inputs = inputs;
  row.max_inputs = inputs;
  row.attributes = attributes;
  row.infer = InferMap;
  row.evaluate = EvaluateMap;
  row.emit = emit;
  row.nest = MapNest;
  return row;
}

// Before opset 7 the second operand of two had an attribute `axis`: where its axes stand among the
// first one's, which it is repeated to (`broadcast`, which today's rule does not need).
inline constexpr AttributeDef kOldBroadcast[] = {
    {"axis", AttributeKind::kInt, "aligned at the end", false, "before opset 7"},
    {"broadcast", AttributeKind::kInt, "0", false, "before opset 7; ignored"}};
Status LowerAligned(Rewriter* rewriter, const Node& node);
Status CheckOldBroadcast(const Node& node);
// The result's shape where the node has that attribute.
Result<Shape> AlignedShape(const Graph& graph, const Node& node);

template <Status (*kInfer)(const Graph&, const Node&, std::vector<TensorType>*)>
Status InferAligned(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  DLA_RETURN_IF_ERROR(CheckOldBroadcast(node));
  if (!node.attributes.contains("axis")) return kInfer(graph, node, outputs);
  // As if the second operand had the first one's shape.
  DLA_ASSIGN_OR_RETURN(Shape shape, AlignedShape(graph, node));
  Node same = node;
  same.inputs[1] = node.inputs[0];
  DLA_RETURN_IF_ERROR(kInfer(graph, same, outputs));
  outputs->back().shape = std::move(shape);
  return {};
}

template <Status (*kInfer)(const Graph&, const Node&, std::vector<TensorType>*)>
constexpr OpDef Aligned(OpDef row) {
  row.attributes = kOldBroadcast;
  row.infer = InferAligned<kInfer>;
  row.lower = LowerAligned;
  return row;
}

constexpr OpDef Since(OpDef row, int opset) {
  row.first_opset = opset;
  return row;
}

}  // namespace dla::ir
