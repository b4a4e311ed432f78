// Conv: one or two spatial axes, groups, strides, dilations, any padding.
#include "ir/nest_builder.h"
#include "ir/ops/ops.h"
#include "ir/ops/window.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"auto_pad", AttributeKind::kString, "NOTSET", false, "NOTSET, SAME_UPPER, SAME_LOWER, VALID"},
    {"dilations", AttributeKind::kInts, "1s", false, ""},
    {"group", AttributeKind::kInt, "1", false, ""},
    {"kernel_shape", AttributeKind::kInts, "of the weight", false, ""},
    {"pads", AttributeKind::kInts, "0s", false, "begins, then ends"},
    {"strides", AttributeKind::kInts, "1s", false, ""},
};

std::vector<int64_t> Spatial(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

// The geometry, from the operands' shapes; checks everything that can be wrong with them.
Result<ConvShape> Resolve(const Node& node, const Shape& input, const Shape& weight,
                          Window* window) {
  if (input.size() < 3) {
    return Malformed("the input has rank ", input.size(), "; at least 3 is needed");
  }
  if (input.size() > 4) {
    return Unsupported("the input has ", input.size() - 2,
                       " spatial axes; one or two are supported");
  }
  if (weight.size() != input.size()) {
    return Malformed("the weight has rank ", weight.size(), ", the input has rank ", input.size());
  }
  ConvShape shape;
  shape.g = GetInt(node.attributes, "group", 1);
  if (shape.g < 1 || weight[0] % shape.g != 0) {
    return Malformed("attribute 'group' is ", shape.g, ", the weight has ", weight[0],
                     " output channels");
  }
  if (weight[1] > input[1] || weight[1] * shape.g != input[1] || shape.g > input[1]) {
    return Malformed("the weight takes ", weight[1], " channels in each of ", shape.g,
                     " groups, the input has ", input[1]);
  }
  if (node.attributes.contains("kernel_shape") &&
      GetInts(node.attributes, "kernel_shape") != Spatial(weight)) {
    return Malformed("attribute 'kernel_shape' is ",
                     ShapeText(GetInts(node.attributes, "kernel_shape")), ", the weight has ",
                     ShapeText(Spatial(weight)));
  }
  shape.n = input[0];
  shape.m = weight[0] / shape.g;
  shape.c = weight[1];
  DLA_ASSIGN_OR_RETURN(*window, ResolveWindow(node, Spatial(input), Spatial(weight)));
  FillWindow(*window, Spatial(input), &shape);
  return shape;
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  const Value& weight = InputValue(graph, node, 1);
  Window window;
  DLA_RETURN_IF_ERROR(Resolve(node, input.shape, weight.shape, &window).status());
  if (HasInput(node, 2) && InputValue(graph, node, 2).shape != Shape{weight.shape[0]}) {
    return Malformed("the bias has shape ", ShapeText(InputValue(graph, node, 2).shape),
                     ", the weight has ", weight.shape[0], " output channels");
  }
  Shape shape = {input.shape[0], weight.shape[0]};
  shape.insert(shape.end(), window.output.begin(), window.output.end());
  outputs->push_back({input.type, shape});
  return {};
}

Status Evaluate(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  Window window;
  DLA_ASSIGN_OR_RETURN(const ConvShape shape,
                       Resolve(node, inputs[0].shape, inputs[1].shape, &window));
  const bool bias = inputs.size() > 2 && inputs[2].present();
  ConvKernel(shape, inputs[0].f32(), inputs[1].f32(), bias ? inputs[2].f32() : nullptr,
             outputs[0].f32());
  return {};
}

Status Lower(Rewriter* rewriter, const Node& node) {
  Window window;
  DLA_ASSIGN_OR_RETURN(const ConvShape shape,
                       Resolve(node, InputValue(rewriter->graph(), node, 0).shape,
                               InputValue(rewriter->graph(), node, 1).shape, &window));
  AttributeMap attributes = WindowAttributes(window);
  attributes["group"] = shape.g;
  rewriter->Finish("Conv", node.inputs, std::move(attributes), node.outputs[0]);
  return {};
}

// The loops of a convolution, and each operand's strides along them.
struct Loops {
  int n, g, m, c, e, f, r, s;
};

Loops AddLoops(const ConvShape& shape, NestBuilder* builder) {
  const auto add = [&](const char* name, int64_t extent) {
    return builder->AddLoop(name, extent, true);
  };
  Loops loops{};
  loops.n = add("N", shape.n);
  loops.g = add("G", shape.g);
  loops.m = add("M", shape.m);
  loops.c = add("C", shape.c);
  loops.e = add("E", shape.e);
  loops.f = add("F", shape.f);
  loops.r = add("R", shape.r);
  loops.s = add("S", shape.s);
  return loops;
}

// Strides of extent-1 axes are arbitrary, but must not be 0 (that would mean "does not depend").
int64_t Stride(const Value& value, size_t axis) {
  const int64_t stride = value.storage.strides[axis];
  return stride == 0 ? 1 : stride;
}

void AddInput(const Graph& graph, const Node& node, const ConvShape& shape, const Loops& l,
              NestBuilder* builder) {
  const Value& input = InputValue(graph, node, 0);
  std::vector<int64_t> strides(8, 0);
  strides[Idx(l.n)] = Stride(input, 0);
  strides[Idx(l.c)] = Stride(input, 1);
  strides[Idx(l.g)] = Stride(input, 1) * shape.c;
  const int operand = builder->AddOperand(node.inputs[0], OperandClass::kInput, strides);
  const size_t last = input.shape.size() - 1;
  Axis rows{.terms = {{l.e, shape.stride[0]}, {l.r, shape.dilation[0]}},
            .offset = -shape.pad[0],
            .bound = shape.h,
            .stride = last == 3 ? Stride(input, 2) : Stride(input, 2) * shape.w};
  Axis columns{.terms = {{l.f, shape.stride[1]}, {l.s, shape.dilation[1]}},
               .offset = -shape.pad[1],
               .bound = shape.w,
               .stride = Stride(input, last)};
  builder->AddWindowAxis(operand, std::move(rows), 0);
  builder->AddWindowAxis(operand, std::move(columns), 0);
}

void AddWeightAndBias(const Graph& graph, const Node& node, const ConvShape& shape, const Loops& l,
                      NestBuilder* builder) {
  const Value& weight = InputValue(graph, node, 1);
  const size_t last = weight.shape.size() - 1;
  std::vector<int64_t> strides(8, 0);
  strides[Idx(l.g)] = Stride(weight, 0) * shape.m;
  strides[Idx(l.m)] = Stride(weight, 0);
  strides[Idx(l.c)] = Stride(weight, 1);
  strides[Idx(l.r)] = last == 3 ? Stride(weight, 2) : Stride(weight, 2) * shape.s;
  strides[Idx(l.s)] = Stride(weight, last);
  builder->AddOperand(node.inputs[1], OperandClass::kWeight, strides);
  if (!HasInput(node, 2)) return;
  const Value& bias = InputValue(graph, node, 2);
  std::vector<int64_t> along(8, 0);
  along[Idx(l.g)] = Stride(bias, 0) * shape.m;
  along[Idx(l.m)] = Stride(bias, 0);
  builder->set_bias(builder->AddOperand(node.inputs[2], OperandClass::kWeight, along));
}

Result<Nest> ConvNest(const Graph& graph, const Node& node) {
  Window window;
  DLA_ASSIGN_OR_RETURN(const ConvShape shape, Resolve(node, InputValue(graph, node, 0).shape,
                                                      InputValue(graph, node, 1).shape, &window));
  NestBuilder builder(graph, node, Anchor::kContraction);
  const Loops l = AddLoops(shape, &builder);
  AddInput(graph, node, shape, l, &builder);
  AddWeightAndBias(graph, node, shape, l, &builder);
  std::vector<NestBuilder::OutputAxis> axes = {{-1, l.n}, {l.g, l.m}};
  if (window.output.size() == 2) axes.push_back({-1, l.e});
  axes.push_back({-1, l.f});
  builder.AddFusedAndOutput(axes, OperandClass::kOutput, window.output.size() == 1 ? l.e : -1);
  const int accumulator = builder.Emit(MicroOp::kAccumulator);
  builder.EmitLoads(HasInput(node, 2) ? 3 : 2);
  builder.EmitFused(accumulator);
  return builder.Build();
}

}  // namespace

const OpDef kConvOp = {
    .name = "Conv",
    .kind = OpKind::kContraction,
    .min_inputs = 2,
    .max_inputs = 3,
    .attributes = kAttributes,
    .note = "one or two spatial axes; padding >= 0",
    .infer = Infer,
    .evaluate = Evaluate,
    .lower = Lower,
    .nest = ConvNest,
};

}  // namespace dla::ir
