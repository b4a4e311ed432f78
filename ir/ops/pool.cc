// Pooling: MaxPool (and where its maxima stand), AveragePool as a sum of the window (SumPool)
// divided by its size, LpPool as a root of a sum of powers.
#include <algorithm>
#include <functional>
#include <limits>

#include "ir/kernels/pooling.h"
#include "ir/nest_builder.h"
#include "ir/ops/ops.h"
#include "ir/ops/pick.h"
#include "ir/ops/window.h"
#include "ir/rewriter.h"
#include "support/checked.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAutoPad = {"auto_pad", AttributeKind::kString, "NOTSET", false,
                                   "NOTSET, SAME_UPPER, SAME_LOWER, VALID"};
constexpr AttributeDef kCeilMode = {"ceil_mode", AttributeKind::kInt, "0", false, ""};
constexpr AttributeDef kDilations = {"dilations", AttributeKind::kInts, "1s", false, ""};
constexpr AttributeDef kKernelShape = {"kernel_shape", AttributeKind::kInts, "", true, ""};
constexpr AttributeDef kPads = {"pads", AttributeKind::kInts, "0s", false, "begins, then ends"};
constexpr AttributeDef kStrides = {"strides", AttributeKind::kInts, "1s", false, ""};
constexpr AttributeDef kCountPads = {"count_include_pad", AttributeKind::kInt, "0", false, ""};
constexpr AttributeDef kStorageOrder = {"storage_order", AttributeKind::kInt, "0", false,
                                        "of Indices; 1: columns first"};
constexpr AttributeDef kPower = {"p", AttributeKind::kInt, "2", false, ""};

constexpr AttributeDef kMaxAttributes[] = {kAutoPad, kCeilMode,     kDilations, kKernelShape,
                                           kPads,    kStorageOrder, kStrides};
constexpr AttributeDef kAverageAttributes[] = {kAutoPad,     kCeilMode, kCountPads, kDilations,
                                               kKernelShape, kPads,     kStrides};
constexpr AttributeDef kLpAttributes[] = {kAutoPad, kCeilMode, kDilations, kKernelShape,
                                          kPower,   kPads,     kStrides};
constexpr AttributeDef kSumAttributes[] = {kCeilMode, kDilations, kKernelShape, kPads, kStrides};

Result<Window> Resolve(const Node& node, const Shape& input) {
  DLA_RETURN_IF_ERROR(CheckSpatialRank(input));
  const std::vector<int64_t> kernel = GetInts(node.attributes, "kernel_shape");
  if (kernel.size() + 2 != input.size()) {
    return Malformed("attribute 'kernel_shape' has ", kernel.size(), " entries, the input has ",
                     input.size() - 2, " spatial axes");
  }
  return ResolveWindow(node, Spatial(input), kernel);
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const Window window, Resolve(node, input.shape));
  Shape shape = {input.shape[0], input.shape[1]};
  shape.insert(shape.end(), window.output.begin(), window.output.end());
  outputs->push_back({input.type, shape});
  outputs->push_back({ElementType::kI64, shape});  // MaxPool's indices
  return {};
}

Status InferIndices(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  DLA_RETURN_IF_ERROR(Infer(graph, node, outputs));
  outputs->erase(outputs->begin());
  return {};
}

// Batch and channels are one axis to pooling.
ConvShape Planes(const Shape& input, const Window& window) {
  ConvShape shape;
  shape.c = input[0] * input[1];
  FillWindow(window, Spatial(input), &shape);
  return shape;
}

// Calls `kernel` with the input and the output as arrays of f32 or f64.
template <typename Kernel>
Status EvaluateIn(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs,
                  Kernel kernel) {
  DLA_ASSIGN_OR_RETURN(const Window window, Resolve(node, inputs[0].shape));
  const ConvShape shape = Planes(inputs[0].shape, window);
  if (inputs[0].type == ElementType::kF64) {
    kernel(shape, static_cast<const double*>(static_cast<const void*>(inputs[0].bytes)),
           static_cast<void*>(outputs[0].bytes.data()));
    return {};
  }
  const Tensor input = ConvertTensor(inputs[0], ElementType::kF32);
  if (outputs[0].type == ElementType::kI64) {
    kernel(shape, input.view().f32(), static_cast<void*>(outputs[0].bytes.data()));
    return {};
  }
  Tensor result = Tensor::Zeros({ElementType::kF32, outputs[0].shape});
  kernel(shape, input.view().f32(), static_cast<void*>(result.bytes.data()));
  outputs[0] = ConvertTensor(result.view(), outputs[0].type);
  return {};
}

