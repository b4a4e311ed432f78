#include "ir/view.h"

#include "ir/op.h"
#include "ir/tensor.h"

namespace dla::ir {
namespace {

// An extent and its stride; axes of extent 1 left out.
struct Walk {
  int64_t extent;
  int64_t stride;
};

std::vector<Walk> Walks(const Shape& shape, const Shape& strides) {
  // Neighbours that are contiguous with each other become one.
  std::vector<Walk> walks;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (!walks.empty() && walks.back().stride == strides[i] * shape[i]) {
      walks.back() = {walks.back().extent * shape[i], strides[i]};
    } else {
      walks.push_back({shape[i], strides[i]});
    }
  }
  return walks;
}

}  // namespace

std::optional<Shape> ReshapeStrides(const Shape& from, const Shape& strides, const Shape& to) {
  std::vector<Walk> walks = Walks(from, strides);
  Shape result(to.size(), 1);
  // From the innermost axis outwards, each axis takes its share of the walk it lies in.
  for (size_t i = to.size(); i-- > 0;) {
    if (to[i] == 1) {
      result[i] = i + 1 < to.size() ? result[i + 1] * to[i + 1] : 1;
      continue;
    }
    while (!walks.empty() && walks.back().extent == 1) walks.pop_back();
    if (walks.empty() || walks.back().extent % to[i] != 0) return std::nullopt;
    result[i] = walks.back().stride;
    walks.back() = {walks.back().extent / to[i], walks.back().stride * to[i]};
  }
  return result;
}

std::optional<Storage> ForwardView(const Node& node, const Storage& input, const Shape& input_shape,
                                   const Shape& output_shape) {
  Storage result = input;
  if (node.op == "Transpose") {
    const std::vector<int64_t> perm = GetInts(node.attributes, "perm");
    for (size_t i = 0; i < perm.size(); ++i) result.strides[i] = input.strides[Idx(perm[i])];
    return result;
  }
  if (node.op == "StridedSlice") {
    const std::vector<int64_t> starts = GetInts(node.attributes, "starts");
    const std::vector<int64_t> steps = GetInts(node.attributes, "steps");
    for (size_t i = 0; i < starts.size(); ++i) {
      result.offset += starts[i] * input.strides[i];
      result.strides[i] *= steps[i];
    }
    return result;
  }
  DLA_CHECK(node.op == "View", node.op);
  const auto strides = ReshapeStrides(input_shape, input.strides, output_shape);
  if (!strides) return std::nullopt;
  result.strides = *strides;
  return result;
}

std::optional<Storage> BackwardView(const Node& node, const Storage& output,
                                    const Shape& output_shape, const Shape& input_shape) {
  Storage result = output;
  if (node.op == "Transpose") {
    const std::vector<int64_t> perm = GetInts(node.attributes, "perm");
    for (size_t i = 0; i < perm.size(); ++i) result.strides[Idx(perm[i])] = output.strides[i];
    return result;
  }
  if (node.op != "View") return std::nullopt;
  const auto strides = ReshapeStrides(output_shape, output.strides, input_shape);
  if (!strides) return std::nullopt;
  result.strides = *strides;
  return result;
}

Storage ConcatPart(const Storage& output, int64_t axis, int64_t start) {
  Storage result = output;
  result.offset += start * output.strides[Idx(axis)];
  return result;
}

Storage InterleavePart(const Node& node, const Storage& output, int k) {
  const std::vector<int64_t> phases = GetInts(node.attributes, "phases");
  const std::vector<int64_t> steps = GetInts(node.attributes, "axes_steps");
  Storage result = output;
  for (size_t i = 0; i < steps.size(); ++i) {
    result.offset += phases[Idx(k) * steps.size() + i] * output.strides[i];
    result.strides[i] *= steps[i];
  }
  return result;
}

}  // namespace dla::ir
