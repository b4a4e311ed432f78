// Conv: one to three spatial axes, groups, strides, dilations, any padding.
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

// The geometry, from the operands' shapes; checks everything that can be wrong with them.
Result<ConvShape> Resolve(const Node& node, const Shape& input, const Shape& weight,
                          Window* window) {
  DLA_RETURN_IF_ERROR(CheckSpatialRank(input));
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
  std::vector<ValueId> inputs = node.inputs;
  if (HasInput(node, 2)) {
    DLA_ASSIGN_OR_RETURN(inputs[2], AccumulatorBias(rewriter, inputs[2]));
  }
  rewriter->Finish("Conv", inputs, std::move(attributes), node.outputs[0]);
  return {};
}

// The loops of a convolution: N, G, M, C, then output and kernel loops of each spatial axis. There
// are always two spatial axes; a third adds the loops D and T.
struct Loops {
  int n, g, m, c;
  std::array<int, ConvShape::kSpatial> out, kernel;  // -1: no such axis
  int count = 0;
};

Loops AddLoops(const ConvShape& shape, size_t spatial, NestBuilder* builder) {
  Loops loops{};
  const auto add = [&](const char* name, int64_t extent) {
    ++loops.count;
    return builder->AddLoop(name, extent, true);
  };
  loops.n = add("N", shape.n);
  loops.g = add("G", shape.g);
  loops.m = add("M", shape.m);
  loops.c = add("C", shape.c);
  const char* const out[] = {"D", "E", "F"};
  const char* const kernel[] = {"T", "R", "S"};
  const size_t first = spatial == 3 ? 0 : 1;
  loops.out.fill(-1);
  loops.kernel.fill(-1);
  for (size_t a = first; a < 3; ++a) loops.out[a] = add(out[a], shape.output[a]);
  for (size_t a = first; a < 3; ++a) loops.kernel[a] = add(kernel[a], shape.kernel[a]);
  return loops;
}

// Strides of extent-1 axes are arbitrary, but must not be 0 (that would mean "does not depend").
int64_t Stride(const Value& value, size_t axis) {
  const int64_t stride = value.storage.strides[axis];
  return stride == 0 ? 1 : stride;
}

// The stride of spatial axis `a` (of three) of a value; that of an axis that is not there spans the
// next one.
int64_t SpatialStride(const Value& value, size_t a, const ConvShape::PerAxis& extents) {
  const size_t lead = ConvShape::kSpatial + 2 - value.shape.size();
  return a < lead ? SpatialStride(value, a + 1, extents) * extents[a + 1]
                  : Stride(value, a - lead + 2);
}

void AddInput(const Graph& graph, const Node& node, const ConvShape& shape, const Loops& l,
              NestBuilder* builder) {
  const Value& input = InputValue(graph, node, 0);
  std::vector<int64_t> strides(Idx(l.count), 0);
  strides[Idx(l.n)] = Stride(input, 0);
  strides[Idx(l.c)] = Stride(input, 1);
  strides[Idx(l.g)] = Stride(input, 1) * shape.c;
  const int operand = builder->AddOperand(node.inputs[0], OperandClass::kInput, strides);
  for (size_t a = 0; a < ConvShape::kSpatial; ++a) {
    if (l.out[a] < 0) continue;
    builder->AddWindowAxis(
        operand,
        Axis{.terms = {{l.out[a], shape.stride[a]}, {l.kernel[a], shape.dilation[a]}},
             .offset = -shape.pad[a],
             .bound = shape.input[a],
             .stride = SpatialStride(input, a, shape.input)},
        0);
  }
}

void AddWeightAndBias(const Graph& graph, const Node& node, const ConvShape& shape, const Loops& l,
                      NestBuilder* builder) {
  const Value& weight = InputValue(graph, node, 1);
  std::vector<int64_t> strides(Idx(l.count), 0);
  strides[Idx(l.g)] = Stride(weight, 0) * shape.m;
  strides[Idx(l.m)] = Stride(weight, 0);
  strides[Idx(l.c)] = Stride(weight, 1);
  for (size_t a = 0; a < ConvShape::kSpatial; ++a) {
    if (l.kernel[a] >= 0) strides[Idx(l.kernel[a])] = SpatialStride(weight, a, shape.kernel);
  }
  builder->AddOperand(node.inputs[1], OperandClass::kWeight, strides);
  if (!HasInput(node, 2)) return;
  const Value& bias = InputValue(graph, node, 2);
  std::vector<int64_t> along(Idx(l.count), 0);
  along[Idx(l.g)] = Stride(bias, 0) * shape.m;
  along[Idx(l.m)] = Stride(bias, 0);
  builder->set_bias(builder->AddOperand(node.inputs[2], OperandClass::kWeight, along));
}

Result<Nest> ConvNest(const Graph& graph, const Node& node) {
  Window window;
  DLA_ASSIGN_OR_RETURN(const ConvShape shape, Resolve(node, InputValue(graph, node, 0).shape,
                                                      InputValue(graph, node, 1).shape, &window));
  const size_t spatial = window.output.size();
  NestBuilder builder(graph, node, Anchor::kContraction);
  const Loops l = AddLoops(shape, spatial, &builder);
  AddInput(graph, node, shape, l, &builder);
  AddWeightAndBias(graph, node, shape, l, &builder);
  std::vector<NestBuilder::OutputAxis> axes = {{-1, l.n}, {l.g, l.m}};
  for (size_t a = ConvShape::kSpatial - spatial; a < ConvShape::kSpatial; ++a) {
    axes.push_back({-1, l.out[a]});
  }
  builder.AddFusedAndOutput(axes, OperandClass::kOutput, spatial == 1 ? l.out[1] : -1);
  const int accumulator = builder.Emit(MicroOp::kAccumulator);
  builder.EmitLoads(HasInput(node, 2) ? 3 : 2);
  builder.EmitFused(accumulator);
  return builder.Build();
}

}  // namespace

Result<ValueId> AccumulatorBias(Rewriter* rewriter, ValueId bias) {
  const TensorView view = ConstantView(rewriter->graph(), bias);
  if (rewriter->value(bias).type == ElementType::kF32) return bias;
  if (view.present()) {
    return rewriter->AddConstant(ConvertTensor(view, ElementType::kF32), "bias");
  }
  return rewriter->Add("Cast", {bias}, {{"to", std::string("f32")}});
}

const OpDef kConvOp = {
    .name = "Conv",
    .kind = OpKind::kContraction,
    .min_inputs = 2,
    .max_inputs = 3,
    .attributes = kAttributes,
    .note = "one to three spatial axes; padding >= 0",
    .infer = Infer,
    .evaluate = Evaluate,
    .lower = Lower,
    .nest = ConvNest,
};

}  // namespace dla::ir