Status EvaluateMax(const Node& node, std::span<const TensorView> inputs,
                   std::span<Tensor> outputs) {
  return EvaluateIn(node, inputs, outputs, [](const ConvShape& shape, auto* input, void* output) {
    using T = std::remove_cvref_t<decltype(*input)>;
    MaxPoolKernel<T>(shape, input, static_cast<T*>(output));
  });
}

Status EvaluateSum(const Node& node, std::span<const TensorView> inputs,
                   std::span<Tensor> outputs) {
  return EvaluateIn(node, inputs, outputs, [](const ConvShape& shape, auto* input, void* output) {
    using T = std::remove_cvref_t<decltype(*input)>;
    SumPoolKernel<T>(shape, input, static_cast<T*>(output));
  });
}

Status EvaluateIndices(const Node& node, std::span<const TensorView> inputs,
                       std::span<Tensor> outputs) {
  return EvaluateIn(node, inputs, outputs, [](const ConvShape& shape, auto* input, void* output) {
    using T = std::remove_cvref_t<decltype(*input)>;
    MaxPoolIndexKernel<T>(shape, input, static_cast<int64_t*>(output));
  });
}

// Padding is kept on both sides: with ceil_mode a window may reach further than pads_end.
AttributeMap PoolAttributes(const Node& node, const Window& window) {
  AttributeMap attributes = WindowAttributes(window);
  attributes["kernel_shape"] = window.kernel;
  attributes["ceil_mode"] = GetInt(node.attributes, "ceil_mode", 0);
  return attributes;
}

// Places counted with the first spatial axis innermost instead of the last: the digits of the place
// within its plane (of one channel), in the other order.
Status ColumnsFirst(Rewriter* rewriter, ValueId rows, const Shape& shape, ValueId output) {
  const auto with = [&](const char* op, ValueId value, int64_t number) {
    const ValueId constant = rewriter->AddConstant(Tensor::Ints({}, {number}), "extent");
    return rewriter->Add(op, {value, constant});
  };
  int64_t step = ElementCount({shape.begin() + 2, shape.end()});
  ValueId planes = rows, sum = kNoValue;
  for (size_t i = shape.size(); i-- > 2;) {
    step /= shape[i];
    DLA_ASSIGN_OR_RETURN(const ValueId digit, with("Mod", planes, shape[i]));
    DLA_ASSIGN_OR_RETURN(const ValueId part, with("Mul", digit, step));
    DLA_ASSIGN_OR_RETURN(planes, with("Div", planes, shape[i]));
    if (sum == kNoValue) {
      sum = part;
    } else {
      DLA_ASSIGN_OR_RETURN(sum, rewriter->Add("Add", {sum, part}));
    }
  }
  DLA_ASSIGN_OR_RETURN(const ValueId start,
                       with("Mul", planes, ElementCount({shape.begin() + 2, shape.end()})));
  rewriter->Finish("Add", {start, sum}, {}, output);
  return {};
}

Status LowerMax(Rewriter* rewriter, const Node& node) {
  const Shape shape = InputValue(rewriter->graph(), node, 0).shape;
  DLA_ASSIGN_OR_RETURN(const Window window, Resolve(node, shape));
  const AttributeMap attributes = PoolAttributes(node, window);
  if (node.outputs[0] != kNoValue) {
    rewriter->Finish("MaxPool", {node.inputs[0]}, attributes, node.outputs[0]);
  }
  if (node.outputs.size() < 2 || node.outputs[1] == kNoValue) return {};
  if (GetInt(node.attributes, "storage_order", 0) == 0 || shape.size() == 3) {
    rewriter->Finish("MaxPoolIndices", {node.inputs[0]}, attributes, node.outputs[1]);
    return {};
  }
  DLA_ASSIGN_OR_RETURN(const ValueId rows,
                       rewriter->Add("MaxPoolIndices", {node.inputs[0]}, attributes));
  return ColumnsFirst(rewriter, rows, shape, node.outputs[1]);
}

