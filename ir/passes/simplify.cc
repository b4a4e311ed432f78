// simplify: no-ops vanish, views and transposes of each other become one, zero padding goes into
// the convolution behind it, division by a power of two becomes a multiplication, dead code goes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/op.h"
#include "ir/passes/passes.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

bool All(const std::vector<int64_t>& values, int64_t wanted) {
  return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v == wanted; });
}

bool IsNoOp(const Graph& graph, const Node& node) {
  const Shape& output = graph.values[Idx(node.outputs[0])].shape;
  if (node.inputs.empty() || graph.values[Idx(node.inputs[0])].shape != output) return false;
  if (node.op == "View" || node.op == "Concat") return node.inputs.size() == 1;
  // With the same shape, a slice is whole unless it runs backwards.
  if (node.op == "StridedSlice") return All(GetInts(node.attributes, "starts"), 0);
  if (node.op == "Broadcast") return true;
  if (node.op == "Resize") return All(GetInts(node.attributes, "repeats"), 1);
  if (node.op == "Pad") return All(GetInts(node.attributes, "pads"), 0);
  if (node.op == "Transpose") {
    const std::vector<int64_t> perm = GetInts(node.attributes, "perm");
    return std::is_sorted(perm.begin(), perm.end());
  }
  return false;
}

class Simplifier {
 public:
  explicit Simplifier(Graph* graph)
      : graph_(graph),
        uses_(*graph),
        producers_(Producers(*graph)),
        same_(graph->values.size(), kNoValue) {}

  // One walk in topological order: operands are simple already when a node is looked at. A no-op's
  // result is the same as its operand from there on.
  void Run() {
    for (size_t n = 0; n < graph_->nodes.size(); ++n) {
      Node& node = graph_->nodes[n];
      for (ValueId& id : node.inputs) id = Resolve(id);
      while (Compose(&node) || AbsorbPad(&node)) {
      }
      if (IsNoOp(*graph_, node)) RemoveNoOp(&node);
    }
    for (Node& node : graph_->nodes) {
      // A node may have taken over the name of an output that stood behind others.
      for (ValueId& id : node.inputs) id = Resolve(id);
    }
    const auto gone = [](const Node& node) { return node.outputs.empty(); };
    graph_->nodes.erase(std::remove_if(graph_->nodes.begin(), graph_->nodes.end(), gone),
                        graph_->nodes.end());
    Rewriter rewriter(graph_);
    for (Node& node : graph_->nodes) DivideByPowerOfTwo(&node, &rewriter);
  }

 private:
  Node* Producer(ValueId id) {
    const NodeId node = producers_[Idx(id)];
    return node < 0 ? nullptr : &graph_->nodes[Idx(node)];
  }

  ValueId Resolve(ValueId id) {
    while (id != kNoValue && same_[Idx(id)] != kNoValue) id = same_[Idx(id)];
    return id;
  }

  // View of a view, transpose of a transpose.
  bool Compose(Node* node) {
    if (node->op != "View" && node->op != "Transpose") return false;
    const Node* before = Producer(node->inputs[0]);
    if (before == nullptr || before->op != node->op) return false;
    if (node->op == "Transpose") {
      const std::vector<int64_t> first = GetInts(before->attributes, "perm");
      std::vector<int64_t> perm;
      for (const int64_t axis : GetInts(node->attributes, "perm")) perm.push_back(first[Idx(axis)]);
      node->attributes["perm"] = perm;
    }
    node->inputs[0] = before->inputs[0];
    MergeNames(node, before->onnx_nodes);
    return true;
  }

  // Constant padding of the spatial axes, by what the window reads there anyway.
  bool AbsorbPad(Node* node) {
    const bool max = node->op == "MaxPool";
    if (node->op != "Conv" && node->op != "SumPool" && !max) return false;
    const Node* pad = Producer(node->inputs[0]);
    if (pad == nullptr || pad->op != "Pad" || GetInt(node->attributes, "ceil_mode", 0) != 0) {
      return false;
    }
    const auto it = pad->attributes.find("value");
    const bool integer = it != pad->attributes.end() && std::holds_alternative<int64_t>(it->second);
    if (integer) return false;
    const float value = GetFloat(pad->attributes, "value", 0);
    if (value != (max ? -std::numeric_limits<float>::infinity() : 0.0f)) return false;
    const std::vector<int64_t> extra = GetInts(pad->attributes, "pads");
    const size_t rank = extra.size() / 2;
    const auto negative = [](int64_t p) { return p < 0; };
    if (std::any_of(extra.begin(), extra.end(), negative)) return false;
    if (extra[0] != 0 || extra[1] != 0 || extra[rank] != 0 || extra[rank + 1] != 0) return false;
    std::vector<int64_t> pads = GetInts(node->attributes, "pads");
    for (size_t i = 2; i < rank; ++i) {
      pads[i - 2] += extra[i];
      pads[i - 2 + rank - 2] += extra[rank + i];
    }
    node->attributes["pads"] = pads;
    node->inputs[0] = pad->inputs[0];
    MergeNames(node, pad->onnx_nodes);
    return true;
  }

  // A no-op's users take its operand; a graph output is then computed by the operand's node.
  void RemoveNoOp(Node* node) {
    const ValueId from = node->inputs[0], to = node->outputs[0];
    Node* producer = Producer(from);
    if (!uses_.is_output[Idx(to)]) {
      same_[Idx(to)] = from;
    } else if (producer != nullptr && !uses_.is_output[Idx(from)]) {
      std::replace(producer->outputs.begin(), producer->outputs.end(), from, to);
      producers_[Idx(to)] = producers_[Idx(from)];
      same_[Idx(from)] = to;
    } else {
      node->op = "Copy";  // a graph input, or another output
      node->attributes.clear();
      return;
    }
    if (producer != nullptr) MergeNames(producer, node->onnx_nodes);
    node->outputs.clear();
  }

  // Exact, and several times cheaper.
  void DivideByPowerOfTwo(Node* node, Rewriter* rewriter) {
    if (node->op != "Div") return;
    const auto divisor = ConstantScalar(*graph_, node->inputs[1]);
    if (!divisor || *divisor == 0 ||
        graph_->values[Idx(node->inputs[1])].type != ElementType::kF32) {
      return;
    }
    int exponent = 0;
    if (std::fabs(std::frexp(*divisor, &exponent)) != 0.5 || std::abs(exponent) > 100) return;
    rewriter->Begin(*node);
    const Shape shape = graph_->values[Idx(node->inputs[1])].shape;
    node->op = "Mul";
    node->inputs[1] = rewriter->AddConstant(
        Tensor::Floats(shape, {static_cast<float>(1.0 / *divisor)}), "reciprocal");
  }

  Graph* graph_;
  UseCounts uses_;
  std::vector<NodeId> producers_;
  std::vector<ValueId> same_;  // another value that takes this one's place
};

}  // namespace

Status Simplify(Graph* graph, const PassOptions&) {
  Simplifier(graph).Run();
  RemoveDeadNodes(graph);
  CompactValues(graph);
  return {};
}

}  // namespace dla::ir
