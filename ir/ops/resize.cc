// Resize and Upsample. Mode nearest: where every axis repeats its entries k times it is the
// canonical Resize, else entries are picked. Other modes: a product with a constant matrix for each
// axis.
#include <algorithm>
#include <cmath>

#include "ir/kernels/strided.h"
#include "ir/nest_builder.h"
#include "ir/ops/ops.h"
#include "ir/ops/pick.h"
#include "ir/ops/resize_axis.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kResizeAttributes[] = {
    {"antialias", AttributeKind::kInt, "0", false, "since opset 18"},
    {"axes", AttributeKind::kInts, "all", false, "since opset 18"},
    {"coordinate_transformation_mode", AttributeKind::kString, "half_pixel", false,
     "since opset 11"},
    {"cubic_coeff_a", AttributeKind::kFloat, "-0.75", false, "of mode cubic"},
    {"exclude_outside", AttributeKind::kInt, "0", false, ""},
    {"extrapolation_value", AttributeKind::kFloat, "0", false, "of tf_crop_and_resize"},
    {"keep_aspect_ratio_policy", AttributeKind::kString, "stretch", false, "since opset 18"},
    {"mode", AttributeKind::kString, "nearest", false, "nearest, linear, cubic"},
    {"nearest_mode", AttributeKind::kString, "round_prefer_floor", false, "since opset 11"},
    {"repeats", AttributeKind::kInts, "", false, "of the canonical form: one an axis"},
};
constexpr AttributeDef kUpsampleAttributes[] = {
    {"mode", AttributeKind::kString, "nearest", false, ""},
    {"scales", AttributeKind::kFloats, "", false, "an input since opset 9"},
};

Result<ResizeModes> ReadModes(const Node& node) {
  ResizeModes modes;
  modes.mode = GetString(node.attributes, "mode", "nearest");
  if (modes.mode == "bilinear") modes.mode = "linear";  // an old name
  if (modes.mode != "nearest" && modes.mode != "linear" && modes.mode != "cubic") {
    return Malformed("attribute 'mode' is '", modes.mode, "'");
  }
  if (node.op == "Upsample" || node.opset < 11) {
    modes.coordinates = "asymmetric";
    modes.nearest = "floor";
    return modes;
  }
  modes.coordinates = GetString(node.attributes, "coordinate_transformation_mode", "half_pixel");
  modes.nearest = GetString(node.attributes, "nearest_mode", "round_prefer_floor");
  modes.cubic_a = static_cast<double>(GetFloat(node.attributes, "cubic_coeff_a", -0.75f));
  modes.exclude_outside = GetInt(node.attributes, "exclude_outside", 0) != 0;
  modes.antialias = GetInt(node.attributes, "antialias", 0) != 0 && modes.mode != "nearest";
  const std::string known[] = {"half_pixel",           "pytorch_half_pixel", "align_corners",
                               "half_pixel_symmetric", "asymmetric",         "tf_half_pixel_for_nn",
                               "tf_crop_and_resize"};
  if (std::find(std::begin(known), std::end(known), modes.coordinates) == std::end(known)) {
    return Malformed("attribute 'coordinate_transformation_mode' is '", modes.coordinates, "'");
  }
  return modes;
}

// The floats of a constant operand, of any float type; empty if it is absent.
Result<std::vector<float>> ReadFloats(const Graph& graph, const Node& node, int position,
                                      const char* what) {
  std::vector<float> values;
  if (!HasInput(node, position)) return values;
  const TensorView view = ConstantView(graph, node.inputs[Idx(position)]);
  if (!view.present()) return Unsupported("the ", what, " must be constant");
  if (!IsFloat(view.type)) {
    return Malformed("the ", what, " have type ", TypeName(view.type), ", f32 is expected");
  }
  for (int64_t i = 0; i < view.elements(); ++i) {
    values.push_back(static_cast<float>(ReadDouble(view, i)));
  }
  return values;
}

// The operands as the file gives them; scales are empty where sizes are given.
struct Wishes {
  std::vector<int64_t> axes;  // that they are for
  std::vector<float> scales, roi;
  std::vector<int64_t> sizes;
};

