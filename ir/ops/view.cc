// Operators that change only the shape: Reshape, Flatten, Squeeze, Unsqueeze, Identity and Dropout
// all become View, which names the output's shape.
#include <algorithm>
#include <cstring>

#include "ir/ops/ops.h"
#include "ir/rewriter.h"
#include "support/checked.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kViewAttributes[] = {
    {"shape", AttributeKind::kInts, "", true, "of the output"}};
constexpr AttributeDef kReshapeAttributes[] = {
    {"allowzero", AttributeKind::kInt, "0", false, "since opset 14"},
    {"shape", AttributeKind::kInts, "", false, "an input since opset 5"}};
constexpr AttributeDef kAxisAttributes[] = {{"axis", AttributeKind::kInt, "1", false, ""}};
constexpr AttributeDef kAxesAttributes[] = {
    {"axes", AttributeKind::kInts, "", false, "an input since opset 13"}};
constexpr AttributeDef kDropoutAttributes[] = {
    {"is_test", AttributeKind::kInt, "0", false, "before opset 7; ignored"},
    {"ratio", AttributeKind::kFloat, "0.5", false, "ignored"},
    {"seed", AttributeKind::kInt, "", false, "ignored"}};

Status InferView(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  const Shape shape = GetInts(node.attributes, "shape");
  const auto count = CheckedElementCount(shape);
  if (!count || *count != ElementCount(input.shape)) {
    return Malformed("a tensor of shape ", ShapeText(input.shape), " cannot be seen as ",
                     ShapeText(shape));
  }
  outputs->push_back({input.type, shape});
  return {};
}

Status EvaluateView(const Node&, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  if (!outputs[0].bytes.empty()) {
    std::memcpy(outputs[0].bytes.data(), inputs[0].bytes, outputs[0].bytes.size());
  }
  return {};
}

// Whatever the operator, its output was inferred: a View of that shape.
Status Lower(Rewriter* rewriter, const Node& node) {
  const Shape shape = rewriter->value(node.outputs[0]).shape;
  rewriter->Finish("View", {node.inputs[0]}, {{"shape", shape}}, node.outputs[0]);
  return {};
}

Status InferReshape(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  Shape shape = GetInts(node.attributes, "shape");
  if (HasInput(node, 1)) {
    DLA_ASSIGN_OR_RETURN(shape, RequireInts(graph, node, 1, "shape"));
  } else if (node.opset >= 5 || !node.attributes.contains("shape")) {
    return Malformed("the shape is missing");
  }
  const bool copy_zeros = GetInt(node.attributes, "allowzero", 0) == 0;
  int64_t known = 1;
  int64_t* unknown = nullptr;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && copy_zeros) {
      if (i >= input.shape.size()) {
        return Malformed("entry ", i, " of the shape is 0, the input has only rank ",
                         input.shape.size());
      }
      shape[i] = input.shape[i];
    }
    if (shape[i] == -1 && unknown == nullptr) {
      unknown = &shape[i];
      continue;
    }
    if (shape[i] < 0) return Malformed("entry ", i, " of the shape is ", shape[i]);
    const auto product = CheckedMul(known, shape[i]);
    if (!product) return Malformed("the shape ", ShapeText(shape), " is too large");
    known = *product;
  }
  const int64_t count = ElementCount(input.shape);
  if (unknown != nullptr && known > 0) *unknown = count / known;
  const auto total = unknown != nullptr ? CheckedMul(known, *unknown) : known;
  if (!total || *total != count) {
    return Malformed("the input has shape ", ShapeText(input.shape), " (", count,
                     " elements), which cannot be seen as ", ShapeText(shape));
  }
  outputs->push_back({input.type, shape});
  return {};
}

Status InferFlatten(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  const int64_t rank = static_cast<int64_t>(input.shape.size());
  int64_t axis = GetInt(node.attributes, "axis", 1);
  if (axis < -rank || axis > rank) {
    return Malformed("axis ", axis, " is outside a tensor of rank ", rank);
  }
  if (axis < 0) axis += rank;
  const auto middle = input.shape.begin() + axis;
  outputs->push_back(
      {input.type,
       {ElementCount({input.shape.begin(), middle}), ElementCount({middle, input.shape.end()})}});
  return {};
}

// The axes of Squeeze and Unsqueeze: attribute or, since opset 13, input.
Result<std::vector<int64_t>> Axes(const Graph& graph, const Node& node) {
  if (HasInput(node, 1)) return RequireInts(graph, node, 1, "axes");
  return GetInts(node.attributes, "axes");
}

