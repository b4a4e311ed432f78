// Slice and Split become StridedSlice: start, step and extent along every axis.
#include <algorithm>

#include "ir/kernels/strided.h"
#include "ir/ops/ops.h"
#include "ir/ops/pick.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kStridedAttributes[] = {
    {"starts", AttributeKind::kInts, "", true, "one an axis"},
    {"steps", AttributeKind::kInts, "", true, "one an axis"},
    {"sizes", AttributeKind::kInts, "", true, "one an axis"},
};
constexpr AttributeDef kSliceAttributes[] = {
    {"axes", AttributeKind::kInts, "all", false, "before opset 10"},
    {"ends", AttributeKind::kInts, "", false, "before opset 10"},
    {"starts", AttributeKind::kInts, "", false, "before opset 10"},
};
constexpr AttributeDef kSplitAttributes[] = {
    {"axis", AttributeKind::kInt, "0", false, ""},
    {"num_outputs", AttributeKind::kInt, "", false, "since opset 18"},
    {"split", AttributeKind::kInts, "equal parts", false, "an input since opset 13"},
};

struct Range {
  Shape starts, steps, sizes;
};

Range Whole(const Shape& shape) { return {Shape(shape.size(), 0), Shape(shape.size(), 1), shape}; }

AttributeMap Attributes(const Range& range) {
  return {{"sizes", range.sizes}, {"starts", range.starts}, {"steps", range.steps}};
}

Status InferStrided(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  const Shape starts = GetInts(node.attributes, "starts");
  const Shape steps = GetInts(node.attributes, "steps");
  const Shape sizes = GetInts(node.attributes, "sizes");
  const size_t rank = input.shape.size();
  if (starts.size() != rank || steps.size() != rank || sizes.size() != rank) {
    return Malformed("the attributes do not have ", rank, " entries");
  }
  for (size_t i = 0; i < rank; ++i) {
    const int64_t extent = input.shape[i];
    if (sizes[i] == 0) continue;
    const bool fits = sizes[i] > 0 && sizes[i] <= extent && starts[i] >= 0 && starts[i] < extent &&
                      steps[i] != 0 && steps[i] <= extent && steps[i] >= -extent;
    const int64_t last = fits ? starts[i] + (sizes[i] - 1) * steps[i] : -1;
    if (last < 0 || last >= extent) return Malformed("axis ", i, " is sliced outside its extent");
  }
  outputs->push_back({input.type, sizes});
  return {};
}

Status EvaluateStrided(const Node& node, std::span<const TensorView> inputs,
                       std::span<Tensor> outputs) {
  if (outputs[0].elements() == 0) return {};
  const Shape starts = GetInts(node.attributes, "starts");
  const Shape steps = GetInts(node.attributes, "steps");
  Shape strides = DenseStrides(inputs[0].shape);
  const int64_t bytes = TypeBytes(inputs[0].type, 1);
  int64_t offset = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    offset += starts[i] * strides[i];
    strides[i] *= steps[i];
  }
  CopyStrided(outputs[0].shape, bytes, inputs[0].bytes + offset * bytes, strides,
              outputs[0].bytes.data(), DenseStrides(outputs[0].shape));
  return {};
}

// Operand `position` or, before opset 10, the attribute of that name; `fallback` if neither.
Result<std::vector<int64_t>> Read(const Graph& graph, const Node& node, int position,
                                  const std::string& name, std::vector<int64_t> fallback) {
  if (HasInput(node, position)) return RequireInts(graph, node, position, name);
  return GetInts(node.attributes, name, std::move(fallback));
}

Status SliceAxis(int64_t extent, int64_t start, int64_t end, int64_t step, size_t axis,
                 Range* range) {
  if (step == 0) return Malformed("the step of axis ", axis, " is 0");
  // Negative positions count from the end; then all is clamped to the axis, starts to its entries
  // where the slice runs backwards.
  const auto place = [&](int64_t at, int64_t low, int64_t high) {
    if (at < 0) at = at < -extent ? -1 : at + extent;
    return std::clamp(at, low, high);
  };
  if (extent == 0) {
    range->sizes[axis] = 0;
    return {};
  }
  const int64_t first =
      step > 0 ? place(start, 0, extent) : std::max<int64_t>(0, place(start, -1, extent - 1));
  const int64_t last = step > 0 ? place(end, 0, extent) : place(end, -1, extent - 1);
  const int64_t distance = step > 0 ? last - first : first - last;
  const int64_t stride =
      step > 0 ? std::min(step, extent) : std::min(-std::max(step, -extent), extent);
  const int64_t size = distance <= 0 ? 0 : (distance - 1) / stride + 1;
  range->starts[axis] = size == 0 ? 0 : first;
  range->steps[axis] = size <= 1 ? 1 : (step > 0 ? stride : -stride);
  range->sizes[axis] = size;
  return {};
}

