// Pooling: MaxPool, and AveragePool as a sum of the window (SumPool) divided by its size.
#include <algorithm>
#include <limits>

#include "ir/kernels/reduction.h"
#include "ir/nest_builder.h"
#include "ir/ops/ops.h"
#include "ir/ops/window.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kMaxAttributes[] = {
    {"auto_pad", AttributeKind::kString, "NOTSET", false, "NOTSET, SAME_UPPER, SAME_LOWER, VALID"},
    {"ceil_mode", AttributeKind::kInt, "0", false, ""},
    {"dilations", AttributeKind::kInts, "1s", false, ""},
    {"kernel_shape", AttributeKind::kInts, "", true, ""},
    {"pads", AttributeKind::kInts, "0s", false, "begins, then ends"},
    {"storage_order", AttributeKind::kInt, "0", false, "of Indices, which is not supported"},
    {"strides", AttributeKind::kInts, "1s", false, ""},
};

constexpr AttributeDef kAverageAttributes[] = {
    {"auto_pad", AttributeKind::kString, "NOTSET", false, "NOTSET, SAME_UPPER, SAME_LOWER, VALID"},
    {"ceil_mode", AttributeKind::kInt, "0", false, ""},
    {"count_include_pad", AttributeKind::kInt, "0", false, ""},
    {"dilations", AttributeKind::kInts, "1s", false, ""},
    {"kernel_shape", AttributeKind::kInts, "", true, ""},
    {"pads", AttributeKind::kInts, "0s", false, "begins, then ends"},
    {"strides", AttributeKind::kInts, "1s", false, ""},
};

// Canonical: the output's spatial extents are given, so that ceil_mode is resolved for good.
constexpr AttributeDef kSumAttributes[] = {
    {"ceil_mode", AttributeKind::kInt, "0", false, ""},
    {"dilations", AttributeKind::kInts, "1s", false, ""},
    {"kernel_shape", AttributeKind::kInts, "", true, ""},
    {"pads", AttributeKind::kInts, "0s", false, "begins, then ends"},
    {"strides", AttributeKind::kInts, "1s", false, ""},
};

