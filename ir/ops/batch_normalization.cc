// BatchNormalization of inference: a multiplication and an addition by constants of each channel,
// which the fold pass puts into a convolution where there is one.
#include <cmath>

#include "ir/ops/ops.h"
#include "ir/ops/pick.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"epsilon", AttributeKind::kFloat, "1e-5", false, ""},
    {"is_test", AttributeKind::kInt, "0", false, "before opset 7; must not be 0"},
    {"momentum", AttributeKind::kFloat, "0.9", false, "of training; ignored"},
    {"spatial", AttributeKind::kInt, "1", false, "before opset 9"},
    {"training_mode", AttributeKind::kInt, "0", false, "since opset 14; must be 0"},
};

// The shape of the statistics: the channels, or everything behind the batch.
Shape Statistics(const Node& node, const Shape& input) {
  if (GetInt(node.attributes, "spatial", 1) != 0) return {input[1]};
  return {input.begin() + 1, input.end()};
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  if (input.shape.size() < 2) {
    return Malformed("the input has rank ", input.shape.size(), "; at least 2 is needed");
  }
  if (node.opset < 7 && GetInt(node.attributes, "is_test", 0) == 0) {
    return Unsupported("before opset 7 it is of training unless 'is_test' says otherwise");
  }
  if (GetInt(node.attributes, "training_mode", 0) != 0) {
    return Unsupported("attribute 'training_mode' is not 0");
  }
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) return Unsupported("only the first output is supported");
  }
  const Shape wanted = Statistics(node, input.shape);
  const char* const names[] = {"scale", "B", "mean", "var"};
  for (int i = 1; i <= 4; ++i) {
    const Value& value = InputValue(graph, node, i);
    if (value.shape != wanted) {
      return Malformed("input '", value.name, "' (", names[i - 1], ") has shape ",
                       ShapeText(value.shape), ", not ", ShapeText(wanted));
    }
    if (!IsFloat(value.type)) {
      return Malformed("input '", value.name, "' (", names[i - 1], ") has type ",
                       TypeName(value.type));
    }
  }
  outputs->push_back({input.type, input.shape});
  return {};
}

Result<ValueId> CastTo(Rewriter* rewriter, ValueId value, ElementType type) {
  if (rewriter->value(value).type == type) return value;
  return rewriter->Add("Cast", {value}, {{"to", std::string(TypeName(type))}});
}

// The last node: an addition, and a conversion where that was in another type.
Status FinishSum(Rewriter* rewriter, ValueId value, ValueId addend, ValueId output) {
  const ElementType type = rewriter->value(output).type;
  if (rewriter->value(value).type == type) {
    rewriter->Finish("Add", {value, addend}, {}, output);
    return {};
  }
  DLA_ASSIGN_OR_RETURN(value, rewriter->Add("Add", {value, addend}));
  rewriter->Finish("Cast", {value}, {{"to", std::string(TypeName(type))}}, output);
  return {};
}

// Computed in f64 where everything is known: a factor and an addend of each channel.
Status LowerConstant(Rewriter* rewriter, const Node& node, ValueId input, const Shape& shape) {
  const Graph& graph = rewriter->graph();
  const ElementType type = rewriter->value(input).type;
  const double epsilon = static_cast<double>(GetFloat(node.attributes, "epsilon", 1e-5f));
  Tensor factors = Tensor::Zeros({type, shape}), addends = factors;
  for (int64_t c = 0; c < factors.elements(); ++c) {
    double operands[4];
    for (size_t i = 0; i < 4; ++i) {
      operands[i] = ReadDouble(ConstantView(graph, node.inputs[i + 1]), c);
    }
    const double scale = operands[0] / std::sqrt(operands[3] + epsilon);
    WriteDouble(&factors, c, scale);
    WriteDouble(&addends, c, operands[1] - operands[2] * scale);
  }
  const ValueId factor = rewriter->AddConstant(std::move(factors), "factor");
  const ValueId addend = rewriter->AddConstant(std::move(addends), "addend");
  DLA_ASSIGN_OR_RETURN(const ValueId product, rewriter->Add("Mul", {input, factor}));
  return FinishSum(rewriter, product, addend, node.outputs[0]);
}

// Half precision is computed with in f32.
Status Lower(Rewriter* rewriter, const Node& node) {
  const Value& x = InputValue(rewriter->graph(), node, 0);
  const ElementType type = ValueType(x.type);
  Shape shape = Statistics(node, x.shape);
  shape.resize(x.shape.size() - 1, 1);
  DLA_ASSIGN_OR_RETURN(const ValueId input, CastTo(rewriter, node.inputs[0], type));
  bool known = true;
  for (size_t i = 1; i <= 4; ++i) {
    known = known && rewriter->value(node.inputs[i]).constant != nullptr;
  }
  if (known) return LowerConstant(rewriter, node, input, shape);
  std::vector<ValueId> operands;
  for (size_t i = 1; i <= 4; ++i) {
    DLA_ASSIGN_OR_RETURN(const ValueId operand, CastTo(rewriter, node.inputs[i], type));
    DLA_ASSIGN_OR_RETURN(operands.emplace_back(), Reshaped(rewriter, operand, shape));
  }
  const double number = static_cast<double>(GetFloat(node.attributes, "epsilon", 1e-5f));
  const ValueId epsilon = FloatLike(rewriter, operands[3], number, "epsilon");
  DLA_ASSIGN_OR_RETURN(ValueId root, rewriter->Add("Add", {operands[3], epsilon}));
  DLA_ASSIGN_OR_RETURN(root, rewriter->Add("Sqrt", {root}));
  DLA_ASSIGN_OR_RETURN(ValueId value, rewriter->Add("Sub", {input, operands[2]}));
  DLA_ASSIGN_OR_RETURN(value, rewriter->Add("Div", {value, root}));
  DLA_ASSIGN_OR_RETURN(value, rewriter->Add("Mul", {value, operands[0]}));
  return FinishSum(rewriter, value, operands[1], node.outputs[0]);
}

}  // namespace

const OpDef kBatchNormalizationOp = {
    .name = "BatchNormalization",
    .min_inputs = 5,
    .max_inputs = 5,
    .max_outputs = 5,
    .attributes = kAttributes,
    .note = "of inference",
    .infer = Infer,
    .lower = Lower,
};

}  // namespace dla::ir
