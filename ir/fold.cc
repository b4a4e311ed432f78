#include "ir/fold.h"

#include <algorithm>
#include <set>

#include "ir/node_types.h"
#include "ir/op.h"

namespace dla::ir {
namespace {

// Work that folding may do for one node: elements written, multiply-accumulates.
constexpr int64_t kMostElements = int64_t{1} << 26;
constexpr int64_t kMostMacs = int64_t{1} << 28;

// Multiply-accumulates (or window entries) behind one element of the result, roughly.
int64_t WorkAnElement(const Graph& graph, const Node& node, const OpDef& def) {
  if (def.kind == OpKind::kContraction || node.op == "Gemm") {
    const Shape& weight = graph.values[Idx(node.inputs[1])].shape;
    const Shape& input = graph.values[Idx(node.inputs[0])].shape;
    return std::max(std::max<int64_t>(1, ElementCount(weight) / std::max<int64_t>(1, weight[0])),
                    input.empty() ? 1 : input.back());
  }
  if (node.op == "MaxPool" || node.op == "AveragePool" || node.op == "SumPool") {
    int64_t window = 1;
    for (const int64_t extent : GetInts(node.attributes, "kernel_shape")) {
      window = std::min(window, kMostMacs) * std::min(extent, kMostMacs);
    }
    return window;
  }
  return 1;
}

}  // namespace

bool IsFoldable(const Graph& graph, const Node& node) {
  const OpDef* def = FindOperator(node.op);
  if (def == nullptr || (def->evaluate == nullptr && def->lower == nullptr)) return false;
  for (const ValueId id : node.inputs) {
    if (id != kNoValue && !IsReadable(graph.values[Idx(id)].type)) return false;
  }
  if (!node.fused.empty() || def->kind == OpKind::kCopy) return false;
  for (const ValueId id : node.inputs) {
    if (id == kNoValue || def->shape_only) continue;
    if (graph.values[Idx(id)].constant == nullptr) return false;
  }
  int64_t elements = 0;
  for (const ValueId id : node.outputs) {
    if (id != kNoValue) elements += ElementCount(graph.values[Idx(id)].shape);
  }
  if (elements > kMostElements) return false;
  if (elements > 0 && WorkAnElement(graph, node, *def) > kMostMacs / elements) return false;
  return true;
}

Status FoldNode(Graph* graph, const Node& node) {
  const OpDef* def = FindOperator(node.op);
  DLA_CHECK(def != nullptr && def->evaluate != nullptr, node.op);
  if (node.op == "View") {  // the same bytes
    graph->values[Idx(node.outputs[0])].constant = graph->values[Idx(node.inputs[0])].constant;
    return {};
  }
  std::vector<TensorView> inputs;
  for (const ValueId id : node.inputs) {
    inputs.push_back(ConstantView(*graph, id));
    if (id == kNoValue || !def->shape_only) continue;
    inputs.back().type = graph->values[Idx(id)].type;
    inputs.back().shape = graph->values[Idx(id)].shape;
  }
  std::vector<Tensor> results;
  std::vector<TensorType> types;
  DLA_RETURN_IF_ERROR(def->infer(*graph, node, &types));
  for (size_t i = 0; i < node.outputs.size(); ++i) results.push_back(Tensor::Zeros(types[i]));
  DLA_RETURN_IF_ERROR(CheckTypes(*graph, node));
  DLA_RETURN_IF_ERROR(EvaluateNode(node, inputs, results));
  for (size_t i = 0; i < results.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    graph->values[Idx(node.outputs[i])].constant = MakeConstant(std::move(results[i]));
  }
  return {};
}

Status FoldOnnxNode(Graph* graph, Rewriter* rewriter, const Node& node) {
  const OpDef* def = FindOperator(node.op);
  const bool as_it_is =
      def->lower == nullptr || (def->kind == OpKind::kOnnxOnly && def->evaluate != nullptr);
  if (as_it_is) return FoldNode(graph, node);
  rewriter->Begin(node);
  const Status lowered = def->lower(rewriter, node);
  const std::vector<Node> nodes = rewriter->TakeNodes();
  DLA_RETURN_IF_ERROR(lowered);
  for (const Node& canonical : nodes) DLA_RETURN_IF_ERROR(FoldNode(graph, canonical));
  return {};
}

Status DetachOutputs(Graph* graph) {
  Rewriter rewriter(graph);
  std::set<ValueId> seen;
  std::vector<Node> copies;
  const std::set<ValueId> inputs(graph->inputs.begin(), graph->inputs.end());
  for (ValueId& id : graph->outputs) {
    const Value& value = graph->values[Idx(id)];
    const bool again = !seen.insert(id).second;
    if (inputs.contains(id) || again) {
      return Unsupported("output '", value.name, again ? "' is listed twice" : "' is an input");
    }
    // Of a tensor without elements nothing has to be written.
    if (value.constant == nullptr || ElementCount(value.shape) == 0) continue;
    const std::string name = value.name;
    const TensorType type{value.type, value.shape};
    graph->values[Idx(id)].name = rewriter.NewName(name + ":constant");
    Node copy;
    copy.name = name;
    copy.op = "Copy";
    copy.inputs = {id};
    id = rewriter.AddRenamed(name, type);
    copy.outputs = {id};
    copies.push_back(std::move(copy));
  }
  for (Node& copy : copies) graph->nodes.push_back(std::move(copy));
  return {};
}

}  // namespace dla::ir