std::vector<int64_t> Spatial(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

Result<Window> Resolve(const Node& node, const Shape& input) {
  if (input.size() < 3) {
    return Malformed("the input has rank ", input.size(), "; at least 3 is needed");
  }
  if (input.size() > 4) {
    return Unsupported("the input has ", input.size() - 2,
                       " spatial axes; one or two are supported");
  }
  const std::vector<int64_t> kernel = GetInts(node.attributes, "kernel_shape");
  if (kernel.size() + 2 != input.size()) {
    return Malformed("attribute 'kernel_shape' has ", kernel.size(), " entries, the input has ",
                     input.size() - 2, " spatial axes");
  }
  return ResolveWindow(node, Spatial(input), kernel);
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  if (node.outputs.size() > 1 && node.outputs[1] != kNoValue) {
    return Unsupported("the output of indices is not supported");
  }
  DLA_ASSIGN_OR_RETURN(const Window window, Resolve(node, input.shape));
  Shape shape = {input.shape[0], input.shape[1]};
  shape.insert(shape.end(), window.output.begin(), window.output.end());
  outputs->push_back({input.type, shape});
  return {};
}

// Batch and channels are one axis to pooling.
ConvShape Planes(const Shape& input, const Window& window) {
  ConvShape shape;
  shape.c = input[0] * input[1];
  FillWindow(window, Spatial(input), &shape);
  return shape;
}

template <void (*kernel)(const ConvShape&, const float*, float*)>
Status Evaluate(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  DLA_ASSIGN_OR_RETURN(const Window window, Resolve(node, inputs[0].shape));
  kernel(Planes(inputs[0].shape, window), inputs[0].f32(), outputs[0].f32());
  return {};
}

// Padding is kept on both sides: with ceil_mode a window may reach further than pads_end.
Status LowerMax(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(const Window window,
                       Resolve(node, InputValue(rewriter->graph(), node, 0).shape));
  AttributeMap attributes = WindowAttributes(window);
  attributes["kernel_shape"] = window.kernel;
  attributes["ceil_mode"] = GetInt(node.attributes, "ceil_mode", 0);
  rewriter->Finish("MaxPool", {node.inputs[0]}, std::move(attributes), node.outputs[0]);
  return {};
}

// For each output position of spatial axis i: how many entries of its window count.
std::vector<int64_t> CountEntries(const Window& window, size_t i, int64_t input, bool with_pads) {
  const int64_t low = with_pads ? -window.pads_begin[i] : 0;
  const int64_t high = with_pads ? input + window.pads_end[i] : input;
  std::vector<int64_t> counts;
  for (int64_t e = 0; e < window.output[i]; ++e) {
    int64_t count = 0;
    for (int64_t r = 0; r < window.kernel[i]; ++r) {
      const int64_t at = e * window.strides[i] - window.pads_begin[i] + r * window.dilations[i];
      if (at >= low && at < high) ++count;
    }
    counts.push_back(count);
  }
  return counts;
}

Tensor Divisors(const Window& window, const std::vector<int64_t>& input, bool with_pads) {
  std::vector<float> values = {1.0f};
  for (size_t i = 0; i < input.size(); ++i) {
    std::vector<float> next;
    for (const float value : values) {
      for (const int64_t count : CountEntries(window, i, input[i], with_pads)) {
        next.push_back(value * static_cast<float>(count));
      }
    }
    values = std::move(next);
  }
  const bool same =
      std::all_of(values.begin(), values.end(), [&](float value) { return value == values[0]; });
  if (same) return Tensor::Floats({}, {values[0]});
  return Tensor::Floats(window.output, values);
}

Status LowerAverage(Rewriter* rewriter, const Node& node) {
  const Shape shape = InputValue(rewriter->graph(), node, 0).shape;
  DLA_ASSIGN_OR_RETURN(const Window window, Resolve(node, shape));
  AttributeMap attributes = WindowAttributes(window);
  attributes["kernel_shape"] = window.kernel;
  attributes["ceil_mode"] = GetInt(node.attributes, "ceil_mode", 0);
  const bool with_pads = GetInt(node.attributes, "count_include_pad", 0) != 0;
  const ValueId count =
      rewriter->AddConstant(Divisors(window, Spatial(shape), with_pads), "window");
  DLA_ASSIGN_OR_RETURN(const ValueId sum,
                       rewriter->Add("SumPool", {node.inputs[0]}, std::move(attributes)));
  rewriter->Finish("Div", {sum, count}, {}, node.outputs[0]);
  return {};
}

struct PoolLoops {
  int n, c, e, f, r, s;
};

Result<Nest> PoolNest(const Graph& graph, const Node& node, MicroOp reduce, float pad_value) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const Window window, Resolve(node, input.shape));
  const ConvShape shape = Planes(input.shape, window);
  const bool rows = window.output.size() == 2;
  NestBuilder builder(graph, node, Anchor::kVector);
  PoolLoops l{};
  l.n = builder.AddLoop("N", input.shape[0]);
  l.c = builder.AddLoop("C", input.shape[1]);
  if (rows) l.e = builder.AddLoop("E", shape.e, true);
  l.f = builder.AddLoop("F", shape.f, true);
  if (rows) l.r = builder.AddLoop("R", shape.r, true);
  l.s = builder.AddLoop("S", shape.s, true);
  std::vector<int64_t> strides(6, 0);
  strides[Idx(l.n)] = input.storage.strides[0];
  strides[Idx(l.c)] = input.storage.strides[1];
  const int operand = builder.AddOperand(node.inputs[0], OperandClass::kVector, strides);
  const size_t last = input.shape.size() - 1;
  if (rows) {
    builder.AddWindowAxis(operand,
                          {.terms = {{l.e, shape.stride[0]}, {l.r, shape.dilation[0]}},
                           .offset = -shape.pad[0],
                           .bound = shape.h,
                           .stride = input.storage.strides[2]},
                          pad_value);
  }
  builder.AddWindowAxis(operand,
                        {.terms = {{l.f, shape.stride[1]}, {l.s, shape.dilation[1]}},
                         .offset = -shape.pad[1],
                         .bound = shape.w,
                         .stride = input.storage.strides[last]},
                        pad_value);
  std::vector<NestBuilder::OutputAxis> axes = {{-1, l.n}, {-1, l.c}};
  if (rows) axes.push_back({-1, l.e});
  axes.push_back({-1, l.f});
  builder.AddFusedAndOutput(axes, OperandClass::kVector);
  builder.EmitLoads(0);
  builder.EmitFused(builder.Emit(reduce, builder.Loaded(operand)));
  return builder.Build();
}

Result<Nest> MaxPoolNest(const Graph& graph, const Node& node) {
  return PoolNest(graph, node, MicroOp::kReduceMax, -std::numeric_limits<float>::infinity());
}

Result<Nest> SumPoolNest(const Graph& graph, const Node& node) {
  return PoolNest(graph, node, MicroOp::kReduceSum, 0);
}

}  // namespace

const OpDef kMaxPoolOp = {
    .name = "MaxPool",
    .kind = OpKind::kReduction,
    .max_outputs = 2,
    .attributes = kMaxAttributes,
    .note = "one or two spatial axes; no output of indices",
    .infer = Infer,
    .evaluate = Evaluate<MaxPoolKernel>,
    .lower = LowerMax,
    .nest = MaxPoolNest,
};

const OpDef kAveragePoolOp = {
    .name = "AveragePool",
    .attributes = kAverageAttributes,
    .note = "one or two spatial axes",
    .infer = Infer,
    .lower = LowerAverage,
};

const OpDef kSumPoolOp = {
    .name = "SumPool",
    .kind = OpKind::kReduction,
    .onnx = false,
    .attributes = kSumAttributes,
    .note = "sum of the window; AveragePool divides it",
    .infer = Infer,
    .evaluate = Evaluate<SumPoolKernel>,
    .nest = SumPoolNest,
};

}  // namespace dla::ir
