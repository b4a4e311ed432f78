// Concat: operands become views of the result where the layout pass can arrange it.
#include "ir/kernels/strided.h"
#include "ir/ops/ops.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"axis", AttributeKind::kInt, "1; since opset 4 required", false, ""}};

// Canonical nodes have the axis.
Result<int64_t> AxisOf(const Node& node, size_t rank) {
  if (node.opset >= 4 && !node.attributes.contains("axis")) {
    return Malformed("attribute 'axis' is missing");
  }
  return NormalizeAxis(GetInt(node.attributes, "axis", 1), static_cast<int64_t>(rank));
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& first = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node, first.shape.size()));
  TensorType result{first.type, first.shape};
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Value& other = InputValue(graph, node, static_cast<int>(i));
    Shape shape = other.shape;
    if (other.type != first.type || shape.size() != first.shape.size()) {
      return Malformed("operand ", i, " ('", other.name, "') has type ", TypeName(other.type),
                       " and rank ", shape.size(), ", operand 0 has ", TypeName(first.type),
                       " and ", first.shape.size());
    }
    result.shape[Idx(axis)] += shape[Idx(axis)];
    shape[Idx(axis)] = first.shape[Idx(axis)];
    if (shape != first.shape) {
      return Malformed("operand ", i, " ('", other.name, "') has shape ", ShapeText(other.shape),
                       ", operand 0 has ", ShapeText(first.shape));
    }
  }
  outputs->push_back(std::move(result));
  return {};
}

Status Evaluate(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  Tensor& output = outputs[0];
  DLA_ASSIGN_OR_RETURN(const int64_t axis, AxisOf(node, output.shape.size()));
  const Shape strides = DenseStrides(output.shape);
  const int64_t bytes = TypeBytes(output.type, 1);
  int64_t start = 0;
  for (const TensorView& input : inputs) {
    CopyStrided(input.shape, bytes, input.bytes, DenseStrides(input.shape),
                output.bytes.data() + start * strides[Idx(axis)] * bytes, strides);
    start += input.shape[Idx(axis)];
  }
  return {};
}

// Operands without elements contribute nothing.
Status Lower(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(const int64_t axis,
                       AxisOf(node, rewriter->value(node.outputs[0]).shape.size()));
  std::vector<ValueId> inputs;
  for (const ValueId id : node.inputs) {
    if (ElementCount(rewriter->value(id).shape) > 0) inputs.push_back(id);
  }
  if (inputs.empty()) inputs = {node.inputs[0]};
  rewriter->Finish("Concat", inputs, {{"axis", axis}}, node.outputs[0]);
  return {};
}

}  // namespace

const OpDef kConcatOp = {
    .name = "Concat",
    .kind = OpKind::kView,
    .max_inputs = OpDef::kVariadic,
    .attributes = kAttributes,
    .infer = Infer,
    .evaluate = Evaluate,
    .lower = Lower,
};

}  // namespace dla::ir