// For each output position of spatial axis i: how many entries of its window count.
std::vector<int64_t> CountEntries(const Window& window, size_t i, int64_t input, bool with_pads) {
  const int64_t low = with_pads ? -window.pads_begin[i] : 0;
  const int64_t high = with_pads ? input + window.pads_end[i] : input;
  std::vector<int64_t> counts;
  for (int64_t e = 0; e < window.output[i]; ++e) {
    // Of the entries begin, begin + dilation, ... those in [low, high).
    const int64_t begin = e * window.strides[i] - window.pads_begin[i];
    const auto entries_below = [&](int64_t limit) {
      return limit <= begin
                 ? 0
                 : std::min(window.kernel[i], CeilDiv(limit - begin, window.dilations[i]));
    };
    counts.push_back(entries_below(high) - entries_below(low));
  }
  return counts;
}

// What the sums at all output positions are divided by: one number where all are the same.
Result<Tensor> Divisors(const Window& window, const std::vector<int64_t>& input, bool with_pads,
                        ElementType type) {
  std::vector<std::vector<int64_t>> counts;
  float same = 1;
  int64_t places = 1;
  bool all_same = true;
  for (size_t i = 0; i < input.size(); ++i) {
    DLA_RETURN_IF_ERROR(CheckPicked(window.output[i]));
    counts.push_back(CountEntries(window, i, input[i], with_pads));
    const std::vector<int64_t>& now = counts.back();
    all_same =
        all_same && std::adjacent_find(now.begin(), now.end(), std::not_equal_to<>()) == now.end();
    same *= static_cast<float>(now[0]);
    places = std::min(places * window.output[i], kMostPicked + 1);
  }
  if (all_same) return ConvertTensor(Tensor::Floats({}, {same}).view(), type);
  DLA_RETURN_IF_ERROR(CheckPicked(places));
  std::vector<float> values = {1.0f};
  for (const std::vector<int64_t>& along : counts) {
    std::vector<float> next;
    for (const float value : values) {
      for (const int64_t count : along) next.push_back(value * static_cast<float>(count));
    }
    values = std::move(next);
  }
  return ConvertTensor(Tensor::Floats(window.output, values).view(), type);
}

// Divided in f32, so that a sum of halves does not overflow.
Status LowerAverage(Rewriter* rewriter, const Node& node) {
  const Value& input = InputValue(rewriter->graph(), node, 0);
  const ElementType type = input.type;
  const Shape shape = input.shape;
  DLA_ASSIGN_OR_RETURN(const Window window, Resolve(node, shape));
  const bool with_pads = GetInt(node.attributes, "count_include_pad", 0) != 0;
  const bool widen = type == ElementType::kF16 || type == ElementType::kBF16;
  const ElementType wide = widen ? ElementType::kF32 : type;
  ValueId value = node.inputs[0];
  if (widen) {
    DLA_ASSIGN_OR_RETURN(value, rewriter->Add("Cast", {value}, {{"to", std::string("f32")}}));
  }
  DLA_ASSIGN_OR_RETURN(Tensor divisors, Divisors(window, Spatial(shape), with_pads, wide));
  const ValueId count = rewriter->AddConstant(std::move(divisors), "window");
  DLA_ASSIGN_OR_RETURN(value, rewriter->Add("SumPool", {value}, PoolAttributes(node, window)));
  if (!widen) {
    rewriter->Finish("Div", {value, count}, {}, node.outputs[0]);
    return {};
  }
  DLA_ASSIGN_OR_RETURN(value, rewriter->Add("Div", {value, count}));
  rewriter->Finish("Cast", {value}, {{"to", std::string(TypeName(type))}}, node.outputs[0]);
  return {};
}

