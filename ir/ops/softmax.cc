// Softmax over one axis; before opset 13 over all axes from `axis` on, taken as one.
#include "ir/kernels/reduction.h"
#include "ir/nest_builder.h"
#include "ir/ops/ops.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"axis", AttributeKind::kInt, "-1; before opset 13: 1", false,
     "before opset 13: the first axis of the block"},
};

// The axis of the canonical spelling (opset 13's), which always names it.
int64_t AxisOf(const Node& node) {
  return GetInt(node.attributes, "axis", node.opset >= 13 || node.opset == 0 ? -1 : 1);
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  const int64_t rank = static_cast<int64_t>(input.shape.size());
  DLA_RETURN_IF_ERROR(NormalizeAxis(AxisOf(node), rank).status());
  outputs->push_back({input.type, input.shape});
  return {};
}

Status Evaluate(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape;
  DLA_ASSIGN_OR_RETURN(const int64_t axis,
                       NormalizeAxis(AxisOf(node), static_cast<int64_t>(shape.size())));
  const int64_t outer = ElementCount({shape.begin(), shape.begin() + axis});
  const int64_t inner = ElementCount({shape.begin() + axis + 1, shape.end()});
  SoftmaxKernel(outer, shape[Idx(axis)], inner, inputs[0].f32(), outputs[0].f32());
  return {};
}

Status Lower(Rewriter* rewriter, const Node& node) {
  const Shape shape = InputValue(rewriter->graph(), node, 0).shape;
  DLA_ASSIGN_OR_RETURN(const int64_t axis,
                       NormalizeAxis(AxisOf(node), static_cast<int64_t>(shape.size())));
  const int64_t block = ElementCount({shape.begin() + axis, shape.end()});
  if (node.opset >= 13 || block == shape[Idx(axis)]) {
    rewriter->Finish("Softmax", node.inputs, {{"axis", axis}}, node.outputs[0]);
    return {};
  }
  const Shape flat = {ElementCount({shape.begin(), shape.begin() + axis}), block};
  DLA_ASSIGN_OR_RETURN(const ValueId rows,
                       rewriter->Add("View", {node.inputs[0]}, {{"shape", flat}}));
  DLA_ASSIGN_OR_RETURN(const ValueId result,
                       rewriter->Add("Softmax", {rows}, {{"axis", int64_t{1}}}));
  rewriter->Finish("View", {result}, {{"shape", shape}}, node.outputs[0]);
  return {};
}

Result<Nest> SoftmaxNest(const Graph& graph, const Node& node) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const int64_t axis,
                       NormalizeAxis(AxisOf(node), static_cast<int64_t>(input.shape.size())));
  NestBuilder builder(graph, node, Anchor::kVector);
  std::vector<NestBuilder::OutputAxis> axes;
  for (size_t i = 0; i < input.shape.size(); ++i) {
    axes.push_back(
        {-1, builder.AddNumberedLoop("d", i, input.shape[i], static_cast<int64_t>(i) == axis)});
  }
  std::vector<int64_t> strides = input.storage.strides;
  if (strides[Idx(axis)] == 0) strides[Idx(axis)] = 1;
  const int operand = builder.AddOperand(node.inputs[0], OperandClass::kVector, strides);
  builder.AddFusedAndOutput(axes, OperandClass::kVector);
  builder.set_reduce_loop(static_cast<int>(axis));
  builder.EmitLoads(0);
  const int x = builder.Loaded(operand);
  const int shifted = builder.Emit(MicroOp::kSub, x, builder.Emit(MicroOp::kReduceMax, x));
  const int power = builder.Emit(MicroOp::kExp, shifted);
  const int sum = builder.Emit(MicroOp::kReduceSum, power);
  builder.EmitFused(builder.Emit(MicroOp::kDiv, power, sum));
  return builder.Build();
}

}  // namespace

const OpDef kSoftmaxOp = {
    .name = "Softmax",
    .kind = OpKind::kReduction,
    .attributes = kAttributes,
    .infer = Infer,
    .evaluate = Evaluate,
    .lower = Lower,
    .nest = SoftmaxNest,
};

}  // namespace dla::ir
