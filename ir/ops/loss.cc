// Losses of classification, for networks that are exported with them: the log-probability of each
// label's class is picked by comparing the label with the numbers of the classes.
#include <limits>

#include "ir/ops/ops.h"
#include "ir/ops/pick.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"ignore_index", AttributeKind::kInt, "", false, "elements with this label do not count"},
    {"reduction", AttributeKind::kString, "mean", false, "none, mean or sum"},
};

std::string ReductionOf(const Node& node) {
  return GetString(node.attributes, "reduction", "mean");
}

// Scores [N, C, d...], labels [N, d...], weights of the classes [C].
Status CheckOperands(const Graph& graph, const Node& node) {
  const Value& scores = InputValue(graph, node, 0);
  const Value& labels = InputValue(graph, node, 1);
  if (scores.shape.size() < 2) {
    return Malformed("the scores have rank ", scores.shape.size(), "; at least 2 is needed");
  }
  Shape wanted = scores.shape;
  wanted.erase(wanted.begin() + 1);
  if (labels.shape != wanted) {
    return Malformed("the labels have shape ", ShapeText(labels.shape), ", not ",
                     ShapeText(wanted));
  }
  if (!IsFloat(scores.type)) return Malformed("the scores are ", TypeName(scores.type));
  if (labels.type != ElementType::kI32 && labels.type != ElementType::kI64) {
    return Malformed("the labels are ", TypeName(labels.type), ", not i32 or i64");
  }
  if (HasInput(node, 2)) {
    const Value& weights = InputValue(graph, node, 2);
    if (weights.type != scores.type || weights.shape != Shape{scores.shape[1]}) {
      return Malformed("the weights are ", TypeName(weights.type), " ", ShapeText(weights.shape),
                       ", not one ", TypeName(scores.type), " for each class");
    }
  }
  return {};
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  DLA_RETURN_IF_ERROR(CheckOperands(graph, node));
  const Value& scores = InputValue(graph, node, 0);
  const std::string reduction = ReductionOf(node);
  if (reduction != "none" && reduction != "mean" && reduction != "sum") {
    return Malformed("attribute 'reduction' is '", reduction, "', not none, mean or sum");
  }
  outputs->push_back(
      {scores.type, reduction == "none" ? InputValue(graph, node, 1).shape : Shape{}});
  if (node.outputs.size() > 1) outputs->push_back({scores.type, scores.shape});
  return {};
}

// A constant of one element of the labels' type.
ValueId LabelConstant(Rewriter* rewriter, ElementType type, int64_t number,
                      const std::string& name) {
  return rewriter->AddConstant(ConvertTensor(Tensor::Ints({}, {number}).view(), type), name);
}

// What the labels say: [N, C, d...] is this the label's class; [N, 1, d...] is it no class at all.
struct Labels {
  ValueId hit = kNoValue;
  ValueId outside = kNoValue;
};

Result<Labels> ReadLabels(Rewriter* rewriter, const Node& node) {
  const Shape shape = rewriter->value(node.inputs[0]).shape;
  const ElementType type = rewriter->value(node.inputs[1]).type;
  Shape lifted = shape, by_class(shape.size() - 1, 1);
  lifted[1] = 1;
  by_class[0] = shape[1];
  DLA_RETURN_IF_ERROR(CheckPicked(shape[1]));
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < shape[1]; ++i) numbers.push_back(i);
  const ValueId classes =
      rewriter->AddConstant(ConvertTensor(Tensor::Ints(by_class, numbers).view(), type), "classes");
  const ValueId zero = LabelConstant(rewriter, type, 0, "first");
  const ValueId last = LabelConstant(rewriter, type, shape[1] - 1, "last");
  DLA_ASSIGN_OR_RETURN(const ValueId labels,
                       rewriter->Add("View", {node.inputs[1]}, {{"shape", lifted}}));
  Labels result;
  DLA_ASSIGN_OR_RETURN(result.hit, rewriter->Add("Equal", {labels, classes}));
  DLA_ASSIGN_OR_RETURN(const ValueId below, rewriter->Add("Less", {labels, zero}));
  DLA_ASSIGN_OR_RETURN(const ValueId above, rewriter->Add("Less", {last, labels}));
  DLA_ASSIGN_OR_RETURN(result.outside, rewriter->Add("Or", {below, above}));
  if (!node.attributes.contains("ignore_index")) return result;
  const ValueId ignored =
      LabelConstant(rewriter, type, GetInt(node.attributes, "ignore_index", 0), "ignored");
  DLA_ASSIGN_OR_RETURN(const ValueId skip, rewriter->Add("Equal", {labels, ignored}));
  DLA_ASSIGN_OR_RETURN(const ValueId counts, rewriter->Add("Not", {skip}));
  DLA_ASSIGN_OR_RETURN(result.hit, rewriter->Add("And", {result.hit, counts}));
  DLA_ASSIGN_OR_RETURN(result.outside, rewriter->Add("And", {result.outside, counts}));
  return result;
}

