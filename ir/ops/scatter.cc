// GatherElements, GatherND, ScatterND and ScatterElements with constant indices: rows picked from
// the data, or from the data and the updates joined. GatherElements and GatherND with computed
// indices: a Take.
#include <algorithm>

#include "ir/ops/ops.h"
#include "ir/ops/pick.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAxisAttributes[] = {{"axis", AttributeKind::kInt, "0", false, ""}};
constexpr AttributeDef kBatchAttributes[] = {
    {"batch_dims", AttributeKind::kInt, "0", false, "since opset 12"}};
constexpr AttributeDef kScatterAttributes[] = {
    {"axis", AttributeKind::kInt, "0", false, "of ScatterElements"},
    {"reduction", AttributeKind::kString, "none", false, "only none"}};

// Data seen as rows of `inner` elements; `rows` are the numbers of those that the indices name, in
// the order of the indices.
struct Rows {
  int64_t inner = 1;
  std::vector<int64_t> rows;
};

Result<int64_t> Wrapped(int64_t index, int64_t extent) {
  if (index < -extent || index >= extent) {
    return Malformed("index ", index, " is outside an axis of extent ", extent);
  }
  return index < 0 ? index + extent : index;
}

// Indices along one axis; elsewhere an index stands where its result does.
Result<Rows> ElementRows(const Node& node, const Shape& data, const Shape& indices,
                         const std::vector<int64_t>& numbers) {
  const int64_t rank = static_cast<int64_t>(data.size());
  DLA_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(GetInt(node.attributes, "axis", 0), rank));
  if (indices.size() != data.size()) {
    return Malformed("the indices have rank ", indices.size(), ", the data has rank ", rank);
  }
  for (size_t i = 0; i < data.size(); ++i) {
    if (static_cast<int64_t>(i) != axis && indices[i] > data[i]) {
      return Malformed("the indices have shape ", ShapeText(indices), ", the data ",
                       ShapeText(data));
    }
  }
  const Shape strides = DenseStrides(data);
  Rows result;
  for (size_t n = 0; n < numbers.size(); ++n) {
    int64_t rest = static_cast<int64_t>(n), row = 0;
    for (size_t i = data.size(); i-- > 0;) {
      int64_t at = rest % indices[i];
      rest /= indices[i];
      if (static_cast<int64_t>(i) == axis) {
        DLA_ASSIGN_OR_RETURN(at, Wrapped(numbers[n], data[i]));
      }
      row += at * strides[i];
    }
    result.rows.push_back(row);
  }
  return result;
}

// The last axis of the indices names a prefix of the data's axes (behind the batch).
Result<Rows> PrefixRows(const Node& node, const Shape& data, const Shape& indices,
                        const std::vector<int64_t>& numbers) {
  const int64_t batch = GetInt(node.attributes, "batch_dims", 0);
  const int64_t depth = indices.empty() ? 0 : indices.back();
  if (batch < 0 || depth < 1 || batch >= static_cast<int64_t>(indices.size()) ||
      batch + depth > static_cast<int64_t>(data.size()) ||
      !std::equal(data.begin(), data.begin() + batch, indices.begin())) {
    return Malformed("indices of shape ", ShapeText(indices), " do not fit data of shape ",
                     ShapeText(data));
  }
  const Shape outer(data.begin(), data.begin() + batch + depth);
  const Shape strides = DenseStrides(outer);
  int64_t an_entry = depth;  // numbers that belong to one batch entry
  for (size_t i = Idx(batch); i + 1 < indices.size(); ++i) an_entry *= indices[i];
  Rows result;
  result.inner = ElementCount({data.begin() + batch + depth, data.end()});
  for (size_t n = 0; n < numbers.size(); n += Idx(depth)) {
    int64_t row = 0;
    if (batch > 0) {
      row = static_cast<int64_t>(n) / an_entry * (outer.empty() ? 1 : strides[Idx(batch) - 1]);
    }
    for (int64_t k = 0; k < depth; ++k) {
      DLA_ASSIGN_OR_RETURN(const int64_t at, Wrapped(numbers[n + Idx(k)], outer[Idx(batch + k)]));
      row += at * strides[Idx(batch + k)];
    }
    result.rows.push_back(row);
  }
  return result;
}