Result<Wishes> ReadWishes(const Graph& graph, const Node& node, size_t rank) {
  Wishes wishes;
  wishes.axes = GetInts(node.attributes, "axes");
  for (int64_t& axis : wishes.axes) {
    DLA_ASSIGN_OR_RETURN(axis, NormalizeAxis(axis, static_cast<int64_t>(rank)));
  }
  DLA_RETURN_IF_ERROR(NormalizeAxes(wishes.axes, static_cast<int64_t>(rank)).status());
  for (size_t i = 0; i < rank && !node.attributes.contains("axes"); ++i) {
    wishes.axes.push_back(static_cast<int64_t>(i));
  }
  const bool old = node.op == "Upsample" || node.opset < 11;
  DLA_ASSIGN_OR_RETURN(wishes.scales, ReadFloats(graph, node, old ? 1 : 2, "scales"));
  const auto attribute = node.attributes.find("scales");
  if (attribute != node.attributes.end()) {
    wishes.scales = std::get<std::vector<float>>(attribute->second);
  }
  if (GetString(node.attributes, "coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    DLA_ASSIGN_OR_RETURN(wishes.roi, ReadFloats(graph, node, 1, "region"));
    if (wishes.roi.size() != 2 * wishes.axes.size()) {
      return Malformed("the region has ", wishes.roi.size(), " entries, not ",
                       2 * wishes.axes.size());
    }
    for (const float place : wishes.roi) {
      if (!std::isfinite(place)) return Malformed("the region has the entry ", place);
    }
  }
  if (wishes.scales.empty()) {
    if (!HasInput(node, 3)) return Malformed("neither scales nor sizes are given");
    DLA_ASSIGN_OR_RETURN(wishes.sizes, RequireInts(graph, node, 3, "sizes"));
  }
  const size_t given = std::max(wishes.scales.size(), wishes.sizes.size());
  if (given != wishes.axes.size()) {
    return Malformed("there are ", given, " scales or sizes for ", wishes.axes.size(), " axes");
  }
  return wishes;
}

// Sizes that keep the ratio of the axes: the smallest or the largest scale holds for all.
Status KeepAspectRatio(const std::string& policy, const Wishes& wishes,
                       std::vector<ResizeAxis>* axes) {
  if (policy != "not_larger" && policy != "not_smaller") {
    return Malformed("attribute 'keep_aspect_ratio_policy' is '", policy, "'");
  }
  double scale = 0;
  for (const int64_t a : wishes.axes) {
    const double own = (*axes)[Idx(a)].scale;
    const bool better = policy == "not_larger" ? own < scale : own > scale;
    if (scale == 0 || better) scale = own;
  }
  for (const int64_t a : wishes.axes) {
    ResizeAxis& axis = (*axes)[Idx(a)];
    axis.scale = scale;
    axis.by_size = false;
    axis.output = static_cast<int64_t>(std::floor(scale * static_cast<double>(axis.input) + 0.5));
  }
  return {};
}

Result<std::vector<ResizeAxis>> Resolve(const Graph& graph, const Node& node) {
  const Shape& input = InputValue(graph, node, 0).shape;
  DLA_ASSIGN_OR_RETURN(const Wishes wishes, ReadWishes(graph, node, input.size()));
  std::vector<ResizeAxis> axes;
  for (const int64_t extent : input) axes.push_back({.input = extent, .output = extent});
  for (size_t i = 0; i < wishes.axes.size(); ++i) {
    ResizeAxis& axis = axes[Idx(wishes.axes[i])];
    if (axis.input < 1) return Malformed("axis ", wishes.axes[i], " of the input is empty");
    if (!wishes.roi.empty()) {
      axis.roi_start = static_cast<double>(wishes.roi[i]);
      axis.roi_end = static_cast<double>(wishes.roi[i + wishes.axes.size()]);
    }
    constexpr float kMost = 1e6f;
    if (wishes.sizes.empty()) {
      axis.scale = static_cast<double>(wishes.scales[i]);
      const float size = std::floor(static_cast<float>(axis.input) * wishes.scales[i]);
      if (!(axis.scale > 0) || !(size >= 0) || size > kMost) {
        return Malformed("the scale of axis ", wishes.axes[i], " is ", axis.scale,
                         "; it must be above 0 and give at most 1,000,000 entries");
      }
      axis.output = static_cast<int64_t>(size);
    } else {
      axis.output = wishes.sizes[i];
      if (axis.output < 0 || static_cast<float>(axis.output) > kMost) {
        return Malformed("the size of axis ", wishes.axes[i], " is ", axis.output);
      }
      axis.scale = static_cast<double>(axis.output) / static_cast<double>(axis.input);
      axis.by_size = true;
    }
  }
  const std::string policy = GetString(node.attributes, "keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && !wishes.sizes.empty()) {
    DLA_RETURN_IF_ERROR(KeepAspectRatio(policy, wishes, &axes));
  }
  return axes;
}

// The canonical form has the attribute "repeats" and no other operand.
Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  TensorType result{input.type, input.shape};
  if (node.attributes.contains("repeats")) {
    const std::vector<int64_t> repeats = GetInts(node.attributes, "repeats");
    if (repeats.size() != input.shape.size()) return Malformed("repeats do not fit the rank");
    for (size_t i = 0; i < repeats.size(); ++i) {
      if (repeats[i] < 1) return Malformed("a repeat is below 1");
      result.shape[i] *= repeats[i];
    }
  } else {
    DLA_RETURN_IF_ERROR(ReadModes(node).status());
    DLA_ASSIGN_OR_RETURN(const std::vector<ResizeAxis> axes, Resolve(graph, node));
    for (size_t i = 0; i < axes.size(); ++i) result.shape[i] = axes[i].output;
  }
  outputs->push_back(std::move(result));
  return {};
}

