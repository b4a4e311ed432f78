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
  const auto stored = [&](ValueId id) { return graph.values[Idx(id)].StoredType(); };
  const bool converts = stored(node.inputs[0]) != stored(node.outputs[0]);
  NestBuilder builder(graph, node, converts ? Anchor::kVector : Anchor::kMove);
  std::vector<NestBuilder::OutputAxis> axes;
  const Shape& shape = graph.values[Idx(node.outputs[0])].shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    axes.push_back({-1, builder.AddNumberedLoop("d", i, shape[i])});
  }
  const int input = builder.AddOperand(node.inputs[0], OperandClass::kVector,
                                       builder.OutputStrides(node.inputs[0], axes));
  builder.AddFusedAndOutput(axes, OperandClass::kVector);
  if (converts) {  // no engine that only moves can do that
    builder.EmitLoads(0);
    builder.Emit(MicroOp::kCopy, builder.Loaded(input));
  }
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