Result<Rows> Resolve(const Graph& graph, const Node& node) {
  const Value& data = InputValue(graph, node, 0);
  const Value& indices = InputValue(graph, node, 1);
  std::vector<int64_t> numbers;  // none where only shapes are checked
  if (indices.constant != nullptr) {
    DLA_ASSIGN_OR_RETURN(numbers, RequireInts(graph, node, 1, "indices"));
  }
  const bool prefix = node.op == "GatherND" || node.op == "ScatterND";
  return prefix ? PrefixRows(node, data.shape, indices.shape, numbers)
                : ElementRows(node, data.shape, indices.shape, numbers);
}

Status InferGather(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& data = InputValue(graph, node, 0);
  const Value& indices = InputValue(graph, node, 1);
  DLA_RETURN_IF_ERROR(KnownIndices(graph, node, 1).status());
  DLA_RETURN_IF_ERROR(Resolve(graph, node).status());
  Shape shape = indices.shape;
  if (node.op == "GatherND") {
    const int64_t named = shape.back() + GetInt(node.attributes, "batch_dims", 0);
    shape.pop_back();
    shape.insert(shape.end(), data.shape.begin() + named, data.shape.end());
  }
  outputs->push_back({data.type, shape});
  return {};
}

Result<ValueId> AsI64(Rewriter* rewriter, ValueId value) {
  if (rewriter->value(value).type == ElementType::kI64) return value;
  return rewriter->Add("Cast", {value}, {{"to", std::string(TypeName(ElementType::kI64))}});
}

ValueId IntConstant(Rewriter* rewriter, int64_t number) {
  Tensor tensor = Tensor::Zeros({ElementType::kI64, {}});
  WriteInt(&tensor, 0, number);
  return rewriter->AddConstant(std::move(tensor), "number");
}

// One coordinate of each entry, from -extent to extent - 1, as steps along rows of the data; far
// outside of them where it is none.
Result<ValueId> StepsOf(Rewriter* rewriter, ValueId coordinate, int64_t extent, int64_t stride) {
  const ValueId number = IntConstant(rewriter, extent);
  DLA_ASSIGN_OR_RETURN(const ValueId below,
                       rewriter->Add("Less", {coordinate, IntConstant(rewriter, 0)}));
  DLA_ASSIGN_OR_RETURN(const ValueId from_end, rewriter->Add("Add", {coordinate, number}));
  DLA_ASSIGN_OR_RETURN(const ValueId entry, rewriter->Add("Where", {below, from_end, coordinate}));
  DLA_ASSIGN_OR_RETURN(const ValueId low,
                       rewriter->Add("LessOrEqual", {IntConstant(rewriter, 0), entry}));
  DLA_ASSIGN_OR_RETURN(const ValueId high, rewriter->Add("Less", {entry, number}));
  DLA_ASSIGN_OR_RETURN(const ValueId inside, rewriter->Add("And", {low, high}));
  DLA_ASSIGN_OR_RETURN(const ValueId steps,
                       rewriter->Add("Mul", {entry, IntConstant(rewriter, stride)}));
  constexpr int64_t kNowhere = int64_t{1} << 48;
  return rewriter->Add("Where", {inside, steps, IntConstant(rewriter, kNowhere)});
}

