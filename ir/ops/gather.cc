// Gather: with constant indices slices of the data, otherwise a Take.
#include <cstring>

#include "ir/ops/ops.h"
#include "ir/ops/pick.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {{"axis", AttributeKind::kInt, "0", false, ""}};

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

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& data = InputValue(graph, node, 0);
  const Value& indices = InputValue(graph, node, 1);
  DLA_ASSIGN_OR_RETURN(std::vector<int64_t> numbers, KnownIndices(graph, node, 1));
  DLA_ASSIGN_OR_RETURN(const Picks picks, Resolve(node, data.shape, std::move(numbers)));
  if (indices.constant == nullptr && data.shape[picks.axis] == 0) {
    return Malformed("axis ", picks.axis, " has no entries");
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

Status Lower(Rewriter* rewriter, const Node& node) {
  const Shape data = InputValue(rewriter->graph(), node, 0).shape;
  const Shape wanted = rewriter->value(node.outputs[0]).shape;
  DLA_ASSIGN_OR_RETURN(std::vector<int64_t> numbers, KnownIndices(rewriter->graph(), node, 1));
  DLA_ASSIGN_OR_RETURN(const Picks picks, Resolve(node, data, std::move(numbers)));
  if (rewriter->value(node.inputs[1]).constant == nullptr) {
    return TakeEntries(rewriter, node.inputs[0], picks.axis, node.inputs[1], wanted,
                       node.outputs[0])
        .status();
  }
  DLA_ASSIGN_OR_RETURN(const ValueId picked,
                       Pick(rewriter, node.inputs[0], picks.axis, picks.indices));
  return Reshaped(rewriter, picked, wanted, node.outputs[0]).status();
}

}  // namespace

const OpDef kGatherOp = {
    .name = "Gather",
    .min_inputs = 2,
    .max_inputs = 2,
    .attributes = kAttributes,
    .infer = Infer,
    .evaluate = Evaluate,
    .lower = Lower,
};

}  // namespace dla::ir