Status InferSqueeze(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(std::vector<int64_t> axes, Axes(graph, node));
  if (axes.empty() && !HasInput(node, 1)) {
    for (size_t i = 0; i < input.shape.size(); ++i) {
      if (input.shape[i] == 1) axes.push_back(static_cast<int64_t>(i));
    }
  }
  DLA_ASSIGN_OR_RETURN(axes, NormalizeAxes(axes, static_cast<int64_t>(input.shape.size())));
  Shape shape;
  for (size_t i = 0; i < input.shape.size(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i))) {
      shape.push_back(input.shape[i]);
    } else if (input.shape[i] != 1) {
      return Malformed("axis ", i, " has extent ", input.shape[i], ", not 1");
    }
  }
  outputs->push_back({input.type, shape});
  return {};
}

Status InferUnsqueeze(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(std::vector<int64_t> axes, Axes(graph, node));
  if (axes.size() > 64) return Malformed("there are ", axes.size(), " axes");
  const size_t rank = input.shape.size() + axes.size();
  DLA_ASSIGN_OR_RETURN(axes, NormalizeAxes(axes, static_cast<int64_t>(rank)));
  Shape shape;
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) {
    const bool inserted = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(i));
    shape.push_back(inserted ? 1 : input.shape[next++]);
  }
  outputs->push_back({input.type, shape});
  return {};
}

Status InferSame(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  if (HasInput(node, 2) && ConstantScalar(graph, node.inputs[2]).value_or(1) != 0) {
    return Unsupported("input 'training_mode' must be the constant false");
  }
  if (node.op == "Dropout" && node.opset == 6) {
    return Unsupported("before opset 7 it is of training");
  }
  // Dropout's mask has the input's type before opset 10.
  const bool old = node.opset > 0 && node.opset < 10;
  *outputs = {{input.type, input.shape}, {old ? input.type : ElementType::kBool, input.shape}};
  return {};
}

// Nothing is dropped: the mask is true everywhere.
Status LowerDropout(Rewriter* rewriter, const Node& node) {
  const Shape shape = rewriter->value(node.inputs[0]).shape;
  if (node.outputs[0] != kNoValue) {
    rewriter->Finish("View", {node.inputs[0]}, {{"shape", shape}}, node.outputs[0]);
  }
  if (node.outputs.size() < 2 || node.outputs[1] == kNoValue) return {};
  Tensor kept = Tensor::Zeros({rewriter->value(node.outputs[1]).type, {}});
  WriteInt(&kept, 0, 1);
  const ValueId one = rewriter->AddConstant(std::move(kept), "kept");
  rewriter->Finish("Broadcast", {one}, {{"shape", shape}}, node.outputs[1]);
  return {};
}

}  // namespace

const OpDef kViewOp = {
    .name = "View",
    .kind = OpKind::kView,
    .onnx = false,
    .attributes = kViewAttributes,
    .note = "the same elements in row-major order, seen with another shape",
    .infer = InferView,
    .evaluate = EvaluateView,
};

const OpDef kReshapeOp = {
    .name = "Reshape",
    .max_inputs = 2,
    .attributes = kReshapeAttributes,
    .note = "the shape must be constant",
    .infer = InferReshape,
    .lower = Lower,
};

const OpDef kFlattenOp = {
    .name = "Flatten",
    .attributes = kAxisAttributes,
    .infer = InferFlatten,
    .lower = Lower,
};

const OpDef kSqueezeOp = {
    .name = "Squeeze",
    .max_inputs = 2,
    .attributes = kAxesAttributes,
    .infer = InferSqueeze,
    .lower = Lower,
};

const OpDef kUnsqueezeOp = {
    .name = "Unsqueeze",
    .max_inputs = 2,
    .attributes = kAxesAttributes,
    .infer = InferUnsqueeze,
    .lower = Lower,
};

const OpDef kIdentityOp = {
    .name = "Identity",
    .infer = InferSame,
    .lower = Lower,
};

const OpDef kDropoutOp = {
    .name = "Dropout",
    .max_inputs = 3,
    .max_outputs = 2,
    .attributes = kDropoutAttributes,
    .note = "of inference: passes its input on",
    .infer = InferSame,
    .lower = LowerDropout,
};

}  // namespace dla::ir
