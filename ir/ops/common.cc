// Helpers of several operator families.
#include <algorithm>

#include "ir/ops/ops.h"

namespace dla::ir {

bool HasInput(const Node& node, int position) {
  return Idx(position) < node.inputs.size() && node.inputs[Idx(position)] != kNoValue;
}

const Value& InputValue(const Graph& graph, const Node& node, int position) {
  DLA_CHECK(HasInput(node, position), node.name, " input ", position);
  return graph.values[Idx(node.inputs[Idx(position)])];
}

Result<int64_t> NormalizeAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    return Malformed("axis ", axis, " is outside a tensor of rank ", rank);
  }
  return axis < 0 ? axis + rank : axis;
}

Result<std::vector<int64_t>> NormalizeAxes(const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<int64_t> result;
  for (const int64_t axis : axes) {
    DLA_ASSIGN_OR_RETURN(const int64_t normal, NormalizeAxis(axis, rank));
    result.push_back(normal);
  }
  std::sort(result.begin(), result.end());
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    return Malformed("an axis is named twice");
  }
  return result;
}

Result<std::vector<int64_t>> RequireInts(const Graph& graph, const Node& node, int position,
                                         std::string_view what) {
  const Value& value = InputValue(graph, node, position);
  auto values = ConstantInts(graph, node.inputs[Idx(position)]);
  if (values) return *std::move(values);
  if (value.constant != nullptr) {
    return Malformed("input '", value.name, "' (", what, ") has type ", TypeName(value.type),
                     ", i32 or i64 is expected");
  }
  return Unsupported("input '", value.name, "' (", what,
                     ") is computed when the model runs; it must be constant");
}

Result<std::vector<int64_t>> KnownIndices(const Graph& graph, const Node& node, int position) {
  const Value& value = InputValue(graph, node, position);
  if (value.constant != nullptr) return RequireInts(graph, node, position, "indices");
  if (value.type != ElementType::kI32 && value.type != ElementType::kI64) {
    return Malformed("input '", value.name, "' (indices) has type ", TypeName(value.type),
                     ", i32 or i64 is expected");
  }
  return std::vector<int64_t>();
}

std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

}  // namespace dla::ir
