// layout: every value gets its storage. Reshapes, transposes, slices and concatenations become
// views of a buffer and vanish; where no view will do, a Copy stays.
//
// Graph inputs, graph outputs and constants lie dense in buffers of their own. The pass first walks
// backwards: a result whose place is fixed (a graph output, a part of a concatenation) fixes the
// place of the operand it is a view of, if that is computed by a node and has no place yet; its
// producer then writes straight there. Then it walks forwards: what has no place yet is a view of
// its operand, or a buffer of its own.
#include <algorithm>
#include <map>

#include "ir/op.h"
#include "ir/passes/passes.h"
#include "ir/rewriter.h"
#include "ir/view.h"

namespace dla::ir {
namespace {

class LayoutPass {
 public:
  explicit LayoutPass(Graph* graph)
      : graph_(graph), rewriter_(graph), uses_(*graph), producers_(Producers(*graph)) {}

  void Run() {
    for (size_t i = 0; i < graph_->values.size(); ++i) {
      const Value& value = graph_->values[i];
      if (uses_.is_input[i] || uses_.is_output[i] || value.constant != nullptr) {
        AssignRoot(static_cast<ValueId>(i));
      }
    }
    nodes_ = std::move(graph_->nodes);
    for (size_t n = nodes_.size(); n-- > 0;) {
      if (IsView(nodes_[n])) WalkBack(nodes_[n], n);
    }
    for (size_t n = 0; n < nodes_.size(); ++n) WalkForward(nodes_[n], n);
    graph_->nodes = std::move(done_);
  }

 private:
  static bool IsView(const Node& node) { return FindOperator(node.op)->kind == OpKind::kView; }
  Value& Of(ValueId id) { return graph_->values[Idx(id)]; }
  bool Assigned(ValueId id) { return Of(id).storage.root != kNoValue; }
  void AssignRoot(ValueId id) { Of(id).storage = {id, 0, DenseStrides(Of(id).shape)}; }

  // A value that a node computes and that has no place yet can be put anywhere.
  bool Movable(ValueId id) { return !Assigned(id) && producers_[Idx(id)] >= 0; }

  void WalkBack(const Node& node, size_t n) {
    const ValueId output = node.outputs[0];
    if (node.op == "Concat" || node.op == "Interleave") return WalkBackParts(node, n);
    const ValueId input = node.inputs[0];
    if (!Assigned(output) || !Movable(input)) return;
    // Other users would have to read the operand in the layout of this one.
    if (uses_.by_nodes[Idx(input)] != 1) return;
    const auto storage = BackwardView(node, Of(output).storage, Of(output).shape, Of(input).shape);
    if (!storage) return;
    Of(input).storage = *storage;
    settled_[n] = {};
  }

  // The operands of Concat and Interleave are parts of the result.
  void WalkBackParts(const Node& node, size_t n) {
    const ValueId output = node.outputs[0];
    const int64_t axis = GetInt(node.attributes, "axis", 0);
    if (!Assigned(output) && node.op == "Concat" && LieSideBySide(node, axis)) {
      Of(output).storage = Of(node.inputs[0]).storage;
      settled_[n] = {};
      return;
    }
    if (!Assigned(output)) AssignRoot(output);
    int64_t start = 0;
    std::vector<Node>& copies = settled_[n];
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ValueId input = node.inputs[k];
      const Storage part = node.op == "Concat"
                               ? ConcatPart(Of(output).storage, axis, start)
                               : InterleavePart(node, Of(output).storage, static_cast<int>(k));
      if (node.op == "Concat") start += Of(input).shape[Idx(axis)];
      if (Movable(input)) {
        Of(input).storage = part;
      } else {
        copies.push_back(CopyTo(node, input, NewValue(input, Of(input).shape, part)));
      }
    }
  }

  // Are the operands already neighbours along the axis, as parts of a concatenation of more? (In
  // DenseNet every concatenation begins with all of the one before.)
  bool LieSideBySide(const Node& node, int64_t axis) {
    const Storage first = Of(node.inputs[0]).storage;
    if (first.root == kNoValue) return false;
    int64_t start = 0;
    for (const ValueId input : node.inputs) {
      if (Of(input).storage != ConcatPart(first, axis, start)) return false;
      start += Of(input).shape[Idx(axis)];
    }
    return true;
  }

