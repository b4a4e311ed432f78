#include "ir/rewriter.h"

#include <algorithm>

namespace dla::ir {

Rewriter::Rewriter(Graph* graph) : graph_(graph) {
  for (const Value& value : graph->values) names_.insert(value.name);
}

void Rewriter::Begin(const Node& node) { origin_ = node; }

std::string Rewriter::NewName(const std::string& wish) {
  if (names_.insert(wish).second) return wish;
  // Numbers go on where they stopped, so that many values of one name stay cheap.
  int64_t& number = numbers_.try_emplace(wish, 1).first->second;
  std::string name;
  do {
    name = wish + "." + std::to_string(++number);
  } while (!names_.insert(name).second);
  return name;
}

ValueId Rewriter::AddValue(const std::string& name, TensorType type) {
  return AddRenamed(NewName(name), std::move(type));
}

ValueId Rewriter::AddRenamed(const std::string& name, TensorType type) {
  Value value;
  value.name = name;
  value.type = type.type;
  value.shape = std::move(type.shape);
  graph_->values.push_back(std::move(value));
  return static_cast<ValueId>(graph_->values.size() - 1);
}

ValueId Rewriter::AddConstant(const std::string& name, TensorType type,
                              std::shared_ptr<const Constant> constant) {
  const ValueId id = AddValue(name, std::move(type));
  graph_->values[Idx(id)].constant = std::move(constant);
  return id;
}

ValueId Rewriter::AddConstant(Tensor tensor, const std::string& suffix) {
  TensorType type{tensor.type, tensor.shape};
  return AddConstant(origin_.name + ":" + suffix, std::move(type), MakeConstant(std::move(tensor)));
}

Result<ValueId> Rewriter::Add(const std::string& op, std::vector<ValueId> inputs,
                              AttributeMap attributes) {
  Node node;
  node.name = origin_.name;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.onnx_nodes = origin_.onnx_nodes;
  node.opset = origin_.opset;
  const OpDef* def = FindOperator(op);
  DLA_CHECK(def != nullptr, op);
  std::vector<TensorType> types;
  DLA_RETURN_IF_ERROR(def->infer(*graph_, node, &types));
  const ValueId id = AddValue(origin_.name + ":" + op, types[0]);
  node.outputs = {id};
  nodes_.push_back(std::move(node));
  return id;
}

void Rewriter::Finish(const std::string& op, std::vector<ValueId> inputs, AttributeMap attributes,
                      ValueId output) {
  Node node;
  node.name = origin_.name;
  node.op = op;
  node.inputs = std::move(inputs);
  node.outputs = {output};
  node.attributes = std::move(attributes);
  node.onnx_nodes = origin_.onnx_nodes;
  node.opset = origin_.opset;
  nodes_.push_back(std::move(node));
}

void Rewriter::Commit() { graph_->nodes = TakeNodes(); }

std::vector<Node> Rewriter::TakeNodes() {
  std::vector<Node> nodes = std::move(nodes_);
  nodes_.clear();
  return nodes;
}

void Rewriter::Forget(size_t count) {
  for (size_t i = count; i < graph_->values.size(); ++i) names_.erase(graph_->values[i].name);
  graph_->values.resize(count);
}

UseCounts::UseCounts(const Graph& graph)
    : by_nodes(graph.values.size()), is_output(graph.values.size()), is_input(graph.values.size()) {
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.inputs) {
      if (id != kNoValue) ++by_nodes[Idx(id)];
    }
  }
  for (const ValueId id : graph.outputs) is_output[Idx(id)] = true;
  for (const ValueId id : graph.inputs) is_input[Idx(id)] = true;
}

std::vector<NodeId> Producers(const Graph& graph) {
  std::vector<NodeId> producers(graph.values.size(), -1);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId id : graph.nodes[n].outputs) {
      if (id != kNoValue) producers[Idx(id)] = static_cast<NodeId>(n);
    }
  }
  return producers;
}

void ReplaceUses(Graph* graph, ValueId from, ValueId to) {
  for (Node& node : graph->nodes) std::replace(node.inputs.begin(), node.inputs.end(), from, to);
}

void MergeNames(Node* node, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::find(node->onnx_nodes.begin(), node->onnx_nodes.end(), name) ==
        node->onnx_nodes.end()) {
      node->onnx_nodes.push_back(name);
    }
  }
}

void RemoveDeadNodes(Graph* graph) {
  std::vector<bool> live(graph->values.size());
  for (const ValueId id : graph->outputs) live[Idx(id)] = true;
  std::vector<Node> kept;
  for (size_t n = graph->nodes.size(); n-- > 0;) {
    Node& node = graph->nodes[n];
    const bool used = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId id) { return id != kNoValue && live[Idx(id)]; });
    if (!used) continue;
    for (const ValueId id : node.inputs) {
      if (id != kNoValue) live[Idx(id)] = true;
    }
    kept.push_back(std::move(node));
  }
  std::reverse(kept.begin(), kept.end());
  graph->nodes = std::move(kept);
}

void CompactValues(Graph* graph) {
  std::vector<bool> used(graph->values.size());
  const auto mark = [&](const std::vector<ValueId>& ids) {
    for (const ValueId id : ids) {
      if (id == kNoValue) continue;
      used[Idx(id)] = true;
      const ValueId root = graph->values[Idx(id)].storage.root;
      if (root != kNoValue) used[Idx(root)] = true;
    }
  };
  mark(graph->inputs);
  mark(graph->outputs);
  for (const Node& node : graph->nodes) {
    mark(node.inputs);
    mark(node.outputs);
  }
  std::vector<ValueId> number(graph->values.size(), kNoValue);
  std::vector<Value> values;
  for (size_t i = 0; i < graph->values.size(); ++i) {
    if (!used[i]) continue;
    number[i] = static_cast<ValueId>(values.size());
    values.push_back(std::move(graph->values[i]));
  }
  const auto renumber = [&](std::vector<ValueId>* ids) {
    for (ValueId& id : *ids) {
      if (id != kNoValue) id = number[Idx(id)];
    }
  };
  for (Value& value : values) {
    if (value.storage.root != kNoValue) value.storage.root = number[Idx(value.storage.root)];
  }
  graph->values = std::move(values);
  renumber(&graph->inputs);
  renumber(&graph->outputs);
  for (Node& node : graph->nodes) {
    renumber(&node.inputs);
    renumber(&node.outputs);
  }
}

}  // namespace dla::ir
