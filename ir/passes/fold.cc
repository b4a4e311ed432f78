// fold: nodes of constants are computed; multiplications, divisions, additions and subtractions of
// constants of each output channel behind a contraction go into its weight and bias.
//
// A constant goes into a contraction only if nobody else sees the contraction's own result. New
// weights are new constants, so a weight that is shared stays what it was for the others.
#include "ir/fold.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "ir/op.h"
#include "ir/passes/passes.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

Status FoldConstants(Graph* graph) {
  std::vector<Node> kept;
  std::vector<Node> nodes = std::move(graph->nodes);
  graph->nodes.clear();
  for (Node& node : nodes) {
    const OpDef* def = FindOperator(node.op);
    if (def->evaluate != nullptr && IsFoldable(*graph, node)) {
      DLA_RETURN_IF_ERROR(FoldNode(graph, node));
    } else {
      kept.push_back(std::move(node));
    }
  }
  graph->nodes = std::move(kept);
  return DetachOutputs(graph);
}

// The constant as one number for each output channel of `contraction`, or nothing if it is not of
// that form.
std::optional<std::vector<float>> PerChannel(const Graph& graph, const Node& contraction,
                                             ValueId constant) {
  const TensorView view = ConstantView(graph, constant);
  if (!view.present() || view.type != ElementType::kF32) return std::nullopt;
  const Shape& output = graph.values[Idx(contraction.outputs[0])].shape;
  if (view.shape.size() > output.size()) return std::nullopt;
  const size_t channel = contraction.op == "Conv" ? 1 : output.size() - 1;
  const size_t lead = output.size() - view.shape.size();
  int64_t extent = 1;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == 1) continue;
    if (i + lead != channel || view.shape[i] != output[channel]) return std::nullopt;
    extent = view.shape[i];
  }
  std::vector<float> values(Idx(output[channel]));
  for (size_t m = 0; m < values.size(); ++m) values[m] = view.f32()[extent == 1 ? 0 : m];
  return values;
}

class ScaleFolder {
 public:
  explicit ScaleFolder(Graph* graph)
      : graph_(graph), rewriter_(graph), uses_(*graph), producers_(Producers(*graph)) {}

  void Run() {
    // Nodes are visited in order, so that a chain (scale, then shift) goes in step by step.
    for (size_t n = 0; n < graph_->nodes.size(); ++n) {
      const Node node = graph_->nodes[n];
      const bool scale = node.op == "Mul" || node.op == "Div";
      const bool shift = node.op == "Add" || node.op == "Sub";
      if (!scale && !shift) continue;
      for (const size_t side : {size_t{0}, size_t{1}}) {
        // c - x and c / x are not of the form.
        if (side == 1 && (node.op == "Div" || node.op == "Sub")) continue;
        if (!uses_.Single(node.inputs[side])) continue;
        const NodeId anchor = Producer(node.inputs[side]);
        if (anchor < 0 || !Take(Idx(anchor), node, node.inputs[1 - side])) continue;
        producers_[Idx(node.outputs[0])] = anchor;
        graph_->nodes[n].outputs.clear();  // done
        break;
      }
    }
    const auto done = [](const Node& node) { return node.outputs.empty(); };
    graph_->nodes.erase(std::remove_if(graph_->nodes.begin(), graph_->nodes.end(), done),
                        graph_->nodes.end());
  }

 private:
  // The contraction that computes the value, or -1.
  NodeId Producer(ValueId id) {
    const NodeId node = producers_[Idx(id)];
    if (node < 0) return -1;
    return FindOperator(graph_->nodes[Idx(node)].op)->kind == OpKind::kContraction ? node : -1;
  }

  // Puts `node` (with this constant) into the contraction, if it has the form.
  bool Take(size_t anchor, const Node& node, ValueId constant) {
    Node& contraction = graph_->nodes[anchor];
    const auto values = PerChannel(*graph_, contraction, constant);
    if (!values) return false;
    // The constant must not make the result larger.
    if (graph_->values[Idx(node.outputs[0])].shape !=
        graph_->values[Idx(contraction.outputs[0])].shape) {
      return false;
    }
    const bool biased = contraction.inputs.size() > 2 && contraction.inputs[2] != kNoValue;
    if (biased && !ConstantView(*graph_, contraction.inputs[2]).present()) return false;
    rewriter_.Begin(contraction);
    const bool scale = node.op == "Mul" || node.op == "Div";
    if (scale && !ScaleWeight(&contraction, node.op == "Div", *values)) return false;
    if (biased || !scale) CombineBias(&contraction, node.op, *values);
    contraction.outputs[0] = node.outputs[0];
    MergeNames(&contraction, node.onnx_nodes);
    return true;
  }

  static float Combine(const std::string& op, float x, float y) {
    if (op == "Mul") return x * y;
    if (op == "Div") return x / y;
    return op == "Add" ? x + y : x - y;
  }

  bool ScaleWeight(Node* contraction, bool divide, const std::vector<float>& values) {
    const TensorView weight = ConstantView(*graph_, contraction->inputs[1]);
    if (!weight.present() || weight.type != ElementType::kF32) return false;
    const size_t rank = weight.shape.size();
    size_t axis = 0;
    if (contraction->op == "MatMul") {
      axis = GetInt(contraction->attributes, "trans_b", 0) != 0 ? rank - 2 : rank - 1;
    }
    Tensor scaled = Tensor::Zeros({weight.type, weight.shape});
    int64_t inner = 1;
    for (size_t i = axis + 1; i < rank; ++i) inner *= weight.shape[i];
    const int64_t channels = weight.shape[axis];
    for (int64_t i = 0; i < weight.elements(); ++i) {
      const float factor = values[Idx(i / inner % channels)];
      scaled.f32()[i] = divide ? weight.f32()[i] / factor : weight.f32()[i] * factor;
    }
    contraction->inputs[1] = rewriter_.AddConstant(std::move(scaled), "weight");
    return true;
  }

  void CombineBias(Node* contraction, const std::string& op, const std::vector<float>& values) {
    std::vector<float> bias(values.size(), 0.0f);
    if (contraction->inputs.size() > 2 && contraction->inputs[2] != kNoValue) {
      std::memcpy(bias.data(), ConstantView(*graph_, contraction->inputs[2]).bytes,
                  bias.size() * sizeof(float));
    }
    for (size_t m = 0; m < bias.size(); ++m) bias[m] = Combine(op, bias[m], values[m]);
    contraction->inputs.resize(3, kNoValue);
    const Shape shape = {static_cast<int64_t>(bias.size())};
    contraction->inputs[2] = rewriter_.AddConstant(Tensor::Floats(shape, bias), "bias");
  }

  Graph* graph_;
  Rewriter rewriter_;
  UseCounts uses_;
  std::vector<NodeId> producers_;
};

}  // namespace

Status Fold(Graph* graph, const PassOptions&) {
  DLA_RETURN_IF_ERROR(FoldConstants(graph));
  ScaleFolder(graph).Run();
  RemoveDeadNodes(graph);
  CompactValues(graph);
  return {};
}

}  // namespace dla::ir