// How often each entry is repeated in order, or 0.
int64_t RepeatOf(const std::vector<int64_t>& entries, int64_t input) {
  const int64_t output = static_cast<int64_t>(entries.size());
  if (output % input != 0) return 0;
  const int64_t repeat = output / input;
  for (int64_t o = 0; o < output; ++o) {
    if (entries[Idx(o)] != o / repeat) return 0;
  }
  return repeat;
}

Status LowerNearest(Rewriter* rewriter, const Node& node, const ResizeModes& modes,
                    const std::vector<ResizeAxis>& axes, ValueId* value) {
  std::vector<int64_t> repeats;
  for (size_t i = 0; i < axes.size(); ++i) {
    repeats.push_back(1);
    if (!axes[i].changes(modes)) continue;
    const std::vector<int64_t> entries = NearestEntries(modes, axes[i]);
    repeats.back() = std::max<int64_t>(1, RepeatOf(entries, axes[i].input));
    if (RepeatOf(entries, axes[i].input) == 0) {
      DLA_ASSIGN_OR_RETURN(*value, Pick(rewriter, *value, i, entries));
    }
  }
  const bool extrapolates = modes.coordinates == "tf_crop_and_resize";
  if (!extrapolates) {
    rewriter->Finish("Resize", {*value}, {{"repeats", repeats}}, node.outputs[0]);
    return {};
  }
  DLA_ASSIGN_OR_RETURN(*value, rewriter->Add("Resize", {*value}, {{"repeats", repeats}}));
  return {};
}

// The product with the axis' matrix: of the last axis from the right, of others from the left.
Result<ValueId> Interpolate(Rewriter* rewriter, ValueId value, size_t axis,
                            const ResizeModes& modes, const ResizeAxis& a) {
  DLA_RETURN_IF_ERROR(CheckPicked(a.input * a.output));
  Shape shape = rewriter->value(value).shape;
  const std::vector<double> numbers = InterpolationMatrix(modes, a);
  Tensor tensor = Tensor::Zeros({rewriter->value(value).type, {a.output, a.input}});
  for (size_t i = 0; i < numbers.size(); ++i) {
    WriteDouble(&tensor, static_cast<int64_t>(i), numbers[i]);
  }
  const ValueId matrix = rewriter->AddConstant(std::move(tensor), "interpolation");
  const auto at = static_cast<int64_t>(axis);
  const int64_t outer = ElementCount({shape.begin(), shape.begin() + at});
  const int64_t inner = ElementCount({shape.begin() + at + 1, shape.end()});
  shape[axis] = a.output;
  if (inner == 1) {
    DLA_ASSIGN_OR_RETURN(value, Reshaped(rewriter, value, {outer, a.input}));
    DLA_ASSIGN_OR_RETURN(value,
                         rewriter->Add("MatMul", {value, matrix}, {{"trans_b", int64_t{1}}}));
  } else {
    DLA_ASSIGN_OR_RETURN(value, Reshaped(rewriter, value, {outer, a.input, inner}));
    DLA_ASSIGN_OR_RETURN(value, rewriter->Add("MatMul", {matrix, value}));
  }
  return Reshaped(rewriter, value, shape);
}

