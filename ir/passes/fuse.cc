// fuse: element-wise work goes behind its anchor, so that every node becomes one group.
//
// A chain grows from an anchor's result as long as there is an element-wise node of the same shape
// that uses a value of the chain. It may be cut wherever it is *closed*: all values but the last
// are used inside the chain only and are no graph outputs. The longest closed prefix is fused; it
// stands where its last member stood, so every other operand is computed before it. Diamonds such
// as x * sigmoid(x) close where they join.
//
// Contractions choose first and in reverse order, so that a residual addition goes to the later of
// its two producers; then pooling and reductions; then element-wise nodes among themselves.
#include <algorithm>
#include <optional>
#include <set>

#include "ir/op.h"
#include "ir/ops/map.h"
#include "ir/passes/passes.h"
#include "ir/rewriter.h"
#include "support/micro_program.h"

namespace dla::ir {
namespace {

// Well below the machine's limits (32 operands, 64 micro-operations): anchors need some, too.
constexpr size_t kMostOperands = 16;
constexpr size_t kMostMicroOps = 40;

// How many micro-operations a node emits, loads and constants of its operands included.
size_t MicroOpsOf(const Graph& graph, const Node& node) {
  std::vector<ElementType> types;
  for (const ValueId id : node.inputs) {
    if (id != kNoValue) types.push_back(graph.values[Idx(id)].type);
  }
  return ProgramOf(node, types).ops.size();
}

// Whether more may be fused behind a value of this type: what follows sees it before it is stored,
// thus not yet wrapped or rounded. Half precision is rounded once where a group's result is stored,
// but a cast to it is there for its rounding.
bool MayGrow(ElementType type, const std::string& op) {
  return IsValueType(type) || (IsFloat(type) && op != "Cast");
}

class Fuser {
 public:
  explicit Fuser(Graph* graph) : graph_(graph), dead_(graph->nodes.size()) { FindUsers(); }

  void Run() {
    const size_t count = graph_->nodes.size();
    for (size_t n = count; n-- > 0;) {
      if (KindOf(n) == OpKind::kContraction) FuseBehind(n);
    }
    for (size_t n = 0; n < count; ++n) {
      const OpKind kind = KindOf(n);
      const bool alone = kind == OpKind::kRow || kind == OpKind::kReduction;
      if (alone || kind == OpKind::kVectorMove) FuseBehind(n);
    }
    for (size_t n = 0; n < count; ++n) {
      if (KindOf(n) == OpKind::kMap) FuseBehind(n);
    }
    Sweep();
  }

 private:
  OpKind KindOf(size_t n) const {
    return dead_[n] ? OpKind::kOnnxOnly : FindOperator(graph_->nodes[n].op)->kind;
  }

  void FindUsers() {
    users_.assign(graph_->values.size(), {});
    is_output_.assign(graph_->values.size(), false);
    for (const ValueId id : graph_->outputs) is_output_[Idx(id)] = true;
    for (size_t n = 0; n < graph_->nodes.size(); ++n) {
      for (const ValueId id : graph_->nodes[n].inputs) {
        if (id != kNoValue) users_[Idx(id)].insert(n);
      }
    }
  }

  // All values of the chain but the last are used by its members only.
  bool Closed(const std::vector<ValueId>& chain, const std::set<size_t>& members) const {
    for (size_t i = 0; i + 1 < chain.size(); ++i) {
      if (is_output_[Idx(chain[i])]) return false;
      for (const size_t user : users_[Idx(chain[i])]) {
        if (!members.contains(user)) return false;
      }
    }
    return true;
  }

  // The first node behind the chain that could be its next member.
  std::optional<size_t> Next(const std::vector<ValueId>& chain, const std::set<size_t>& members,
                             const Shape& shape) const {
    std::optional<size_t> best;
    for (const ValueId id : chain) {
      for (const size_t user : users_[Idx(id)]) {
        if (members.contains(user) || (best && *best <= user)) continue;
        const Node& node = graph_->nodes[user];
        const Value& output = graph_->values[Idx(node.outputs[0])];
        if (KindOf(user) == OpKind::kMap && node.fused.empty() && output.shape == shape) {
          best = user;
        }
      }
    }
    return best;
  }

