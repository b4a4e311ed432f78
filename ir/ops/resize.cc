// Resize and Upsample, mode nearest: where every axis repeats its entries k times it is the
// canonical Resize, where it keeps every k-th it is a StridedSlice.
//
// Which input entry an output entry takes is computed by ONNX's formulas for every coordinate and
// rounding mode, and then compared with the two patterns: no mode is special.
#include <algorithm>
#include <cmath>

#include "ir/nest_builder.h"
#include "ir/ops/ops.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kResizeAttributes[] = {
    {"coordinate_transformation_mode", AttributeKind::kString, "half_pixel", false,
     "since opset 11"},
    {"cubic_coeff_a", AttributeKind::kFloat, "-0.75", false, "of mode cubic"},
    {"exclude_outside", AttributeKind::kInt, "0", false, "of mode cubic"},
    {"extrapolation_value", AttributeKind::kFloat, "0", false, "of tf_crop_and_resize"},
    {"mode", AttributeKind::kString, "nearest", false, ""},
    {"nearest_mode", AttributeKind::kString, "round_prefer_floor", false, "since opset 11"},
    {"repeats", AttributeKind::kInts, "", false, "of the canonical form: one an axis"},
};
constexpr AttributeDef kUpsampleAttributes[] = {
    {"mode", AttributeKind::kString, "nearest", false, ""},
    {"scales", AttributeKind::kFloats, "", false, "an input since opset 9"},
};

// How one axis is resized: output entry o takes input entry o / repeat * step + start.
struct AxisPattern {
  int64_t repeat = 1, step = 1, start = 0, size = 1;
};

float SourcePosition(const std::string& mode, int64_t o, float scale, int64_t input,
                     int64_t output) {
  const float x = static_cast<float>(o);
  if (mode == "asymmetric") return x / scale;
  if (mode == "tf_half_pixel_for_nn") return (x + 0.5f) / scale;
  if (mode == "align_corners") {
    if (output == 1) return 0;
    return x * static_cast<float>(input - 1) / static_cast<float>(output - 1);
  }
  if (mode == "pytorch_half_pixel" && output == 1) return 0;
  return (x + 0.5f) / scale - 0.5f;
}

int64_t Nearest(const std::string& mode, float x, int64_t input) {
  float rounded = std::floor(x);
  if (mode == "round_prefer_floor") rounded = std::ceil(x - 0.5f);
  if (mode == "round_prefer_ceil") rounded = std::floor(x + 0.5f);
  if (mode == "ceil") rounded = std::ceil(x);
  return std::clamp<int64_t>(static_cast<int64_t>(rounded), 0, input - 1);
}

struct Modes {
  std::string coordinates, nearest;
};

Result<Modes> ReadModes(const Node& node) {
  const std::string mode = GetString(node.attributes, "mode", "nearest");
  if (mode != "nearest") {
    return Unsupported("attribute 'mode' is '", mode, "'; only nearest is supported");
  }
  if (node.op == "Upsample" || node.opset < 11) return Modes{"asymmetric", "floor"};
  const Modes modes{GetString(node.attributes, "coordinate_transformation_mode", "half_pixel"),
                    GetString(node.attributes, "nearest_mode", "round_prefer_floor")};
  const std::string known[] = {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                               "tf_half_pixel_for_nn"};
  if (std::find(std::begin(known), std::end(known), modes.coordinates) == std::end(known)) {
    return Unsupported("attribute 'coordinate_transformation_mode' is '", modes.coordinates,
                       "', which is not supported");
  }
  return modes;
}

Result<AxisPattern> FindPattern(const Modes& modes, int64_t input, int64_t output, float scale,
                                size_t axis) {
  std::vector<int64_t> source;
  for (int64_t o = 0; o < output; ++o) {
    const float x = SourcePosition(modes.coordinates, o, scale, input, output);
    source.push_back(Nearest(modes.nearest, x, input));
  }
  const auto fits = [&](const AxisPattern& p) {
    for (int64_t o = 0; o < output; ++o) {
      if (source[Idx(o)] != o / p.repeat * p.step + p.start) return false;
    }
    return true;
  };
  AxisPattern pattern{.size = output};
  if (output % input == 0) {
    pattern.repeat = output / input;
    if (fits(pattern)) return pattern;
    pattern.repeat = 1;
  }
  pattern.start = source[0];
  pattern.step = output > 1 ? source[1] - source[0] : 1;
  if (pattern.step > 0 && fits(pattern)) return pattern;
  return Unsupported("axis ", axis, " goes from ", input, " to ", output,
                     " entries in a pattern that is not supported (each entry k times, or every "
                     "k-th entry)");
}