  ValueId NewValue(ValueId like, const Shape& shape, std::optional<Storage> storage) {
    const ValueId id = rewriter_.AddValue(Of(like).name + ":copy", {Of(like).type, shape});
    if (storage) {
      Of(id).storage = *storage;
    } else {
      AssignRoot(id);
    }
    return id;
  }

  static Node CopyTo(const Node& origin, ValueId from, ValueId to) {
    Node copy;
    copy.name = origin.name;
    copy.op = "Copy";
    copy.inputs = {from};
    copy.outputs = {to};
    copy.onnx_nodes = origin.onnx_nodes;
    copy.opset = origin.opset;
    return copy;
  }

  void WalkForward(Node& node, size_t n) {
    if (!IsView(node)) {
      for (const ValueId id : node.outputs) {
        if (id != kNoValue && !Assigned(id)) AssignRoot(id);
      }
      return Append(std::move(node));
    }
    const auto settled = settled_.find(n);
    if (settled != settled_.end()) {
      if (settled->second.empty()) return Note(node, node.inputs);
      for (Node& copy : settled->second) Append(std::move(copy));
      return;
    }
    const ValueId input = node.inputs[0], output = node.outputs[0];
    if (Assigned(output)) return Materialise(node, input, output);
    auto view = ForwardView(node, Of(input).storage, Of(input).shape, Of(output).shape);
    if (view) {
      Note(node, {input});
    } else {
      const ValueId dense = NewValue(input, Of(input).shape, std::nullopt);
      Append(CopyTo(node, input, dense));
      view = ForwardView(node, Of(dense).storage, Of(dense).shape, Of(output).shape);
    }
    Of(output).storage = *view;
  }

  // Copies the operand to where the result has to be.
  void Materialise(const Node& node, ValueId input, ValueId output) {
    auto view = ForwardView(node, Of(input).storage, Of(input).shape, Of(output).shape);
    if (view) {
      return Append(CopyTo(node, NewValue(input, Of(output).shape, view), output));
    }
    view = BackwardView(node, Of(output).storage, Of(output).shape, Of(input).shape);
    if (view) return Append(CopyTo(node, input, NewValue(output, Of(input).shape, view)));
    // Neither side is dense enough: by way of a buffer.
    const ValueId dense = NewValue(input, Of(input).shape, std::nullopt);
    Append(CopyTo(node, input, dense));
    view = ForwardView(node, Of(dense).storage, Of(dense).shape, Of(output).shape);
    Append(CopyTo(node, NewValue(input, Of(output).shape, view), output));
  }

  void Append(Node node) {
    for (const ValueId id : node.inputs) {
      if (id == kNoValue) continue;
      const auto waiting = waiting_.find(Of(id).storage.root);
      if (waiting == waiting_.end()) continue;
      MergeNames(&node, waiting->second);
      waiting_.erase(waiting);
    }
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) made_by_[Of(id).storage.root] = done_.size();
    }
    done_.push_back(std::move(node));
  }

  // The names of a vanished node go to the node that computed one of its operands last, or, where
  // that is a graph input, to the first one that reads it.
  void Note(const Node& node, const std::vector<ValueId>& operands) {
    for (const ValueId id : operands) {
      const auto made = made_by_.find(Of(id).storage.root);
      if (made != made_by_.end()) return MergeNames(&done_[made->second], node.onnx_nodes);
    }
    std::vector<std::string>& names = waiting_[Of(operands[0]).storage.root];
    names.insert(names.end(), node.onnx_nodes.begin(), node.onnx_nodes.end());
  }

  Graph* graph_;
  Rewriter rewriter_;
  UseCounts uses_;
  std::vector<NodeId> producers_;
  std::vector<Node> nodes_;
  std::vector<Node> done_;
  std::map<size_t, std::vector<Node>> settled_;  // view nodes that the walk back dealt with
  std::map<ValueId, size_t> made_by_;            // root -> the last node that wrote to it
  std::map<ValueId, std::vector<std::string>> waiting_;
};

}  // namespace

Status Layout(Graph* graph, const PassOptions&) {
  LayoutPass(graph).Run();
  CompactValues(graph);
  return {};
}

}  // namespace dla::ir
