// Builds the canonical nodes that replace one node, and edits graphs in general.
//
// A Rewriter collects the new node list of a graph; `lower` functions of the operator table append
// to it. New values get names derived from the node's, unique in the graph; the last node takes
// over the replaced node's output value, so that values keep their ONNX names.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/op.h"
#include "ir/tensor.h"

namespace dla::ir {

class Rewriter {
 public:
  explicit Rewriter(Graph* graph);

  const Graph& graph() const { return *graph_; }
  const Value& value(ValueId id) const { return graph_->values[Idx(id)]; }

  // The node that is being replaced; the nodes added next take over its names and opset.
  void Begin(const Node& node);
  // Appends a node that computes a new value from `inputs`; its type is inferred.
  Result<ValueId> Add(const std::string& op, std::vector<ValueId> inputs,
                      AttributeMap attributes = {});
  // Appends the node that computes `output`, a value of the node that is being replaced.
  void Finish(const std::string& op, std::vector<ValueId> inputs, AttributeMap attributes,
              ValueId output);
  // A new constant named after the node that is being replaced and `suffix`.
  ValueId AddConstant(Tensor tensor, const std::string& suffix);
  ValueId AddConstant(const std::string& name, TensorType type,
                      std::shared_ptr<const Constant> constant);
  ValueId AddValue(const std::string& name, TensorType type);
  // Keeps a node as it is.
  void Keep(const Node& node) { nodes_.push_back(node); }

  // Puts the collected nodes into the graph.
  void Commit();
  // Hands the collected nodes out instead.
  std::vector<Node> TakeNodes();

  // Drops all values from number `count` on, and their names: the end of a rewriting in trial.
  void Forget(size_t count);

  // A name that no value of the graph has: `wish`, or that with a number.
  std::string NewName(const std::string& wish);
  // A value of exactly that name, which its former owner has given up.
  ValueId AddRenamed(const std::string& name, TensorType type);

 private:
  Graph* graph_;
  Node origin_;
  std::vector<Node> nodes_;
  std::set<std::string> names_;
  std::map<std::string, int64_t> numbers_;  // the last one that was tried, by wish
};

// How often each value is used: by nodes, and as a graph output.
struct UseCounts {
  std::vector<int> by_nodes;
  std::vector<bool> is_output;
  std::vector<bool> is_input;

  explicit UseCounts(const Graph& graph);
  // Exactly one node uses it and nobody outside sees it.
  bool Single(ValueId id) const { return by_nodes[Idx(id)] == 1 && !is_output[Idx(id)]; }
};

// The node that computes each value, or -1.
std::vector<NodeId> Producers(const Graph& graph);

// Replaces all uses of `from` (node operands, not graph outputs) by `to`.
void ReplaceUses(Graph* graph, ValueId from, ValueId to);

// Adds the names to the node's list, without repeating any.
void MergeNames(Node* node, const std::vector<std::string>& names);

// Drops nodes whose results nobody uses.
void RemoveDeadNodes(Graph* graph);

// Removes values that are no input or output and that no node or storage mentions; renumbers.
void CompactValues(Graph* graph);

}  // namespace dla::ir
