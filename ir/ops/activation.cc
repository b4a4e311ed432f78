// Activations. exp(x) - 1 and log(1 + x) are computed by way of tanh and atanh, which keep their
// accuracy near 0.
#include <cmath>
#include <limits>

#include "ir/ops/map.h"
#include "ir/ops/ops.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

constexpr AttributeDef kAlpha001[] = {{"alpha", AttributeKind::kFloat, "0.01", false, ""}};
constexpr AttributeDef kAlpha1[] = {{"alpha", AttributeKind::kFloat, "1", false, ""}};
constexpr AttributeDef kSelu[] = {{"alpha", AttributeKind::kFloat, "1.6732632", false, ""},
                                  {"gamma", AttributeKind::kFloat, "1.050701", false, ""}};
constexpr AttributeDef kShrink[] = {{"bias", AttributeKind::kFloat, "0", false, ""},
                                    {"lambd", AttributeKind::kFloat, "0.5", false, ""}};
constexpr AttributeDef kGelu[] = {
    {"approximate", AttributeKind::kString, "none", false, "none or tanh"}};
constexpr AttributeDef kHardSigmoid[] = {{"alpha", AttributeKind::kFloat, "0.2", false, ""},
                                         {"beta", AttributeKind::kFloat, "0.5", false, ""}};
constexpr AttributeDef kClip[] = {
    {"max", AttributeKind::kFloat, "none", false, "an input since opset 11"},
    {"min", AttributeKind::kFloat, "none", false, "an input since opset 11"},
};

double Number(const AttributeMap& attributes, const char* name, float fallback) {
  return static_cast<double>(GetFloat(attributes, name, fallback));
}

int EmitLeakyRelu(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  const double slope = Number(attributes, "alpha", 0.01f);
  if (!std::isnan(slope)) return w->Op(MicroOp::kLeakyRelu, x[0], slope, 0);
  const int is_negative = w->Test(MicroOp::kLess, x[0], w->Like(x[0], 0));
  return w->Select(is_negative, w->Like(x[0], slope), x[0]);
}

int EmitClip(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  // A bound that is NaN does not bound, as in numpy and ONNX Runtime.
  const double low = Number(attributes, "min", -kInfinity);
  const double high = Number(attributes, "max", kInfinity);
  return w->Op(MicroOp::kClamp, x[0], std::isnan(low) ? -static_cast<double>(kInfinity) : low,
               std::isnan(high) ? static_cast<double>(kInfinity) : high);
}

// max(0, min(1, alpha * x + beta))
int EmitHardSigmoid(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  const int scaled = w->Times(x[0], Number(attributes, "alpha", 0.2f));
  return w->Op(MicroOp::kClamp, w->Plus(scaled, Number(attributes, "beta", 0.5f)), 0, 1);
}

// x * max(0, min(1, x / 6 + 0.5))
int EmitHardSwish(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  const AttributeMap sixth = {{"alpha", 1.0f / 6.0f}, {"beta", 0.5f}};
  return w->Mul(x[0], EmitHardSigmoid(sixth, x, w));
}

// exp(x) - 1 = 2 t / (1 - t) with t = tanh(x / 2); of use for x <= 0.
int EmitExpMinus1(int x, MicroWriter* w) {
  const int t = w->Op(MicroOp::kTanh, w->Times(x, 0.5));
  return w->Div(w->Times(t, 2), w->Sub(w->Like(x, 1), t));
}

// max(x, 0) + log(1 + e) with e = exp(-|x|); the logarithm is 2 atanh(e / (2 + e)).
int EmitSoftplusOf(int x, MicroWriter* w) {
  const int e = w->Op(MicroOp::kExp, w->Op(MicroOp::kNeg, w->Op(MicroOp::kAbs, x)));
  const int log = w->Times(w->Op(MicroOp::kAtanh, w->Div(e, w->Plus(e, 2))), 2);
  return w->Add(w->Op(MicroOp::kRelu, x), log);
}

int EmitSoftplus(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  return EmitSoftplusOf(x[0], w);
}

int EmitMish(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  return w->Mul(x[0], w->Op(MicroOp::kTanh, EmitSoftplusOf(x[0], w)));
}

// x < 0 ? alpha * (exp(x) - 1) : x
int EmitElu(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  const int low = w->Times(EmitExpMinus1(x[0], w), Number(attributes, "alpha", 1));
  return w->Select(w->Test(MicroOp::kLess, x[0], w->Like(x[0], 0)), low, x[0]);
}

