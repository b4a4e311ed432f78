// Operators whose result is known when the model is compiled, and those that use such a pattern:
// Range, EyeLike, NonZero, OneHot, Trilu.
#include <cmath>

#include "ir/ops/ops.h"
#include "ir/ops/pick.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kEyeAttributes[] = {
    {"dtype", AttributeKind::kType, "of the input", false, ""},
    {"k", AttributeKind::kInt, "0", false, ""}};
constexpr AttributeDef kHotAttributes[] = {{"axis", AttributeKind::kInt, "-1", false, ""}};
constexpr AttributeDef kTriluAttributes[] = {{"upper", AttributeKind::kInt, "1", false, ""}};

constexpr int64_t kMostElements = int64_t{1} << 26;

// --- Range.

Result<int64_t> RangeCount(const Graph& graph, const Node& node) {
  double numbers[3];
  for (int i = 0; i < 3; ++i) {
    const auto number = ConstantScalar(graph, node.inputs[Idx(i)]);
    if (!number) {
      return Unsupported("input '", InputValue(graph, node, i).name,
                         "' is computed when the model runs; it must be constant");
    }
    numbers[i] = *number;
  }
  if (numbers[2] == 0) return Malformed("the step is 0");
  const double count = std::ceil((numbers[1] - numbers[0]) / numbers[2]);
  if (!(count <= static_cast<double>(kMostElements))) {
    return Unsupported("it has more than ", kMostElements, " entries");
  }
  return static_cast<int64_t>(std::max(0.0, count));
}

Status InferRange(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  DLA_ASSIGN_OR_RETURN(const int64_t count, RangeCount(graph, node));
  outputs->push_back({InputValue(graph, node, 0).type, {count}});
  return {};
}

Status EvaluateRange(const Node&, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  Tensor& output = outputs[0];
  for (int64_t i = 0; i < output.elements(); ++i) {
    if (IsFloat(output.type)) {
      const double at =
          ReadDouble(inputs[0], 0) + static_cast<double>(i) * ReadDouble(inputs[2], 0);
      WriteDouble(&output, i, at);
    } else {
      WriteInt(&output, i, ReadInt(inputs[0], 0) + i * ReadInt(inputs[2], 0));
    }
  }
  return {};
}

// --- EyeLike.

Status InferEye(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  if (input.shape.size() != 2) return Malformed("the input has rank ", input.shape.size());
  const std::string name = GetString(node.attributes, "dtype", std::string(TypeName(input.type)));
  const auto type = ParseElementType(name);
  if (!type || !IsReadable(*type)) return Unsupported("type ", name, " is not supported");
  outputs->push_back({*type, input.shape});
  return {};
}

Status EvaluateEye(const Node& node, std::span<const TensorView>, std::span<Tensor> outputs) {
  const int64_t k = GetInt(node.attributes, "k", 0);
  const Shape& shape = outputs[0].shape;
  for (int64_t i = 0; i < shape[0]; ++i) {
    if (k > -shape[0] && k < shape[1] && i + k >= 0 && i + k < shape[1]) {
      WriteDouble(&outputs[0], i * shape[1] + i + k, 1);
    }
  }
  return {};
}

// --- NonZero of a constant.

std::vector<int64_t> NonZeros(const TensorView& view) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < view.elements(); ++i) {
    if (ReadDouble(view, i) != 0) places.push_back(i);
  }
  return places;
}

Status InferNonZero(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const TensorView view = ConstantView(graph, node.inputs[0]);
  if (!view.present() || !IsReadable(view.type)) {
    return Unsupported("the number of results is known only when the model runs");
  }
  outputs->push_back(
      {ElementType::kI64,
       {static_cast<int64_t>(view.shape.size()), static_cast<int64_t>(NonZeros(view).size())}});
  return {};
}

Status EvaluateNonZero(const Node&, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  const std::vector<int64_t> places = NonZeros(inputs[0]);
  const int64_t count = static_cast<int64_t>(places.size());
  const Shape strides = DenseStrides(inputs[0].shape);
  for (size_t a = 0; a < strides.size(); ++a) {
    for (int64_t i = 0; i < count; ++i) {
      WriteInt(&outputs[0], static_cast<int64_t>(a) * count + i,
               places[Idx(i)] / strides[a] % inputs[0].shape[a]);
    }
  }
  return {};
}

// --- Compress: a constant condition picks entries.

