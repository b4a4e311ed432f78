#include "scheduler/residency_candidates.h"

#include <algorithm>
#include <map>

#include "scheduler/searcher.h"
#include "scheduler/transfers.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

class Finder {
 public:
  Finder(const ir::Graph& graph, const std::vector<ir::Nest>& nests, const machine::Target& target)
      : graph_(graph), nests_(nests), target_(target) {}

  // Made and read by groups that compute, and by nothing outside.
  bool CanStay(ir::ValueId root, const ValueFlow& flow) const {
    if (flow.writers.empty() || flow.readers.empty() || flow.is_graph_output) return false;
    const auto moves = [&](int g) { return nests_[At(g)].anchor == ir::Anchor::kMove; };
    return flow.writers.front() < flow.readers.front() &&
           flow.writers.back() < flow.readers.back() &&
           graph_.values[At(root)].constant == nullptr &&
           std::none_of(flow.writers.begin(), flow.writers.end(), moves) &&
           std::none_of(flow.readers.begin(), flow.readers.end(), moves) &&
           std::none_of(flow.readers.begin(), flow.readers.end(),
                        [&](int g) { return IsGathered(g, root); });
  }

  bool Holds(size_t m, ir::ValueId root, const ValueFlow& flow, int64_t bytes) const {
    const machine::Memory& memory = target_.memories[m];
    bool holds = RoundUp(bytes, memory.align_bytes) < UsableBytes(memory);
    for (const int g : flow.writers)
      holds = holds && memory.Holds(nests_[At(g)].operands.back().cls);
    for (const int g : flow.readers) {
      for (int o = 0; o < nests_[At(g)].output(); ++o) {
        const ir::Operand& operand = nests_[At(g)].operands[At(o)];
        if (RootOf(graph_, operand) != root) continue;
        // Indices are read by the load engine, which does not wait for moves.
        holds = holds && (HoldsIndices(nests_[At(g)], o) ? memory.Holds(operand.cls)
                                                         : Reaches(m, operand.cls));
      }
    }
    return holds;
  }

 private:
  // Does the group gather from the value? Only the load engine can, from DRAM.
  bool IsGathered(int g, ir::ValueId root) const {
    const std::vector<ir::Operand>& operands = nests_[At(g)].operands;
    return std::any_of(operands.begin(), operands.end(), [&](const ir::Operand& operand) {
      return operand.gather && RootOf(graph_, operand) == root;
    });
  }

  // Can an operand of this class use a value that stays in the memory, in place or over a link?
  bool Reaches(size_t from, OperandClass cls) const {
    if (target_.memories[from].Holds(cls)) return true;
    for (size_t to = 0; to < target_.memories.size(); ++to) {
      if (target_.memories[to].Holds(cls) &&
          target_.FindLink(static_cast<int>(from), static_cast<int>(to)) != nullptr) {
        return true;
      }
    }
    return false;
  }

  const ir::Graph& graph_;
  const std::vector<ir::Nest>& nests_;
  const machine::Target& target_;
};

// Has each index its element at the same place of either buffer?
bool LieAlike(const ir::Operand& a, const ir::Operand& b) {
  const auto same_term = [](const ir::Term& x, const ir::Term& y) {
    return x.dimension == y.dimension && x.coefficient == y.coefficient;
  };
  const auto same_axis = [&](const ir::Axis& x, const ir::Axis& y) {
    return x.offset == y.offset && x.bound == y.bound && x.stride == y.stride &&
           std::equal(x.terms.begin(), x.terms.end(), y.terms.begin(), y.terms.end(), same_term);
  };
  return a.type == b.type && a.base == b.base &&
         std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(), same_axis);
}

}  // namespace

std::vector<Candidate> CandidatesOf(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                                    const ValueFlows& flows, const machine::Target& target) {
  const Finder finder(graph, nests, target);
  std::vector<Candidate> candidates;
  for (const auto& [root, flow] : flows) {
    if (!finder.CanStay(root, flow)) continue;
    Candidate candidate = {.root = root,
                           .bytes = RootBytes(graph, root),
                           .first_group = flow.writers.front(),
                           .end_group = flow.readers.back() + 1};
    candidate.is_one_step = flow.writers.size() == 1 &&
                            flow.readers.front() == flow.writers.front() + 1 &&
                            flow.readers.back() == flow.writers.front() + 1;
    for (size_t m = 0; m < target.memories.size(); ++m) {
      if (!finder.Holds(m, root, flow, candidate.bytes)) continue;
      candidate.memories.push_back(static_cast<int>(m));
      candidate.reserved_bytes = std::max(candidate.reserved_bytes,
                                          RoundUp(candidate.bytes, target.memories[m].align_bytes));
    }
    if (!candidate.memories.empty()) candidates.push_back(std::move(candidate));
  }
  std::map<ir::ValueId, int> by_root;
  for (size_t i = 0; i < candidates.size(); ++i) by_root[candidates[i].root] = static_cast<int>(i);
  for (Candidate& candidate : candidates) {
    const auto over = by_root.find(TakenOver(graph, nests, flows, candidate.first_group));
    if (over == by_root.end() || flows.at(candidate.root).writers.size() != 1) continue;
    if (candidates[At(over->second)].reserved_bytes != candidate.reserved_bytes) continue;
    candidate.over = over->second;
  }
  return candidates;
}

ir::ValueId TakenOver(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                      const ValueFlows& flows, int group) {
  const ir::Nest& nest = nests[At(group)];
  // Where a window or a reduction reads the value, it reads elements that are overwritten already.
  const bool contracts = nest.anchor == ir::Anchor::kContraction;
  if (nest.anchor == ir::Anchor::kMove || nest.pass_dimension >= 0) return ir::kNoValue;
  if (!contracts && nest.reduce_mask != 0) return ir::kNoValue;
  const ir::Operand& output = nest.operands.back();
  for (int o = contracts ? ir::Nest::kWeight + 1 : 0; o < nest.output(); ++o) {
    const ir::Operand& operand = nest.operands[At(o)];
    const ir::ValueId root = RootOf(graph, operand);
    if (o == nest.bias || root == ir::kNoValue || !LieAlike(operand, output)) continue;
    if (operand.value != root || output.value != RootOf(graph, output)) continue;
    if (graph.values[At(root)].constant != nullptr || operand.gather) continue;
    const ValueFlow& flow = flows.at(root);
    const auto reads =
        std::count_if(nest.operands.begin(), nest.operands.end(),
                      [&](const ir::Operand& other) { return RootOf(graph, other) == root; });
    const bool is_last = !flow.readers.empty() && flow.readers.back() == group;
    if (is_last && reads == 1 && !flow.is_graph_output && !flow.writers.empty()) return root;
  }
  return ir::kNoValue;
}

int64_t RootBytes(const ir::Graph& graph, ir::ValueId root) {
  const ir::Value& value = graph.values[At(root)];
  return TypeBytes(value.StoredType(), ir::ElementCount(value.shape));
}

}  // namespace dla::scheduler