int EmitSelu(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  const AttributeMap alpha = {{"alpha", GetFloat(attributes, "alpha", 1.67326319217681884765625f)}};
  return w->Times(EmitElu(alpha, x, w), Number(attributes, "gamma", 1.05070102214813232421875f));
}

// max(0, x) + min(0, alpha * (exp(x / alpha) - 1))
int EmitCelu(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  const double alpha = Number(attributes, "alpha", 1);
  const int low = w->Times(EmitExpMinus1(w->Over(x[0], alpha), w), alpha);
  return w->Select(w->Test(MicroOp::kLess, x[0], w->Like(x[0], 0)), low, x[0]);
}

int EmitSoftsign(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  return w->Div(x[0], w->Plus(w->Op(MicroOp::kAbs, x[0]), 1));
}

int EmitThresholdedRelu(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  const int alpha = w->Like(x[0], Number(attributes, "alpha", 1));
  return w->Select(w->Test(MicroOp::kLess, alpha, x[0]), x[0], w->Like(x[0], 0));
}

// The bounds are fractions, also of integers: those are compared and moved as f64.
int EmitShrink(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  const double lambda = Number(attributes, "lambd", 0.5f);
  const int value = w->IsFloat(x[0]) ? x[0] : w->Cast(x[0], ElementType::kF64);
  const int bias = w->Like(value, Number(attributes, "bias", 0));
  const int low = w->Test(MicroOp::kLess, value, w->Like(value, -lambda));
  const int high = w->Test(MicroOp::kLess, w->Like(value, lambda), value);
  const int inner = w->Select(high, w->Sub(value, bias), w->Like(value, 0));
  return w->Cast(w->Select(low, w->Add(value, bias), inner), w->TypeOf(x[0]));
}

int EmitPRelu(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  const int low = w->Mul(x[0], x[1]);
  return w->Select(w->Test(MicroOp::kLess, x[0], w->Like(x[0], 0)), low, x[0]);
}

// x / 2 * (1 + erf(x / sqrt 2)), or with tanh(sqrt(2 / pi) (x + 0.044715 x^3)).
int EmitGelu(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  constexpr double kRootHalf = 0.70710678118654752440, kRoot2OverPi = 0.79788456080286535588;
  const int half = w->Times(x[0], 0.5);
  if (GetString(attributes, "approximate", "none") != "tanh") {
    return w->Mul(half, w->Plus(w->Op(MicroOp::kErf, w->Times(x[0], kRootHalf)), 1));
  }
  const int cube = w->Mul(w->Mul(x[0], x[0]), x[0]);
  const int inner = w->Times(w->Add(x[0], w->Times(cube, 0.044715)), kRoot2OverPi);
  return w->Mul(half, w->Plus(w->Op(MicroOp::kTanh, inner), 1));
}

// --- Clip: before opset 11 the bounds are attributes, then inputs. Constant bounds of floats
// become attributes; others are operands of a maximum and a minimum.

bool BoundsAreAttributes(const Graph& graph, const Node& node) {
  if (!IsFloat(InputValue(graph, node, 0).type)) return false;
  for (const int i : {1, 2}) {
    if (HasInput(node, i) && !ConstantScalar(graph, node.inputs[Idx(i)])) return false;
  }
  return true;
}

Status InferClip(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  for (const int i : {1, 2}) {
    if (!HasInput(node, i)) continue;
    const Value& bound = InputValue(graph, node, i);
    if (bound.type != input.type || ElementCount(bound.shape) != 1) {
      return Malformed("the bound '", bound.name, "' is ", TypeName(bound.type), " ",
                       ShapeText(bound.shape), ", not one element of ", TypeName(input.type));
    }
  }
  outputs->push_back({input.type, input.shape});
  return {};
}