constexpr AttributeDef kCompressAttributes[] = {
    {"axis", AttributeKind::kInt, "none", false, "none: of the flattened input"}};

Result<std::vector<int64_t>> Kept(const Graph& graph, const Node& node, int64_t extent) {
  const TensorView condition = ConstantView(graph, node.inputs[1]);
  if (!condition.present()) {
    return Unsupported("the condition is computed when the model runs; it must be constant");
  }
  std::vector<int64_t> kept = NonZeros(condition);
  if (condition.elements() > extent) return Malformed("the condition is longer than the axis");
  return kept;
}

// The input's shape as Compress sees it, and the axis.
Result<std::pair<Shape, int64_t>> CompressView(const Graph& graph, const Node& node) {
  const Shape& shape = InputValue(graph, node, 0).shape;
  if (!node.attributes.contains("axis")) {
    return std::pair(Shape{ElementCount(shape)}, int64_t{0});
  }
  DLA_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(GetInt(node.attributes, "axis", 0),
                                                         static_cast<int64_t>(shape.size())));
  return std::pair(shape, axis);
}

Status InferCompress(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  DLA_ASSIGN_OR_RETURN(auto view, CompressView(graph, node));
  DLA_ASSIGN_OR_RETURN(const auto kept, Kept(graph, node, view.first[Idx(view.second)]));
  view.first[Idx(view.second)] = static_cast<int64_t>(kept.size());
  outputs->push_back({InputValue(graph, node, 0).type, view.first});
  return {};
}

Status LowerCompress(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(const auto view, CompressView(rewriter->graph(), node));
  DLA_ASSIGN_OR_RETURN(const auto kept,
                       Kept(rewriter->graph(), node, view.first[Idx(view.second)]));
  DLA_ASSIGN_OR_RETURN(const ValueId flat, Reshaped(rewriter, node.inputs[0], view.first));
  return Pick(rewriter, flat, Idx(view.second), kept, node.outputs[0]).status();
}

// --- OneHot: the indices compared with 0, 1, ...

Result<int64_t> Depth(const Graph& graph, const Node& node) {
  const auto depth = ConstantScalar(graph, node.inputs[1]);
  if (!depth) return Unsupported("the depth is computed when the model runs; it must be constant");
  if (!(*depth >= 1 && *depth < 0x1p31)) return Malformed("the depth is ", *depth);
  return static_cast<int64_t>(*depth);
}

Result<int64_t> HotAxis(const Node& node, size_t rank) {
  return NormalizeAxis(GetInt(node.attributes, "axis", -1), static_cast<int64_t>(rank) + 1);
}

Status InferHot(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& indices = InputValue(graph, node, 0);
  const Value& values = InputValue(graph, node, 2);
  if (values.shape != Shape{2}) return Malformed("the values have shape ", ShapeText(values.shape));
  DLA_ASSIGN_OR_RETURN(const int64_t depth, Depth(graph, node));
  DLA_ASSIGN_OR_RETURN(const int64_t axis, HotAxis(node, indices.shape.size()));
  Shape shape = indices.shape;
  shape.insert(shape.begin() + axis, depth);
  outputs->push_back({values.type, shape});
  return {};
}

Status LowerHot(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(const int64_t depth, Depth(rewriter->graph(), node));
  Shape shape = InputValue(rewriter->graph(), node, 0).shape;
  DLA_ASSIGN_OR_RETURN(const int64_t axis, HotAxis(node, shape.size()));
  Shape along(shape.size() + 1 - Idx(axis), 1);
  along[0] = depth;
  shape.insert(shape.begin() + axis, 1);
  DLA_RETURN_IF_ERROR(CheckPicked(depth));
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < depth; ++i) numbers.push_back(i);
  const ValueId range = rewriter->AddConstant(Tensor::Ints(along, numbers), "range");
  const ValueId extent = rewriter->AddConstant(Tensor::Ints({}, {depth}), "depth");
  const ValueId zero = rewriter->AddConstant(Tensor::Ints({}, {0}), "zero");
  DLA_ASSIGN_OR_RETURN(ValueId index, Reshaped(rewriter, node.inputs[0], shape));
  if (rewriter->value(index).type != ElementType::kI64) {
    DLA_ASSIGN_OR_RETURN(index, rewriter->Add("Cast", {index}, {{"to", std::string("i64")}}));
  }
  // Negative indices count from the end; what is outside matches nothing.
  DLA_ASSIGN_OR_RETURN(const ValueId wrapped, rewriter->Add("Add", {index, extent}));
  DLA_ASSIGN_OR_RETURN(const ValueId negative, rewriter->Add("Less", {index, zero}));
  DLA_ASSIGN_OR_RETURN(index, rewriter->Add("Where", {negative, wrapped, index}));
  DLA_ASSIGN_OR_RETURN(const ValueId hot, rewriter->Add("Equal", {index, range}));
  DLA_ASSIGN_OR_RETURN(ValueId off, Pick(rewriter, node.inputs[2], 0, {0}));
  DLA_ASSIGN_OR_RETURN(ValueId on, Pick(rewriter, node.inputs[2], 0, {1}));
  DLA_ASSIGN_OR_RETURN(off, Reshaped(rewriter, off, {}));
  DLA_ASSIGN_OR_RETURN(on, Reshaped(rewriter, on, {}));
  rewriter->Finish("Where", {hot, on, off}, {}, node.outputs[0]);
  return {};
}

