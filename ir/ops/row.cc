#include "ir/ops/row.h"

#include <algorithm>

#include "ir/kernels/micro.h"
#include "ir/kernels/strided.h"
#include "ir/nest_builder.h"
#include "ir/ops/ops.h"

namespace dla::ir {
namespace {

bool Has(const std::vector<int64_t>& axes, size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
}

}  // namespace

Shape KeptShape(Shape shape, const std::vector<int64_t>& axes) {
  for (const int64_t axis : axes) shape[Idx(axis)] = 1;
  return shape;
}

Status EvaluateRow(const Node& node, std::span<const TensorView> inputs,
                   std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape;
  const std::vector<int64_t> axes = GetInts(node.attributes, "axes");
  std::vector<ElementType> types;
  std::vector<MicroArray> arrays;
  std::vector<const uint8_t*> sources;
  for (const TensorView& input : inputs) {
    if (!input.present()) break;  // absent operands stand last
    types.push_back(input.type);
    arrays.push_back({input.type, BroadcastStrides(input.shape, DenseStrides(input.shape), shape)});
    sources.push_back(input.bytes);
  }
  if (outputs[0].elements() == 0) return {};
  Shape strides = DenseStrides(outputs[0].shape);
  uint32_t reduced = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (Has(axes, i)) reduced |= uint32_t{1} << i;
    if (outputs[0].shape[i] != shape[i]) strides[i] = 0;
  }
  RunMicroProgram(ProgramOf(node, types), shape, reduced, arrays, sources,
                  {outputs[0].type, strides}, outputs[0].bytes.data());
  return {};
}

Result<Nest> RowNest(const Graph& graph, const Node& node) {
  const Shape& shape = InputValue(graph, node, 0).shape;
  const Shape& result = graph.values[Idx(node.outputs[0])].shape;
  const std::vector<int64_t> reduced = GetInts(node.attributes, "axes");
  const size_t own = std::min(node.inputs.size(), Idx(FindOperator(node.op)->max_inputs));
  std::vector<ElementType> types;
  for (size_t i = 0; i < own && HasInput(node, static_cast<int>(i)); ++i) {
    types.push_back(InputValue(graph, node, static_cast<int>(i)).type);
  }
  std::vector<bool> indexed(shape.size(), false);
  for (const MicroInstruction& op : ProgramOf(node, types).ops) {
    if (op.op == MicroOp::kIndex) indexed[op.operand] = true;
  }
  NestBuilder builder(graph, node, Anchor::kVector);
  std::vector<NestBuilder::OutputAxis> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    axes.push_back({-1, builder.AddNumberedLoop("d", i, shape[i], indexed[i])});
    const bool keeps = result[i] == shape[i] && shape[i] > 1;  // of one entry nothing is reduced
    if (Has(reduced, i) && keeps) builder.AddReduceLoop(axes.back().inner);
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const Value& value = InputValue(graph, node, static_cast<int>(i));
    if (i > 0 && ImmediateOf(graph, node.inputs[i])) continue;
    builder.BindInput(
        static_cast<int>(i),
        builder.AddOperand(node.inputs[i], OperandClass::kVector,
                           BroadcastStrides(value.shape, value.storage.strides, shape)));
  }
  builder.AddFusedAndOutput(axes, OperandClass::kVector);
  builder.EmitLoads(0);
  std::vector<int> arguments;
  for (size_t i = 0; i < types.size(); ++i) {
    arguments.push_back(builder.InputValue(static_cast<int>(i)));
  }
  MicroWriter writer = builder.writer();
  builder.EmitFused(FindOperator(node.op)->emit(node.attributes, arguments, &writer));
  return builder.Build();
}

}  // namespace dla::ir