// Coordinates [batch, count, depth] -> numbers of entries [batch, count, 1] among those of axes
// with these extents.
Result<ValueId> EntryNumbers(Rewriter* rewriter, ValueId indices, const Shape& shape,
                             const Shape& extents) {
  const int64_t depth = shape[2];
  DLA_ASSIGN_OR_RETURN(indices, Reshaped(rewriter, indices, shape));
  if (depth == 1) return indices;
  DLA_ASSIGN_OR_RETURN(indices, AsI64(rewriter, indices));
  const Shape strides = DenseStrides(extents);
  ValueId sum = kNoValue;
  for (int64_t k = 0; k < depth; ++k) {
    const AttributeMap slice = {{"sizes", Shape{shape[0], shape[1], 1}},
                                {"starts", Shape{0, 0, k}},
                                {"steps", Shape{1, 1, 1}}};
    DLA_ASSIGN_OR_RETURN(const ValueId column, rewriter->Add("StridedSlice", {indices}, slice));
    DLA_ASSIGN_OR_RETURN(const ValueId steps,
                         StepsOf(rewriter, column, extents[Idx(k)], strides[Idx(k)]));
    if (sum == kNoValue) {
      sum = steps;
    } else {
      DLA_ASSIGN_OR_RETURN(sum, rewriter->Add("Add", {sum, steps}));
    }
  }
  return sum;
}

Status TakeNd(Rewriter* rewriter, const Node& node) {
  const Shape data = rewriter->value(node.inputs[0]).shape;
  const Shape indices = rewriter->value(node.inputs[1]).shape;
  const int64_t batch = GetInt(node.attributes, "batch_dims", 0), depth = indices.back();
  const auto named = data.begin() + batch;
  const int64_t outer = ElementCount({data.begin(), named});
  const Shape extents(named, named + depth);
  const Shape shape = {outer, ElementCount(indices) / depth / outer, depth};
  DLA_ASSIGN_OR_RETURN(const ValueId entries,
                       EntryNumbers(rewriter, node.inputs[1], shape, extents));
  DLA_ASSIGN_OR_RETURN(const ValueId flat, Reshaped(rewriter, node.inputs[0],
                                                    {outer, ElementCount(extents),
                                                     ElementCount({named + depth, data.end()})}));
  DLA_ASSIGN_OR_RETURN(const ValueId taken, rewriter->Add("Take", {flat, entries}));
  const Shape wanted = rewriter->value(node.outputs[0]).shape;
  return Reshaped(rewriter, taken, wanted, node.outputs[0]).status();
}

// The part of the data that the indices stand along, and those, each seen as three axes.
Status TakeElements(Rewriter* rewriter, const Node& node) {
  const Shape data = rewriter->value(node.inputs[0]).shape;
  const Shape indices = rewriter->value(node.inputs[1]).shape;
  DLA_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(GetInt(node.attributes, "axis", 0),
                                                         static_cast<int64_t>(data.size())));
  Shape part = indices;
  part[Idx(axis)] = data[Idx(axis)];
  ValueId value = node.inputs[0];
  if (part != data) {
    const AttributeMap slice = {
        {"sizes", part}, {"starts", Shape(data.size(), 0)}, {"steps", Shape(data.size(), 1)}};
    DLA_ASSIGN_OR_RETURN(value, rewriter->Add("StridedSlice", {value}, slice));
  }
  const auto three = [axis](const Shape& shape) {
    const auto at = shape.begin() + axis;
    return Shape{ElementCount({shape.begin(), at}), *at, ElementCount({at + 1, shape.end()})};
  };
  DLA_ASSIGN_OR_RETURN(const ValueId flat, Reshaped(rewriter, value, three(part)));
  DLA_ASSIGN_OR_RETURN(const ValueId list, Reshaped(rewriter, node.inputs[1], three(indices)));
  DLA_ASSIGN_OR_RETURN(const ValueId taken, rewriter->Add("Take", {flat, list}));
  return Reshaped(rewriter, taken, indices, node.outputs[0]).status();
}

Status LowerGather(Rewriter* rewriter, const Node& node) {
  if (rewriter->value(node.inputs[1]).constant == nullptr) {
    return node.op == "GatherND" ? TakeNd(rewriter, node) : TakeElements(rewriter, node);
  }
  const Shape data = InputValue(rewriter->graph(), node, 0).shape;
  const Shape wanted = rewriter->value(node.outputs[0]).shape;
  DLA_ASSIGN_OR_RETURN(const Rows rows, Resolve(rewriter->graph(), node));
  DLA_ASSIGN_OR_RETURN(
      const ValueId flat,
      Reshaped(rewriter, node.inputs[0],
               {ElementCount(data) / std::max<int64_t>(1, rows.inner), rows.inner}));
  DLA_ASSIGN_OR_RETURN(const ValueId picked, Pick(rewriter, flat, 0, rows.rows));
  return Reshaped(rewriter, picked, wanted, node.outputs[0]).status();
}