// The weights along the axis of the classes, or 1.
Result<ValueId> ClassWeights(Rewriter* rewriter, const Node& node) {
  if (!HasInput(node, 2)) return FloatLike(rewriter, node.inputs[0], 1, "one");
  const Shape shape = rewriter->value(node.inputs[0]).shape;
  Shape by_class(shape.size() - 1, 1);
  by_class[0] = shape[1];
  return rewriter->Add("View", {node.inputs[2]}, {{"shape", by_class}});
}

// From log-probabilities of the shape of the scores to the loss.
Status FinishLoss(Rewriter* rewriter, const Node& node, ValueId log_probability) {
  const Shape shape = rewriter->value(log_probability).shape;
  const ValueId zero = FloatLike(rewriter, log_probability, 0, "zero");
  const ValueId nan =
      FloatLike(rewriter, log_probability, std::numeric_limits<double>::quiet_NaN(), "nan");
  DLA_ASSIGN_OR_RETURN(const Labels labels, ReadLabels(rewriter, node));
  DLA_ASSIGN_OR_RETURN(const ValueId weights, ClassWeights(rewriter, node));
  DLA_ASSIGN_OR_RETURN(const ValueId weighted, rewriter->Add("Mul", {log_probability, weights}));
  DLA_ASSIGN_OR_RETURN(const ValueId picked, rewriter->Add("Where", {labels.hit, weighted, zero}));
  const std::vector<int64_t> classes = {1};
  DLA_ASSIGN_OR_RETURN(const ValueId sum,
                       rewriter->Add("ReduceSum", {picked}, {{"axes", classes}}));
  DLA_ASSIGN_OR_RETURN(const ValueId negative, rewriter->Add("Neg", {sum}));
  DLA_ASSIGN_OR_RETURN(ValueId loss, rewriter->Add("Where", {labels.outside, nan, negative}));
  const std::string reduction = ReductionOf(node);
  if (reduction != "none") {
    std::vector<int64_t> all;
    for (size_t i = 0; i < shape.size(); ++i) all.push_back(static_cast<int64_t>(i));
    DLA_ASSIGN_OR_RETURN(loss, rewriter->Add("ReduceSum", {loss}, {{"axes", all}}));
    if (reduction == "mean") {
      DLA_ASSIGN_OR_RETURN(const ValueId used, rewriter->Add("Where", {labels.hit, weights, zero}));
      DLA_ASSIGN_OR_RETURN(const ValueId total,
                           rewriter->Add("ReduceSum", {used}, {{"axes", all}}));
      DLA_ASSIGN_OR_RETURN(loss, rewriter->Add("Div", {loss, total}));
    }
  }
  const Shape result = rewriter->value(node.outputs[0]).shape;
  rewriter->Finish("View", {loss}, {{"shape", result}}, node.outputs[0]);
  return {};
}

Status LowerNegativeLogLikelihood(Rewriter* rewriter, const Node& node) {
  return FinishLoss(rewriter, node, node.inputs[0]);
}

Status LowerSoftmaxCrossEntropy(Rewriter* rewriter, const Node& node) {
  const AttributeMap classes = {{"axes", std::vector<int64_t>{1}}};
  ValueId log_probability = node.outputs.size() > 1 ? node.outputs[1] : kNoValue;
  if (log_probability != kNoValue) {
    rewriter->Finish("LogSoftmax", {node.inputs[0]}, classes, log_probability);
  } else {
    DLA_ASSIGN_OR_RETURN(log_probability, rewriter->Add("LogSoftmax", {node.inputs[0]}, classes));
  }
  return FinishLoss(rewriter, node, log_probability);
}

constexpr OpDef Loss(std::string_view name, int max_outputs,
                     Status (*lower)(Rewriter*, const Node&)) {
  OpDef row;
  row.name = name;
  row.first_opset = 12;
  row.min_inputs = 2;
  row.max_inputs = 3;
  row.max_outputs = max_outputs;
  row.attributes = kAttributes;
  row.note = "a label that is no class gives NaN";
  row.infer = Infer;
  row.lower = lower;
  return row;
}

constexpr OpDef kRows[] = {
    Loss("NegativeLogLikelihoodLoss", 1, LowerNegativeLogLikelihood),
    Loss("SoftmaxCrossEntropyLoss", 2, LowerSoftmaxCrossEntropy),
};

}  // namespace

std::span<const OpDef> LossRows() { return kRows; }

}  // namespace dla::ir
