// Take: entries of the middle axis chosen by indices that are known only when the program runs.
//
//   result[a, j, b] = data[a, indices[a, j, b], b]   data [A, X, B], indices [A or 1, J, B or 1]
//
// An index from -X to -1 counts from the end; any other outside of 0 to X - 1 ends the run. The
// load engine does it (ir/nest.h, Gather). Gather, GatherElements and GatherND come to this.
#include <algorithm>

#include "ir/kernels/strided.h"
#include "ir/nest_builder.h"
#include "ir/ops/ops.h"
#include "ir/tensor.h"

namespace dla::ir {
namespace {

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& data = InputValue(graph, node, 0);
  const Value& indices = InputValue(graph, node, 1);
  if (IsFloat(indices.type) || indices.type == ElementType::kBool || TypeBits(indices.type) < 8) {
    return Malformed("indices of type ", TypeName(indices.type));
  }
  const Shape& shape = indices.shape;
  bool fits = data.shape.size() == 3 && shape.size() == 3 && data.shape[1] > 0;
  for (const size_t axis : {size_t{0}, size_t{2}}) {
    fits = fits && (shape[axis] == 1 || shape[axis] == data.shape[axis]);
  }
  if (!fits) {
    return Malformed("indices of shape ", ShapeText(shape), " do not fit data of shape ",
                     ShapeText(data.shape));
  }
  outputs->push_back({data.type, {data.shape[0], shape[1], data.shape[2]}});
  return {};
}

Status Evaluate(const Node&, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  const Shape& shape = outputs[0].shape;
  const int64_t extent = inputs[0].shape[1];
  const int64_t bytes = TypeBytes(outputs[0].type, 1);
  const Shape strides =
      BroadcastStrides(inputs[1].shape, DenseStrides(inputs[1].shape), outputs[0].shape);
  uint8_t* to = outputs[0].bytes.data();
  for (int64_t a = 0; a < shape[0]; ++a) {
    for (int64_t j = 0; j < shape[1]; ++j) {
      for (int64_t b = 0; b < shape[2]; ++b) {
        const int64_t at = a * strides[0] + j * strides[1] + b * strides[2];
        int64_t index = ReadInt(inputs[1], at);
        if (index < -extent || index >= extent) {
          return Malformed("index ", index, " is outside the ", extent, " entries");
        }
        if (index < 0) index += extent;
        const int64_t from = (a * extent + index) * shape[2] + b;
        std::copy_n(inputs[0].bytes + from * bytes, bytes, to);
        to += bytes;
      }
    }
  }
  return {};
}

// Nothing is computed where loaded tiles are what is stored.
bool OnlyMoves(const Graph& graph, const Node& node, const std::vector<int64_t>& data_strides,
               const std::vector<int64_t>& index_strides) {
  const Value& output = graph.values[Idx(node.outputs[0])];
  bool same = node.fused.empty() && InputValue(graph, node, 0).StoredType() == output.StoredType();
  for (size_t i = 0; i < output.shape.size(); ++i) {
    same = same && (output.shape[i] == 1 || data_strides[i] != 0 || index_strides[i] != 0);
  }
  return same;
}

Result<Nest> TakeNest(const Graph& graph, const Node& node) {
  const Value& data = InputValue(graph, node, 0);
  const Value& indices = InputValue(graph, node, 1);
  const Shape& shape = graph.values[Idx(node.outputs[0])].shape;
  std::vector<int64_t> data_strides = data.storage.strides;
  data_strides[1] = 0;
  const std::vector<int64_t> index_strides =
      BroadcastStrides(indices.shape, indices.storage.strides, shape);
  const bool only_moves = OnlyMoves(graph, node, data_strides, index_strides);
  NestBuilder builder(graph, node, only_moves ? Anchor::kMove : Anchor::kVector);
  std::vector<NestBuilder::OutputAxis> axes;
  for (size_t i = 0; i < shape.size(); ++i) {
    axes.push_back({-1, builder.AddNumberedLoop("d", i, shape[i])});
  }
  const int from = builder.AddOperand(node.inputs[0], OperandClass::kVector, data_strides);
  const int by = builder.AddOperand(node.inputs[1], OperandClass::kVector, index_strides);
  builder.SetGather(from,
                    {.indices = by, .bound = data.shape[1], .stride = data.storage.strides[1]});
  builder.AddFusedAndOutput(axes, OperandClass::kVector);
  if (!only_moves) {
    builder.EmitLoads(0, by);
    builder.EmitFused(builder.Emit(MicroOp::kCopy, builder.Loaded(from)));
  }
  return builder.Build();
}

}  // namespace

const OpDef kTakeOp = {
    .name = "Take",
    .kind = OpKind::kVectorMove,
    .onnx = false,
    .min_inputs = 2,
    .max_inputs = 2,
    .note = "entries of the middle of three axes, by indices that are computed",
    .infer = Infer,
    .evaluate = Evaluate,
    .nest = TakeNest,
};

}  // namespace dla::ir
