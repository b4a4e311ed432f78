// GatherElements, GatherND, ScatterND and ScatterElements with constant indices: rows picked from
// the data, or from the data and the updates joined.
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
      batch + depth > static_cast<int64_t>(data.size())) {
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
  DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> numbers, RequireInts(graph, node, 1, "indices"));
  const bool prefix = node.op == "GatherND" || node.op == "ScatterND";
  return prefix ? PrefixRows(node, data.shape, indices.shape, numbers)
                : ElementRows(node, data.shape, indices.shape, numbers);
}

Status InferGather(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& data = InputValue(graph, node, 0);
  const Value& indices = InputValue(graph, node, 1);
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

Status LowerGather(Rewriter* rewriter, const Node& node) {
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
  row.note = "constant indices";
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
