// Operators of shape arithmetic, which folding computes while the file is read: Shape, Size,
// ConstantOfShape. Constant itself becomes a value in the importer.
#include "ir/ops/ops.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kShapeAttributes[] = {
    {"end", AttributeKind::kInt, "rank", false, "since opset 15"},
    {"start", AttributeKind::kInt, "0", false, "since opset 15"},
};
constexpr AttributeDef kFillAttributes[] = {
    {"value", AttributeKind::kScalar, "0 of f32", false, ""}};

// A constant made from a few bytes of file may not take more than this.
constexpr int64_t kMostFilledBytes = int64_t{1} << 28;

struct Part {
  int64_t start = 0, end = 0;
};

Part ShapePart(const Node& node, int64_t rank) {
  const auto place = [&](int64_t at) {
    if (at < 0) at = at < -rank ? 0 : at + rank;
    return std::min(at, rank);
  };
  const Part part{place(GetInt(node.attributes, "start", 0)),
                  place(GetInt(node.attributes, "end", rank))};
  return {part.start, std::max(part.start, part.end)};
}

Status InferShape(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Part part = ShapePart(node, static_cast<int64_t>(InputValue(graph, node, 0).shape.size()));
  outputs->push_back({ElementType::kI64, {part.end - part.start}});
  return {};
}

Status EvaluateShape(const Node& node, std::span<const TensorView> inputs,
                     std::span<Tensor> outputs) {
  const Part part = ShapePart(node, static_cast<int64_t>(inputs[0].shape.size()));
  for (int64_t i = part.start; i < part.end; ++i) {
    WriteInt(&outputs[0], i - part.start, inputs[0].shape[Idx(i)]);
  }
  return {};
}

Status InferSize(const Graph&, const Node&, std::vector<TensorType>* outputs) {
  outputs->push_back({ElementType::kI64, {}});
  return {};
}

Status EvaluateSize(const Node&, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  WriteInt(&outputs[0], 0, inputs[0].elements());
  return {};
}

Status InferFill(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  DLA_ASSIGN_OR_RETURN(const Shape shape, RequireInts(graph, node, 0, "shape"));
  const auto count = CheckedElementCount(shape);
  const auto type = ParseElementType(GetString(node.attributes, "value_type", "f32"));
  if (!count) return Malformed("the shape ", ShapeText(shape), " is not possible");
  if (!type || !IsReadable(*type)) return Unsupported("constants of this type are not supported");
  if (TypeBytes(*type, *count) > kMostFilledBytes) {
    return Unsupported("a constant of shape ", ShapeText(shape), " takes more than ",
                       kMostFilledBytes, " bytes");
  }
  outputs->push_back({*type, shape});
  return {};
}

Status EvaluateFill(const Node& node, std::span<const TensorView>, std::span<Tensor> outputs) {
  const auto it = node.attributes.find("value");
  if (it == node.attributes.end()) return {};
  Tensor& output = outputs[0];
  for (int64_t i = 0; i < output.elements(); ++i) {
    if (const int64_t* integer = std::get_if<int64_t>(&it->second)) WriteInt(&output, i, *integer);
    if (const float* number = std::get_if<float>(&it->second)) {
      WriteDouble(&output, i, static_cast<double>(*number));
    }
  }
  return {};
}

}  // namespace

const OpDef kShapeOp = {
    .name = "Shape",
    .shape_only = true,
    .attributes = kShapeAttributes,
    .infer = InferShape,
    .evaluate = EvaluateShape,
};

const OpDef kSizeOp = {
    .name = "Size",
    .shape_only = true,
    .infer = InferSize,
    .evaluate = EvaluateSize,
};

const OpDef kConstantOfShapeOp = {
    .name = "ConstantOfShape",
    .first_opset = 9,
    .attributes = kFillAttributes,
    .note = "constant shape, up to 256 MiB",
    .infer = InferFill,
    .evaluate = EvaluateFill,
};

}  // namespace dla::ir
