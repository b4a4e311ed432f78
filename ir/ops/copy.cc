// Copy: a value moved to another place or layout; the layout pass inserts it where no view will do.
#include <cstring>

#include "ir/nest_builder.h"
#include "ir/ops/ops.h"

namespace dla::ir {
namespace {

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  outputs->push_back({input.type, input.shape});
  return {};
}

Status Evaluate(const Node&, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  if (!outputs[0].bytes.empty()) {
    std::memcpy(outputs[0].bytes.data(), inputs[0].bytes, outputs[0].bytes.size());
  }
  return {};
}

Result<Nest> CopyNest(const Graph& graph, const Node& node) {
  NestBuilder builder(graph, node, Anchor::kMove);
  std::vector<NestBuilder::OutputAxis> axes;
  const Shape& shape = graph.values[Idx(node.outputs[0])].shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    axes.push_back({-1, builder.AddNumberedLoop("d", i, shape[i])});
  }
  builder.AddOperand(node.inputs[0], OperandClass::kVector,
                     builder.OutputStrides(node.inputs[0], axes));
  builder.AddFusedAndOutput(axes, OperandClass::kVector);
  return builder.Build();
}

}  // namespace

const OpDef kCopyOp = {
    .name = "Copy",
    .kind = OpKind::kCopy,
    .onnx = false,
    .note = "inserted by the layout pass",
    .infer = Infer,
    .evaluate = Evaluate,
    .nest = CopyNest,
};

}  // namespace dla::ir