Status LowerClip(Rewriter* rewriter, const Node& node) {
  AttributeMap attributes = node.attributes;
  const bool has[] = {HasInput(node, 1), HasInput(node, 2)};
  if (BoundsAreAttributes(rewriter->graph(), node)) {
    const char* const names[] = {"min", "max"};
    for (size_t i = 0; i < 2; ++i) {
      if (!has[i]) continue;
      attributes[names[i]] =
          static_cast<float>(*ConstantScalar(rewriter->graph(), node.inputs[i + 1]));
    }
    rewriter->Finish("Clip", {node.inputs[0]}, std::move(attributes), node.outputs[0]);
    return {};
  }
  ValueId bounds[] = {kNoValue, kNoValue};
  for (size_t i = 0; i < 2; ++i) {
    if (!has[i]) continue;
    DLA_ASSIGN_OR_RETURN(bounds[i],
                         rewriter->Add("View", {node.inputs[i + 1]}, {{"shape", Shape{}}}));
  }
  ValueId value = node.inputs[0];
  if (has[0] && has[1]) {
    DLA_ASSIGN_OR_RETURN(value, rewriter->Add("Max", {value, bounds[0]}));
  }
  if (has[0] || has[1]) {
    rewriter->Finish(has[1] ? "Min" : "Max", {value, bounds[has[1] ? 1 : 0]}, {}, node.outputs[0]);
  } else {
    const Shape shape = rewriter->value(value).shape;
    rewriter->Finish("View", {value}, {{"shape", shape}}, node.outputs[0]);
  }
  return {};
}

constexpr OpDef ClipRow() {
  OpDef row = Map("Clip", 1, EmitClip, kClip);
  row.max_file_inputs = 3;
  row.infer = InferClip;
  row.lower = LowerClip;
  return row;
}

// Before opset 7 a slope of rank 1 has an entry for each channel.
bool SlopeIsByChannel(const Graph& graph, const Node& node) {
  const Shape& input = InputValue(graph, node, 0).shape;
  const Shape& slope = InputValue(graph, node, 1).shape;
  return node.opset < 7 && input.size() > 2 && slope.size() == 1 && slope[0] == input[1];
}

// The slope broadcasts to the input, never the other way round.
Status InferPRelu(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  if (SlopeIsByChannel(graph, node)) {
    const Value& input = InputValue(graph, node, 0);
    if (InputValue(graph, node, 1).type != input.type) {
      return Malformed("the slope is ", TypeName(InputValue(graph, node, 1).type),
                       ", the input is ", TypeName(input.type));
    }
    outputs->push_back({input.type, input.shape});
    return {};
  }
  DLA_RETURN_IF_ERROR(InferMap(graph, node, outputs));
  if (outputs->back().shape != InputValue(graph, node, 0).shape) {
    return Malformed("the slope has shape ", ShapeText(InputValue(graph, node, 1).shape),
                     ", which does not broadcast to ", ShapeText(InputValue(graph, node, 0).shape));
  }
  return {};
}

// Of the canonical form the slope broadcasts as shapes do today.
Status LowerPRelu(Rewriter* rewriter, const Node& node) {
  ValueId slope = node.inputs[1];
  if (SlopeIsByChannel(rewriter->graph(), node)) {
    Shape shape(InputValue(rewriter->graph(), node, 0).shape.size() - 1, 1);
    shape[0] = rewriter->value(slope).shape[0];
    DLA_ASSIGN_OR_RETURN(slope, rewriter->Add("View", {slope}, {{"shape", shape}}));
  }
  rewriter->Finish("PRelu", {node.inputs[0], slope}, {}, node.outputs[0]);
  return {};
}

constexpr OpDef PReluRow() {
  OpDef row = Map("PRelu", 2, EmitPRelu);
  row.infer = InferPRelu;
  row.lower = LowerPRelu;
  return row;
}

constexpr OpDef kRows[] = {
    Since(Map("Celu", 1, EmitCelu, kAlpha1), 12),
    ClipRow(),
    Map("Elu", 1, EmitElu, kAlpha1),
    Since(Map("Gelu", 1, EmitGelu, kGelu), 20),
    Map("HardSigmoid", 1, EmitHardSigmoid, kHardSigmoid),
    Since(Map("HardSwish", 1, EmitHardSwish), 14),
    Map("LeakyRelu", 1, EmitLeakyRelu, kAlpha001),
    Since(Map("Mish", 1, EmitMish), 18),
    PReluRow(),
    Map("Relu", 1, EmitUnary<MicroOp::kRelu>),
    Map("Selu", 1, EmitSelu, kSelu),
    Since(Map("Shrink", 1, EmitShrink, kShrink), 9),
    Map("Sigmoid", 1, EmitUnary<MicroOp::kSigmoid>),
    Map("Softplus", 1, EmitSoftplus),
    Map("Softsign", 1, EmitSoftsign),
    Map("Tanh", 1, EmitUnary<MicroOp::kTanh>),
    Since(Map("ThresholdedRelu", 1, EmitThresholdedRelu, kAlpha1), 10),
};

}  // namespace

std::span<const OpDef> ActivationRows() { return kRows; }

}  // namespace dla::ir