// Entries outside the input along any axis become the extrapolation value.
Status Extrapolate(Rewriter* rewriter, const Node& node, const ResizeModes& modes,
                   const std::vector<ResizeAxis>& axes, ValueId value) {
  const Shape shape = rewriter->value(node.outputs[0]).shape;
  DLA_RETURN_IF_ERROR(CheckPicked(ElementCount(shape)));
  Tensor mask = Tensor::Zeros({ElementType::kBool, shape});
  const Shape strides = DenseStrides(shape);
  for (size_t a = 0; a < axes.size(); ++a) {
    const std::vector<bool> outside = OutsideEntries(modes, axes[a]);
    for (int64_t i = 0; i < mask.elements(); ++i) {
      if (axes[a].changes(modes) && outside[Idx(i / strides[a] % shape[a])]) {
        mask.bytes[Idx(i)] = 1;
      }
    }
  }
  const ValueId where = rewriter->AddConstant(std::move(mask), "outside");
  const float number = GetFloat(node.attributes, "extrapolation_value", 0);
  const ValueId fill = FloatLike(rewriter, value, static_cast<double>(number), "extrapolation");
  rewriter->Finish("Where", {where, fill, value}, {}, node.outputs[0]);
  return {};
}

Status Lower(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(const ResizeModes modes, ReadModes(node));
  DLA_ASSIGN_OR_RETURN(const std::vector<ResizeAxis> axes, Resolve(rewriter->graph(), node));
  ValueId value = node.inputs[0];
  const bool extrapolates = modes.coordinates == "tf_crop_and_resize";
  if (modes.mode == "nearest") {
    DLA_RETURN_IF_ERROR(LowerNearest(rewriter, node, modes, axes, &value));
    return extrapolates ? Extrapolate(rewriter, node, modes, axes, value) : Status();
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    if (!axes[i].changes(modes)) continue;
    DLA_ASSIGN_OR_RETURN(value, Interpolate(rewriter, value, i, modes, axes[i]));
  }
  if (extrapolates) return Extrapolate(rewriter, node, modes, axes, value);
  const Shape shape = rewriter->value(node.outputs[0]).shape;
  return Reshaped(rewriter, value, shape, node.outputs[0]).status();
}

Status Evaluate(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  const std::vector<int64_t> repeats = GetInts(node.attributes, "repeats");
  const Shape strides = DenseStrides(inputs[0].shape);
  const Shape& shape = outputs[0].shape;
  const int64_t bytes = TypeBytes(outputs[0].type, 1);
  for (int64_t i = 0; i < outputs[0].elements(); ++i) {
    int64_t rest = i, from = 0;
    for (size_t a = shape.size(); a-- > 0;) {
      from += rest % shape[a] / repeats[a] * strides[a];
      rest /= shape[a];
    }
    std::copy_n(inputs[0].bytes + from * bytes, bytes, outputs[0].bytes.data() + i * bytes);
  }
  return {};
}

// An axis that repeats k times is two loops: the entry, and which of its copies.
Result<Nest> ResizeNest(const Graph& graph, const Node& node) {
  const Value& input = InputValue(graph, node, 0);
  const std::vector<int64_t> repeats = GetInts(node.attributes, "repeats");
  NestBuilder builder(graph, node, Anchor::kVector);
  std::vector<int64_t> strides;
  std::vector<NestBuilder::OutputAxis> axes;
  for (size_t i = 0; i < input.shape.size(); ++i) {
    const bool split = repeats[i] > 1;
    const int entry = builder.AddNumberedLoop("d", i, input.shape[i], split);
    strides.push_back(std::max<int64_t>(1, input.storage.strides[i]));
    if (!split) {
      axes.push_back({-1, entry});
      continue;
    }
    const int copy = builder.AddNumberedLoop("U", i, repeats[i], true);
    strides.push_back(0);
    axes.push_back({entry, copy, repeats[i]});
  }
  const int operand = builder.AddOperand(node.inputs[0], OperandClass::kVector, strides);
  builder.AddFusedAndOutput(axes, OperandClass::kVector);
  builder.EmitLoads(0);
  builder.EmitFused(builder.Emit(MicroOp::kCopy, builder.Loaded(operand)));
  return builder.Build();
}

}  // namespace

const OpDef kResizeOp = {
    .name = "Resize",
    .kind = OpKind::kVectorMove,
    .first_opset = 10,
    .max_file_inputs = 4,
    .attributes = kResizeAttributes,
    .note = "constant scales or sizes",
    .infer = Infer,
    .evaluate = Evaluate,
    .lower = Lower,
    .nest = ResizeNest,
};

const OpDef kUpsampleOp = {
    .name = "Upsample",
    .max_inputs = 2,
    .attributes = kUpsampleAttributes,
    .note = "as Resize",
    .infer = Infer,
    .lower = Lower,
};

}  // namespace dla::ir