Status LowerLp(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(const Window window,
                       Resolve(node, InputValue(rewriter->graph(), node, 0).shape));
  const int64_t p = GetInt(node.attributes, "p", 2);
  if (p < 1) return Malformed("attribute 'p' is ", p);
  DLA_ASSIGN_OR_RETURN(const ValueId powers, PowerOfAbs(rewriter, node.inputs[0], p));
  AttributeMap attributes = PoolAttributes(node, window);
  if (p == 1) {
    rewriter->Finish("SumPool", {powers}, std::move(attributes), node.outputs[0]);
    return {};
  }
  DLA_ASSIGN_OR_RETURN(const ValueId sum,
                       rewriter->Add("SumPool", {powers}, std::move(attributes)));
  if (p == 2) {
    rewriter->Finish("Sqrt", {sum}, {}, node.outputs[0]);
    return {};
  }
  const ValueId root = FloatLike(rewriter, sum, 1.0 / static_cast<double>(p), "root");
  rewriter->Finish("Pow", {sum, root}, {}, node.outputs[0]);
  return {};
}

// --- Nests.

struct PoolLoops {
  int n, c;
  std::vector<int> out, kernel;  // one a spatial axis
};

// Adds the loops and the input, whose axes are windows.
int AddWindows(const Graph& graph, const Node& node, const Window& window, double pad_value,
               bool keep_planes, NestBuilder* builder, PoolLoops* l) {
  const Value& input = InputValue(graph, node, 0);
  const size_t spatial = window.output.size();
  const char* const out[] = {"D", "E", "F"};
  const char* const kernel[] = {"T", "R", "S"};
  l->n = builder->AddLoop("N", input.shape[0], keep_planes);
  l->c = builder->AddLoop("C", input.shape[1], keep_planes);
  for (size_t i = 0; i < spatial; ++i) {
    l->out.push_back(builder->AddLoop(out[3 - spatial + i], window.output[i], true));
  }
  for (size_t i = 0; i < spatial; ++i) {
    l->kernel.push_back(builder->AddLoop(kernel[3 - spatial + i], window.kernel[i], true));
  }
  std::vector<int64_t> strides(2 + 2 * spatial, 0);
  strides[Idx(l->n)] = std::max<int64_t>(1, input.storage.strides[0]);
  strides[Idx(l->c)] = std::max<int64_t>(1, input.storage.strides[1]);
  const int operand = builder->AddOperand(node.inputs[0], OperandClass::kVector, strides);
  for (size_t i = 0; i < spatial; ++i) {
    builder->AddWindowAxis(
        operand,
        {.terms = {{l->out[i], window.strides[i]}, {l->kernel[i], window.dilations[i]}},
         .offset = -window.pads_begin[i],
         .bound = input.shape[i + 2],
         .stride = std::max<int64_t>(1, input.storage.strides[i + 2])},
        pad_value);
  }
  std::vector<NestBuilder::OutputAxis> axes = {{-1, l->n}, {-1, l->c}};
  for (const int loop : l->out) axes.push_back({-1, loop});
  builder->AddFusedAndOutput(axes, OperandClass::kVector);
  builder->EmitLoads(0);
  return builder->Loaded(operand);
}

// What never wins a maximum of this type.
double Lowest(ElementType type) {
  if (IsFloat(type)) return -std::numeric_limits<double>::infinity();
  switch (type) {
    case ElementType::kI8:
      return -0x1p7;
    case ElementType::kI16:
      return -0x1p15;
    case ElementType::kI32:
      return -0x1p31;
    case ElementType::kI64:
      return -0x1p63;
    default:
      return 0;
  }
}

Result<Nest> PoolNest(const Graph& graph, const Node& node, MicroOp reduce, double pad_value) {
  DLA_ASSIGN_OR_RETURN(const Window window, Resolve(node, InputValue(graph, node, 0).shape));
  NestBuilder builder(graph, node, Anchor::kVector);
  PoolLoops l{};
  const int x = AddWindows(graph, node, window, pad_value, false, &builder, &l);
  builder.EmitFused(builder.Emit(reduce, x));
  return builder.Build();
}