  void FuseBehind(size_t anchor) {
    const Value& result = graph_->values[Idx(graph_->nodes[anchor].outputs[0])];
    const bool several = graph_->nodes[anchor].outputs.size() > 1;
    if (several || !graph_->nodes[anchor].fused.empty()) return;
    const Shape shape = result.shape;
    std::vector<ValueId> chain = {graph_->nodes[anchor].outputs[0]};
    std::vector<size_t> order;
    std::set<size_t> members;
    std::set<ValueId> operands;
    size_t micro_ops = KindOf(anchor) == OpKind::kMap || KindOf(anchor) == OpKind::kRow
                           ? MicroOpsOf(*graph_, graph_->nodes[anchor])
                           : 8;
    size_t closed = 0;
    // A last value that is seen outside cannot be followed by anything.
    std::string last = graph_->nodes[anchor].op;
    while (!is_output_[Idx(chain.back())] &&
           MayGrow(graph_->values[Idx(chain.back())].type, last)) {
      const std::optional<size_t> next = Next(chain, members, shape);
      if (!next) break;
      const Node& node = graph_->nodes[*next];
      micro_ops += MicroOpsOf(*graph_, node);
      for (const ValueId id : node.inputs) {
        if (std::find(chain.begin(), chain.end(), id) == chain.end()) operands.insert(id);
      }
      if (micro_ops > kMostMicroOps || operands.size() > kMostOperands) break;
      members.insert(*next);
      order.push_back(*next);
      chain.push_back(node.outputs[0]);
      last = node.op;
      if (Closed(chain, members)) closed = order.size();
    }
    if (closed == 0) return;
    order.resize(closed);
    chain.resize(closed + 1);
    Merge(anchor, order, chain);
  }

  void Merge(size_t anchor, const std::vector<size_t>& order, const std::vector<ValueId>& chain) {
    Node merged = graph_->nodes[anchor];
    merged.inputs.resize(Idx(FindOperator(merged.op)->max_inputs), kNoValue);
    const size_t own = merged.inputs.size();
    for (size_t k = 0; k < order.size(); ++k) {
      const Node& node = graph_->nodes[order[k]];
      FusedOp op;
      op.op = node.op;
      op.attributes = node.attributes;
      for (const ValueId id : node.inputs) {
        const auto link = std::find(chain.begin(), chain.begin() + static_cast<int64_t>(k) + 1, id);
        if (link != chain.begin() + static_cast<int64_t>(k) + 1) {
          op.inputs.push_back(static_cast<int>(link - chain.begin()) - static_cast<int>(k) - 1);
          continue;
        }
        auto place =
            std::find(merged.inputs.begin() + static_cast<int64_t>(own), merged.inputs.end(), id);
        if (place == merged.inputs.end()) place = merged.inputs.insert(place, id);
        op.inputs.push_back(static_cast<int>(place - merged.inputs.begin()));
      }
      merged.fused.push_back(std::move(op));
      MergeNames(&merged, node.onnx_nodes);
      dead_[order[k]] = true;
    }
    merged.outputs = {chain.back()};
    dead_[anchor] = true;
    const size_t place = *std::max_element(order.begin(), order.end());
    graph_->nodes[place] = std::move(merged);
    dead_[place] = false;
    // The merged node takes the place of its members among the users of its operands.
    for (const ValueId id : graph_->nodes[place].inputs) {
      if (id == kNoValue) continue;
      std::set<size_t>& users = users_[Idx(id)];
      users.erase(anchor);
      for (const size_t member : order) users.erase(member);
      users.insert(place);
    }
    for (const ValueId id : chain) {
      if (id != chain.back()) users_[Idx(id)].clear();
    }
  }

  void Sweep() {
    std::vector<Node> kept;
    for (size_t n = 0; n < graph_->nodes.size(); ++n) {
      if (!dead_[n]) kept.push_back(std::move(graph_->nodes[n]));
    }
    graph_->nodes = std::move(kept);
  }

  Graph* graph_;
  std::vector<bool> dead_;
  std::vector<std::set<size_t>> users_;  // nodes that use a value
  std::vector<bool> is_output_;
};

}  // namespace

Status Fuse(Graph* graph, const PassOptions& options) {
  if (options.fuse) Fuser(graph).Run();
  CompactValues(graph);
  return {};
}

}  // namespace dla::ir