Result<Range> ResolveSlice(const Graph& graph, const Node& node) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> starts, Read(graph, node, 1, "starts", {}));
  DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> ends, Read(graph, node, 2, "ends", {}));
  std::vector<int64_t> all;
  for (size_t i = 0; i < starts.size(); ++i) all.push_back(static_cast<int64_t>(i));
  DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, Read(graph, node, 3, "axes", all));
  DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> steps,
                       Read(graph, node, 4, "steps", std::vector<int64_t>(starts.size(), 1)));
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    return Malformed("there are ", starts.size(), " starts, ", ends.size(), " ends, ", axes.size(),
                     " axes and ", steps.size(), " steps");
  }
  const int64_t rank = static_cast<int64_t>(input.shape.size());
  DLA_RETURN_IF_ERROR(NormalizeAxes(axes, rank).status());
  Range range = Whole(input.shape);
  for (size_t i = 0; i < starts.size(); ++i) {
    DLA_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(axes[i], rank));
    DLA_RETURN_IF_ERROR(
        SliceAxis(input.shape[Idx(axis)], starts[i], ends[i], steps[i], Idx(axis), &range));
  }
  return range;
}

Status InferSlice(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const Range range, ResolveSlice(graph, node));
  outputs->push_back({input.type, range.sizes});
  return {};
}

// The entries that a range takes of an axis.
std::vector<int64_t> EntriesOf(const Range& range, size_t axis) {
  std::vector<int64_t> entries;
  for (int64_t i = 0; i < range.sizes[axis]; ++i) {
    entries.push_back(range.starts[axis] + i * range.steps[axis]);
  }
  return entries;
}

// Axes that run backwards are picked entry by entry, unless everything is known now.
Status LowerSlice(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(Range range, ResolveSlice(rewriter->graph(), node));
  ValueId value = node.inputs[0];
  const size_t rank = range.sizes.size();
  const bool is_constant = rewriter->value(value).constant != nullptr;
  for (size_t axis = 0; axis < rank && !is_constant; ++axis) {
    if (range.steps[axis] > 0 || range.sizes[axis] < 2) continue;
    DLA_RETURN_IF_ERROR(CheckPicked(range.sizes[axis]));
    DLA_ASSIGN_OR_RETURN(value, Pick(rewriter, value, axis, EntriesOf(range, axis)));
    range.starts[axis] = 0;
    range.steps[axis] = 1;
  }
  rewriter->Finish("StridedSlice", {value}, Attributes(range), node.outputs[0]);
  return {};
}

struct Parts {
  size_t axis = 0;
  std::vector<int64_t> sizes;
};

Result<Parts> ResolveSplit(const Graph& graph, const Node& node) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(GetInt(node.attributes, "axis", 0),
                                                         static_cast<int64_t>(input.shape.size())));
  Parts parts{Idx(axis), {}};
  DLA_ASSIGN_OR_RETURN(parts.sizes, Read(graph, node, 1, "split", {}));
  const int64_t extent = input.shape[parts.axis];
  const int64_t count = static_cast<int64_t>(node.outputs.size());
  if (parts.sizes.empty()) {
    const bool uneven = node.attributes.contains("num_outputs");
    if (!uneven && extent % count != 0) {
      return Malformed("axis ", axis, " has extent ", extent, ", which does not split into ", count,
                       " equal parts");
    }
    const int64_t part = (extent + count - 1) / count;
    for (int64_t i = 0; i < count; ++i) {
      parts.sizes.push_back(std::clamp<int64_t>(extent - i * part, 0, part));
    }
  }
  int64_t rest = extent;
  for (const int64_t size : parts.sizes) {
    if (size < 0 || size > rest) return Malformed("the parts are larger than axis ", axis);
    rest -= size;
  }
  if (rest != 0 || parts.sizes.size() != node.outputs.size()) {
    return Malformed("there are ", parts.sizes.size(), " parts for ", node.outputs.size(),
                     " outputs, and ", rest, " of ", extent, " entries are left over");
  }
  return parts;
}

Status InferSplit(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const Parts parts, ResolveSplit(graph, node));
  for (const int64_t size : parts.sizes) {
    outputs->push_back({input.type, input.shape});
    outputs->back().shape[parts.axis] = size;
  }
  return {};
}

Status LowerSplit(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(const Parts parts, ResolveSplit(rewriter->graph(), node));
  Range range = Whole(InputValue(rewriter->graph(), node, 0).shape);
  for (size_t i = 0; i < parts.sizes.size(); ++i) {
    range.sizes[parts.axis] = parts.sizes[i];
    if (node.outputs[i] != kNoValue) {
      rewriter->Finish("StridedSlice", {node.inputs[0]}, Attributes(range), node.outputs[i]);
    }
    range.starts[parts.axis] += parts.sizes[i];
  }
  return {};
}

}  // namespace

const OpDef kStridedSliceOp = {
    .name = "StridedSlice",
    .kind = OpKind::kView,
    .onnx = false,
    .attributes = kStridedAttributes,
    .note = "what Slice, Split and Gather become",
    .infer = InferStrided,
    .evaluate = EvaluateStrided,
};

const OpDef kSliceOp = {
    .name = "Slice",
    .max_inputs = 5,
    .attributes = kSliceAttributes,
    .note = "constant bounds",
    .infer = InferSlice,
    .lower = LowerSlice,
};

const OpDef kSplitOp = {
    .name = "Split",
    .max_inputs = 2,
    .max_outputs = OpDef::kVariadic,
    .attributes = kSplitAttributes,
    .note = "constant sizes",
    .infer = InferSplit,
    .lower = LowerSplit,
};

}  // namespace dla::ir