Result<Nest> MaxPoolNest(const Graph& graph, const Node& node) {
  return PoolNest(graph, node, MicroOp::kReduceMax, Lowest(InputValue(graph, node, 0).type));
}

Result<Nest> SumPoolNest(const Graph& graph, const Node& node) {
  return PoolNest(graph, node, MicroOp::kReduceSum, 0);
}

// The lowest place at which the maximum stands, among those inside the input.
Result<Nest> IndicesNest(const Graph& graph, const Node& node) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const Window window, Resolve(node, input.shape));
  NestBuilder builder(graph, node, Anchor::kVector);
  PoolLoops l{};
  const int x = AddWindows(graph, node, window, Lowest(input.type), true, &builder, &l);
  MicroWriter w = builder.writer();
  int place = w.Add(w.Times(w.Index(l.n), static_cast<double>(input.shape[1])), w.Index(l.c));
  int counts = w.Test(MicroOp::kEqual, x, w.Op(MicroOp::kReduceMax, x));
  double padding = 0;
  for (size_t i = 0; i < l.out.size(); ++i) {
    const double extent = static_cast<double>(input.shape[i + 2]);
    // The place in the padded input: what padding adds is taken off at the end.
    const double before = static_cast<double>(window.pads_begin[i]);
    const int at = w.Add(w.Times(w.Index(l.out[i]), static_cast<double>(window.strides[i])),
                         w.Times(w.Index(l.kernel[i]), static_cast<double>(window.dilations[i])));
    if (before > 0) {
      const int low = w.Test(MicroOp::kLessOrEqual, w.Like(at, before), at);
      counts = w.Op(MicroOp::kAnd, counts, low);
    }
    if (window.pads_end[i] > 0 || GetInt(node.attributes, "ceil_mode", 0) != 0) {
      const int high = w.Test(MicroOp::kLess, at, w.Like(at, extent + before));
      counts = w.Op(MicroOp::kAnd, counts, high);
    }
    place = w.Add(w.Times(place, extent), at);
    padding = padding * extent + before;
  }
  if (padding != 0) place = w.Plus(place, -padding);
  const int candidate = w.Select(counts, place, w.Const(ElementType::kI64, 0x1p52));
  builder.EmitFused(w.Op(MicroOp::kReduceMin, candidate));
  return builder.Build();
}

constexpr OpDef Pool(std::string_view name, std::span<const AttributeDef> attributes,
                     decltype(OpDef::evaluate) evaluate, decltype(OpDef::lower) lower,
                     decltype(OpDef::nest) nest) {
  OpDef row;
  row.name = name;
  row.kind = nest == nullptr ? OpKind::kOnnxOnly : OpKind::kReduction;
  row.attributes = attributes;
  row.note = "one to three spatial axes";
  row.infer = Infer;
  row.evaluate = evaluate;
  row.lower = lower;
  row.nest = nest;
  return row;
}

constexpr OpDef MaxRow() {
  OpDef row = Pool("MaxPool", kMaxAttributes, EvaluateMax, LowerMax, MaxPoolNest);
  row.max_outputs = 2;
  return row;
}

constexpr OpDef Internal(OpDef row, std::string_view note, decltype(OpDef::infer) infer) {
  row.onnx = false;
  row.note = note;
  row.infer = infer;
  return row;
}

constexpr OpDef kRows[] = {
    Pool("AveragePool", kAverageAttributes, nullptr, LowerAverage, nullptr),
    Pool("LpPool", kLpAttributes, nullptr, LowerLp, nullptr),
    MaxRow(),
    Internal(Pool("MaxPoolIndices", kSumAttributes, EvaluateIndices, nullptr, IndicesNest),
             "where MaxPool's maxima stand", InferIndices),
    Internal(Pool("SumPool", kSumAttributes, EvaluateSum, nullptr, SumPoolNest),
             "sum of the window; AveragePool divides it", Infer),
};

}  // namespace

std::span<const OpDef> PoolRows() { return kRows; }

}  // namespace dla::ir