// The scales as the node gives them: attribute or operand. Empty: it gives sizes.
Result<std::vector<float>> ReadScales(const Graph& graph, const Node& node, size_t rank) {
  std::vector<float> scales;
  const auto attribute = node.attributes.find("scales");
  if (attribute != node.attributes.end()) {
    scales = std::get<std::vector<float>>(attribute->second);
  }
  const int position = node.op == "Upsample" || node.opset < 11 ? 1 : 2;
  if (HasInput(node, position)) {
    const TensorView view = ConstantView(graph, node.inputs[Idx(position)]);
    if (!view.present()) return Unsupported("the scales must be constant");
    if (view.type != ElementType::kF32) {
      return Malformed("the scales have type ", TypeName(view.type), ", f32 is expected");
    }
    scales.assign(view.f32(), view.f32() + view.elements());
  }
  if (!scales.empty() && scales.size() != rank) {
    return Malformed("there are ", scales.size(), " scales, the input has rank ", rank);
  }
  return scales;
}

Result<std::vector<AxisPattern>> Resolve(const Graph& graph, const Node& node) {
  const Shape& input = InputValue(graph, node, 0).shape;
  DLA_ASSIGN_OR_RETURN(const Modes modes, ReadModes(node));
  DLA_ASSIGN_OR_RETURN(std::vector<float> scales, ReadScales(graph, node, input.size()));
  Shape sizes;
  if (scales.empty()) {
    if (!HasInput(node, 3)) return Malformed("neither scales nor sizes are given");
    DLA_ASSIGN_OR_RETURN(sizes, RequireInts(graph, node, 3, "sizes"));
    if (sizes.size() != input.size()) {
      return Malformed("there are ", sizes.size(), " sizes, the input has rank ", input.size());
    }
  }
  std::vector<AxisPattern> patterns;
  for (size_t i = 0; i < input.size(); ++i) {
    float scale = 0;
    if (sizes.empty()) {
      scale = scales[i];
      const float size = std::floor(static_cast<float>(input[i]) * scale);
      if (!(scale > 0) || !(size >= 1) || size > 1e6f) {
        return Malformed("the scale of axis ", i, " is ", scale);
      }
      patterns.push_back({.size = static_cast<int64_t>(size)});
    } else {
      if (sizes[i] < 1 || sizes[i] > 1000000) {
        return Malformed("the size of axis ", i, " is ", sizes[i]);
      }
      scale = static_cast<float>(sizes[i]) / static_cast<float>(input[i]);
      patterns.push_back({.size = sizes[i]});
    }
    if (input[i] < 1) return Malformed("axis ", i, " of the input is empty");
    DLA_ASSIGN_OR_RETURN(patterns.back(),
                         FindPattern(modes, input[i], patterns.back().size, scale, i));
  }
  return patterns;
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
    DLA_ASSIGN_OR_RETURN(const std::vector<AxisPattern> patterns, Resolve(graph, node));
    for (size_t i = 0; i < patterns.size(); ++i) result.shape[i] = patterns[i].size;
  }
  outputs->push_back(std::move(result));
  return {};
}

Status Lower(Rewriter* rewriter, const Node& node) {
  const Shape input = InputValue(rewriter->graph(), node, 0).shape;
  DLA_ASSIGN_OR_RETURN(const std::vector<AxisPattern> patterns, Resolve(rewriter->graph(), node));
  Shape starts, steps, sizes;
  std::vector<int64_t> repeats;
  for (const AxisPattern& p : patterns) {
    starts.push_back(p.start);
    steps.push_back(p.step);
    sizes.push_back(p.size / p.repeat);
    repeats.push_back(p.repeat);
  }
  ValueId value = node.inputs[0];
  if (sizes != input) {
    DLA_ASSIGN_OR_RETURN(value,
                         rewriter->Add("StridedSlice", {value},
                                       {{"sizes", sizes}, {"starts", starts}, {"steps", steps}}));
  }
  rewriter->Finish("Resize", {value}, {{"repeats", repeats}}, node.outputs[0]);
  return {};
}

Status Evaluate(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  const std::vector<int64_t> repeats = GetInts(node.attributes, "repeats");
  const Shape strides = DenseStrides(inputs[0].shape);
  const Shape& shape = outputs[0].shape;
  for (int64_t i = 0; i < outputs[0].elements(); ++i) {
    int64_t rest = i, from = 0;
    for (size_t a = shape.size(); a-- > 0;) {
      from += rest % shape[a] / repeats[a] * strides[a];
      rest /= shape[a];
    }
    outputs[0].f32()[i] = inputs[0].f32()[from];
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
    .note = "mode nearest, where each entry is repeated k times or every k-th is kept",
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
