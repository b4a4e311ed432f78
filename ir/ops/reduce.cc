// Reductions over whole axes: ReduceSum, ReduceMax, ReduceMin; means and global pooling are a sum
// and a division.
#include <algorithm>

#include "ir/kernels/reduction.h"
#include "ir/kernels/strided.h"
#include "ir/nest_builder.h"
#include "ir/ops/ops.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"axes", AttributeKind::kInts, "all", false, "an input since opset 18 (ReduceSum: 13)"},
    {"keepdims", AttributeKind::kInt, "1", false, ""},
    {"noop_with_empty_axes", AttributeKind::kInt, "0", false, ""},
};

// The axes that a reduction sums over, ascending.
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

Shape KeptShape(Shape shape, const std::vector<int64_t>& axes) {
  for (const int64_t axis : axes) shape[Idx(axis)] = 1;
  return shape;
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

// Reduced axes go to the end, then the rest is one axis and they are another.
template <Reduction reduction>
Status Evaluate(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  const Shape& shape = inputs[0].shape;
  const std::vector<int64_t> axes = GetInts(node.attributes, "axes");
  const Shape strides = DenseStrides(shape);
  Shape permuted, permuted_strides;
  int64_t reduced = 1;
  for (const bool last : {false, true}) {
    for (size_t i = 0; i < shape.size(); ++i) {
      if (std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i)) != last) continue;
      permuted.push_back(shape[i]);
      permuted_strides.push_back(strides[i]);
      if (last) reduced *= shape[i];
    }
  }
  Tensor moved = Tensor::Zeros({ElementType::kF32, permuted});
  CopyStrided(permuted, 4, inputs[0].bytes, permuted_strides, moved.bytes.data(),
              DenseStrides(permuted));
  ReduceKernel(reduction, outputs[0].elements(), reduced, 1, moved.f32(), outputs[0].f32());
  return {};
}

// The canonical reduction has its axes as an attribute and keeps them.
Status LowerTo(Rewriter* rewriter, const Node& node, const std::string& op, bool mean,
               const std::vector<int64_t>& axes) {
  const Shape shape = InputValue(rewriter->graph(), node, 0).shape;
  const Shape wanted = rewriter->value(node.outputs[0]).shape;
  if (axes.empty()) {
    rewriter->Finish("View", {node.inputs[0]}, {{"shape", wanted}}, node.outputs[0]);
    return {};
  }
  const AttributeMap attributes = {{"axes", axes}, {"keepdims", int64_t{1}}};
  const bool keep = wanted.size() == shape.size();
  if (keep && !mean) {
    rewriter->Finish(op, {node.inputs[0]}, attributes, node.outputs[0]);
    return {};
  }
  DLA_ASSIGN_OR_RETURN(ValueId value, rewriter->Add(op, {node.inputs[0]}, attributes));
  if (mean) {
    int64_t count = 1;
    for (const int64_t axis : axes) count *= shape[Idx(axis)];
    const ValueId divisor =
        rewriter->AddConstant(Tensor::Floats({}, {static_cast<float>(count)}), "count");
    if (keep) {
      rewriter->Finish("Div", {value, divisor}, {}, node.outputs[0]);
      return {};
    }
    DLA_ASSIGN_OR_RETURN(value, rewriter->Add("Div", {value, divisor}));
  }
  rewriter->Finish("View", {value}, {{"shape", wanted}}, node.outputs[0]);
  return {};
}

Status Lower(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, Axes(rewriter->graph(), node));
  const bool mean = node.op == "ReduceMean";
  return LowerTo(rewriter, node, mean ? "ReduceSum" : node.op, mean, axes);
}

Status LowerGlobal(Rewriter* rewriter, const Node& node) {
  std::vector<int64_t> axes;
  const size_t rank = InputValue(rewriter->graph(), node, 0).shape.size();
  for (size_t i = 2; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  const bool mean = node.op == "GlobalAveragePool";
  return LowerTo(rewriter, node, mean ? "ReduceSum" : "ReduceMax", mean, axes);
}

template <MicroOp reduce>
Result<Nest> ReduceNest(const Graph& graph, const Node& node) {
  const Value& input = InputValue(graph, node, 0);
  const std::vector<int64_t> reduced = GetInts(node.attributes, "axes");
  NestBuilder builder(graph, node, Anchor::kVector);
  std::vector<NestBuilder::OutputAxis> axes;
  int64_t count = 1;
  for (size_t i = 0; i < input.shape.size(); ++i) {
    const bool is_reduced =
        std::binary_search(reduced.begin(), reduced.end(), static_cast<int64_t>(i));
    const int loop = builder.AddNumberedLoop("d", i, input.shape[i]);
    if (is_reduced) count *= input.shape[i];
    axes.push_back({-1, loop});
  }
  const int operand =
      builder.AddOperand(node.inputs[0], OperandClass::kVector, input.storage.strides);
  builder.AddFusedAndOutput(axes, OperandClass::kVector);
  builder.EmitLoads(0);
  const int loaded = builder.Loaded(operand);
  builder.EmitFused(count == 1 ? builder.Emit(MicroOp::kCopy, loaded)
                               : builder.Emit(reduce, loaded));
  return builder.Build();
}

}  // namespace

const OpDef kReduceSumOp = {
    .name = "ReduceSum",
    .kind = OpKind::kReduction,
    .max_file_inputs = 2,
    .attributes = kAttributes,
    .infer = Infer,
    .evaluate = Evaluate<Reduction::kSum>,
    .lower = Lower,
    .nest = ReduceNest<MicroOp::kReduceSum>,
};

const OpDef kReduceMaxOp = {
    .name = "ReduceMax",
    .kind = OpKind::kReduction,
    .max_file_inputs = 2,
    .attributes = kAttributes,
    .infer = Infer,
    .evaluate = Evaluate<Reduction::kMax>,
    .lower = Lower,
    .nest = ReduceNest<MicroOp::kReduceMax>,
};

const OpDef kReduceMinOp = {
    .name = "ReduceMin",
    .kind = OpKind::kReduction,
    .max_file_inputs = 2,
    .attributes = kAttributes,
    .infer = Infer,
    .evaluate = Evaluate<Reduction::kMin>,
    .lower = Lower,
    .nest = ReduceNest<MicroOp::kReduceMin>,
};

const OpDef kReduceMeanOp = {
    .name = "ReduceMean",
    .max_file_inputs = 2,
    .attributes = kAttributes,
    .infer = Infer,
    .lower = Lower,
};

const OpDef kGlobalAveragePoolOp = {
    .name = "GlobalAveragePool",
    .infer = InferGlobal,
    .lower = LowerGlobal,
};

const OpDef kGlobalMaxPoolOp = {
    .name = "GlobalMaxPool",
    .infer = InferGlobal,
    .lower = LowerGlobal,
};

}  // namespace dla::ir
