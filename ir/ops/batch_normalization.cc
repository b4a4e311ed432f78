// BatchNormalization of inference: a multiplication and an addition by constants of each channel,
// which the fold pass puts into a convolution where there is one.
#include <cmath>

#include "ir/ops/ops.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"epsilon", AttributeKind::kFloat, "1e-5", false, ""},
    {"momentum", AttributeKind::kFloat, "0.9", false, "of training; ignored"},
    {"spatial", AttributeKind::kInt, "1", false, "before opset 9"},
    {"training_mode", AttributeKind::kInt, "0", false, "since opset 14; must be 0"},
};

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  if (input.shape.size() < 2) {
    return Malformed("the input has rank ", input.shape.size(), "; at least 2 is needed");
  }
  if (GetInt(node.attributes, "training_mode", 0) != 0) {
    return Unsupported("attribute 'training_mode' is not 0");
  }
  if (GetInt(node.attributes, "spatial", 1) == 0 && input.shape.size() > 2) {
    return Unsupported("attribute 'spatial' is 0");
  }
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) return Unsupported("only the first output is supported");
  }
  const char* const names[] = {"scale", "B", "mean", "var"};
  for (int i = 1; i <= 4; ++i) {
    const Value& value = InputValue(graph, node, i);
    if (value.shape != Shape{input.shape[1]}) {
      return Malformed("input '", value.name, "' (", names[i - 1], ") has shape ",
                       ShapeText(value.shape), ", the input has ", input.shape[1], " channels");
    }
    if (value.constant == nullptr || value.type != ElementType::kF32) {
      return Unsupported("input '", value.name, "' (", names[i - 1], ") must be a constant of f32");
    }
  }
  outputs->push_back({input.type, input.shape});
  return {};
}

Status Lower(Rewriter* rewriter, const Node& node) {
  const Graph& graph = rewriter->graph();
  const Shape input = InputValue(graph, node, 0).shape;
  const float* operands[4];
  for (size_t i = 0; i < 4; ++i) operands[i] = ConstantView(graph, node.inputs[i + 1]).f32();
  const double epsilon = static_cast<double>(GetFloat(node.attributes, "epsilon", 1e-5f));
  std::vector<float> factors, addends;
  for (int64_t c = 0; c < input[1]; ++c) {
    const double scale = static_cast<double>(operands[0][c]) /
                         std::sqrt(static_cast<double>(operands[3][c]) + epsilon);
    factors.push_back(static_cast<float>(scale));
    addends.push_back(static_cast<float>(static_cast<double>(operands[1][c]) -
                                         static_cast<double>(operands[2][c]) * scale));
  }
  Shape shape(input.size() - 1, 1);
  shape[0] = input[1];
  const ValueId factor = rewriter->AddConstant(Tensor::Floats(shape, factors), "factor");
  const ValueId addend = rewriter->AddConstant(Tensor::Floats(shape, addends), "addend");
  DLA_ASSIGN_OR_RETURN(const ValueId product, rewriter->Add("Mul", {node.inputs[0], factor}));
  rewriter->Finish("Add", {product, addend}, {}, node.outputs[0]);
  return {};
}

}  // namespace

const OpDef kBatchNormalizationOp = {
    .name = "BatchNormalization",
    .min_inputs = 5,
    .max_inputs = 5,
    .max_outputs = 5,
    .attributes = kAttributes,
    .note = "of inference, with constant statistics",
    .infer = Infer,
    .lower = Lower,
};

}  // namespace dla::ir