Status InferScatter(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& data = InputValue(graph, node, 0);
  const Value& updates = InputValue(graph, node, 2);
  if (GetString(node.attributes, "reduction", "none") != "none") {
    return Unsupported("attribute 'reduction' is '", GetString(node.attributes, "reduction", ""),
                       "'; only none is supported");
  }
  if (updates.type != data.type) {
    return Malformed("the updates have type ", TypeName(updates.type), ", the data has type ",
                     TypeName(data.type));
  }
  DLA_RETURN_IF_ERROR(RequireInts(graph, node, 1, "indices").status());
  DLA_ASSIGN_OR_RETURN(const Rows rows, Resolve(graph, node));
  if (ElementCount(updates.shape) != static_cast<int64_t>(rows.rows.size()) * rows.inner) {
    return Malformed("the updates have shape ", ShapeText(updates.shape), "; ", rows.rows.size(),
                     " rows of ", rows.inner, " elements are wanted");
  }
  outputs->push_back({data.type, data.shape});
  return {};
}

Status LowerScatter(Rewriter* rewriter, const Node& node) {
  const Shape shape = rewriter->value(node.outputs[0]).shape;
  DLA_ASSIGN_OR_RETURN(const Rows rows, Resolve(rewriter->graph(), node));
  const int64_t inner = std::max<int64_t>(1, rows.inner);
  const int64_t count = ElementCount(shape) / inner;
  const int64_t updates = static_cast<int64_t>(rows.rows.size());
  DLA_RETURN_IF_ERROR(CheckPicked(count));
  std::vector<int64_t> sources;
  for (int64_t i = 0; i < count; ++i) sources.push_back(i);
  for (int64_t u = 0; u < updates; ++u) sources[Idx(rows.rows[Idx(u)])] = count + u;
  DLA_ASSIGN_OR_RETURN(const ValueId data, Reshaped(rewriter, node.inputs[0], {count, inner}));
  ValueId all = data;
  if (updates > 0) {
    DLA_ASSIGN_OR_RETURN(const ValueId more, Reshaped(rewriter, node.inputs[2], {updates, inner}));
    DLA_ASSIGN_OR_RETURN(all, rewriter->Add("Concat", {data, more}, {{"axis", int64_t{0}}}));
  }
  DLA_ASSIGN_OR_RETURN(const ValueId picked, Pick(rewriter, all, 0, sources));
  return Reshaped(rewriter, picked, shape, node.outputs[0]).status();
}

constexpr OpDef Row(std::string_view name, int opset, int inputs,
                    std::span<const AttributeDef> attributes, decltype(OpDef::infer) infer,
                    decltype(OpDef::lower) lower) {
  OpDef row;
  row.name = name;
  row.first_opset = opset;
  row.min_inputs = inputs;
  row.max_inputs = inputs;
  row.attributes = attributes;
  if (inputs == 3) row.note = "constant indices";
  row.infer = infer;
  row.lower = lower;
  return row;
}

constexpr OpDef kRows[] = {
    Row("GatherElements", 11, 2, kAxisAttributes, InferGather, LowerGather),
    Row("GatherND", 11, 2, kBatchAttributes, InferGather, LowerGather),
    Row("Scatter", 9, 3, kScatterAttributes, InferScatter, LowerScatter),
    Row("ScatterElements", 11, 3, kScatterAttributes, InferScatter, LowerScatter),
    Row("ScatterND", 11, 3, kScatterAttributes, InferScatter, LowerScatter),
};

}  // namespace

std::span<const OpDef> ScatterRows() { return kRows; }

}  // namespace dla::ir