// --- Trilu: a mask chooses between the input and zeros. It tells by how much an element's column
// exceeds its row, as compared with k, which may be computed when the model runs.

Status InferTrilu(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  if (input.shape.size() < 2) return Malformed("the input has rank ", input.shape.size());
  if (HasInput(node, 1)) {
    const Value& k = InputValue(graph, node, 1);
    if (k.type != ElementType::kI64 || ElementCount(k.shape) != 1) {
      return Malformed("input 'k' must be one i64");
    }
  }
  outputs->push_back({input.type, input.shape});
  return {};
}

Status LowerTrilu(Rewriter* rewriter, const Node& node) {
  const Value& input = InputValue(rewriter->graph(), node, 0);
  const int64_t rows = input.shape[input.shape.size() - 2], columns = input.shape.back();
  DLA_RETURN_IF_ERROR(CheckPicked(rows * columns));
  const Tensor zero = Tensor::Zeros({input.type, {}});
  Tensor excess = Tensor::Zeros({ElementType::kI64, {rows, columns}});
  for (int64_t i = 0; i < excess.elements(); ++i) {
    WriteInt(&excess, i, i % columns - i / columns);
  }
  const ValueId distance = rewriter->AddConstant(std::move(excess), "excess");
  ValueId k = kNoValue;
  if (HasInput(node, 1)) {
    DLA_ASSIGN_OR_RETURN(k, Reshaped(rewriter, node.inputs[1], {}));
  } else {
    k = rewriter->AddConstant(Tensor::Ints({}, {0}), "k");
  }
  const bool upper = GetInt(node.attributes, "upper", 1) != 0;
  DLA_ASSIGN_OR_RETURN(const ValueId where,
                       rewriter->Add("LessOrEqual", {upper ? k : distance, upper ? distance : k}));
  const ValueId none = rewriter->AddConstant(zero, "zero");
  rewriter->Finish("Where", {where, node.inputs[0], none}, {}, node.outputs[0]);
  return {};
}

constexpr OpDef Row(std::string_view name, int opset, int min_inputs, int max_inputs,
                    std::span<const AttributeDef> attributes, decltype(OpDef::infer) infer,
                    decltype(OpDef::evaluate) evaluate, decltype(OpDef::lower) lower) {
  OpDef row;
  row.name = name;
  row.first_opset = opset;
  row.min_inputs = min_inputs;
  row.max_inputs = max_inputs;
  row.attributes = attributes;
  row.infer = infer;
  row.evaluate = evaluate;
  row.lower = lower;
  return row;
}

constexpr OpDef EyeRow() {
  OpDef row = Row("EyeLike", 9, 1, 1, kEyeAttributes, InferEye, EvaluateEye, nullptr);
  row.shape_only = true;
  return row;
}

constexpr OpDef kRows[] = {
    Row("Compress", 9, 2, 2, kCompressAttributes, InferCompress, nullptr, LowerCompress),
    EyeRow(),
    Row("NonZero", 9, 1, 1, {}, InferNonZero, EvaluateNonZero, nullptr),
    Row("OneHot", 9, 3, 3, kHotAttributes, InferHot, nullptr, LowerHot),
    Row("Range", 11, 3, 3, {}, InferRange, EvaluateRange, nullptr),
    Row("Trilu", 14, 1, 2, kTriluAttributes, InferTrilu, nullptr, LowerTrilu),
};

}  // namespace

std::span<const OpDef> ConstantRows() { return kRows; }

}  // namespace dla::ir
