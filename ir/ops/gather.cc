// Gather with constant indices: slices of the data, so that nothing is gathered at run time.
#include <cstring>

#include "ir/ops/ops.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {{"axis", AttributeKind::kInt, "0", false, ""}};

// More slices than this would be a group each.
constexpr size_t kMostSlices = 64;

struct Picks {
  size_t axis = 0;
  std::vector<int64_t> indices;
};

Result<Picks> Resolve(const Node& node, const Shape& data, std::vector<int64_t> indices) {
  DLA_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(GetInt(node.attributes, "axis", 0),
                                                         static_cast<int64_t>(data.size())));
  const int64_t extent = data[Idx(axis)];
  for (int64_t& index : indices) {
    if (index < -extent || index >= extent) {
      return Malformed("index ", index, " is outside axis ", axis, " of extent ", extent);
    }
    if (index < 0) index += extent;
  }
  return Picks{Idx(axis), std::move(indices)};
}

// The step of indices that ascend evenly; 0 if they do not.
int64_t EvenStep(const std::vector<int64_t>& indices) {
  if (indices.size() < 2) return 1;
  const int64_t step = indices[1] - indices[0];
  for (size_t i = 1; i < indices.size(); ++i) {
    if (indices[i] - indices[i - 1] != step) return 0;
  }
  return step > 0 ? step : 0;
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& data = InputValue(graph, node, 0);
  const Value& indices = InputValue(graph, node, 1);
  DLA_ASSIGN_OR_RETURN(std::vector<int64_t> numbers, RequireInts(graph, node, 1, "indices"));
  DLA_ASSIGN_OR_RETURN(const Picks picks, Resolve(node, data.shape, std::move(numbers)));
  if (data.constant == nullptr) {
    if (indices.shape.size() > 1) {
      return Unsupported("indices of rank ", indices.shape.size(),
                         " are supported for constant data only");
    }
    if (EvenStep(picks.indices) == 0 && picks.indices.size() > kMostSlices) {
      return Unsupported("there are ", picks.indices.size(), " scattered indices; ", kMostSlices,
                         " are supported");
    }
  }
  Shape shape(data.shape.begin(), data.shape.begin() + static_cast<int64_t>(picks.axis));
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), data.shape.begin() + static_cast<int64_t>(picks.axis) + 1,
               data.shape.end());
  outputs->push_back({data.type, shape});
  return {};
}

Status Evaluate(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < inputs[1].elements(); ++i) numbers.push_back(ReadInt(inputs[1], i));
  DLA_ASSIGN_OR_RETURN(const Picks picks, Resolve(node, inputs[0].shape, std::move(numbers)));
  const Shape& shape = inputs[0].shape;
  const int64_t axis = static_cast<int64_t>(picks.axis);
  const int64_t outer = ElementCount({shape.begin(), shape.begin() + axis});
  const int64_t inner =
      TypeBytes(inputs[0].type, ElementCount({shape.begin() + axis + 1, shape.end()}));
  uint8_t* to = outputs[0].bytes.data();
  if (inner == 0) return {};
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t index : picks.indices) {
      std::memcpy(to, inputs[0].bytes + (o * shape[picks.axis] + index) * inner, Idx(inner));
      to += inner;
    }
  }
  return {};
}

AttributeMap SliceOf(const Shape& shape, size_t axis, int64_t start, int64_t step, int64_t size) {
  Shape starts(shape.size(), 0), steps(shape.size(), 1), sizes = shape;
  starts[axis] = start;
  steps[axis] = step;
  sizes[axis] = size;
  return {{"sizes", sizes}, {"starts", starts}, {"steps", steps}};
}

Status Lower(Rewriter* rewriter, const Node& node) {
  const Shape data = InputValue(rewriter->graph(), node, 0).shape;
  const Shape wanted = rewriter->value(node.outputs[0]).shape;
  DLA_ASSIGN_OR_RETURN(std::vector<int64_t> numbers,
                       RequireInts(rewriter->graph(), node, 1, "indices"));
  DLA_ASSIGN_OR_RETURN(const Picks picks, Resolve(node, data, std::move(numbers)));
  const int64_t step = EvenStep(picks.indices);
  if (step != 0) {
    const AttributeMap range =
        SliceOf(data, picks.axis, picks.indices[0], picks.indices.size() == 1 ? 1 : step,
                static_cast<int64_t>(picks.indices.size()));
    DLA_ASSIGN_OR_RETURN(const ValueId slice,
                         rewriter->Add("StridedSlice", {node.inputs[0]}, range));
    rewriter->Finish("View", {slice}, {{"shape", wanted}}, node.outputs[0]);
    return {};
  }
  std::vector<ValueId> slices;
  for (const int64_t index : picks.indices) {
    DLA_ASSIGN_OR_RETURN(
        slices.emplace_back(),
        rewriter->Add("StridedSlice", {node.inputs[0]}, SliceOf(data, picks.axis, index, 1, 1)));
  }
  rewriter->Finish("Concat", slices, {{"axis", static_cast<int64_t>(picks.axis)}}, node.outputs[0]);
  return {};
}

}  // namespace

const OpDef kGatherOp = {
    .name = "Gather",
    .min_inputs = 2,
    .max_inputs = 2,
    .attributes = kAttributes,
    .note = "constant indices of rank 0 or 1 (of any rank for constant data)",
    .infer = Infer,
    .evaluate = Evaluate,
    .lower = Lower,
};

}  // namespace dla::ir
