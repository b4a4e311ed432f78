#include "scheduler/residency_candidates.h"

#include <algorithm>
#include <bit>
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

  // All parts of the root's life in which it may stay.
  void Add(ir::ValueId root, const ValueFlow& flow, bool keeps,
           std::vector<Candidate>* into) const {
    if (root == ir::kNoValue || flow.readers.empty()) return;
    const bool constant = graph_.values[At(root)].constant != nullptr;
    std::vector<int> touches = flow.writers;
    touches.insert(touches.end(), flow.readers.begin(), flow.readers.end());
    std::sort(touches.begin(), touches.end());
    const auto may = [&](size_t from, size_t end) {
      return std::all_of(touches.begin() + static_cast<int64_t>(from),
                         touches.begin() + static_cast<int64_t>(end),
                         [&](int g) { return MayHold(g, root); });
    };
    const size_t count = touches.size();
    const bool made = !flow.writers.empty() && flow.writers.front() < flow.readers.front() &&
                      flow.writers.back() < flow.readers.back();
    const bool whole = made && !constant && may(0, count) && !flow.is_graph_output;
    if (whole) AddPart(root, flow, touches, {}, into);
    for (size_t end = count; end > 1 && made; --end) {
      const bool is_read = touches[end - 1] >= flow.readers.front();
      if (!is_read || (end == count && whole) || !IsTried(0, end, count) || !may(0, end)) continue;
      AddPart(root, flow, Part(touches, 0, end), {.stored = true}, into);
    }
    const int last_writer = flow.writers.empty() ? -1 : flow.writers.back();
    for (size_t from = 0; from + 1 < count; ++from) {
      for (size_t end = count; end > from + 1 && touches[from] > last_writer; --end) {
        if (!IsTried(from, end, count) || !may(from, end)) continue;
        AddPart(root, flow, Part(touches, from, end), {.loaded = true}, into);
      }
    }
    if (keeps && constant && may(0, count)) AddPart(root, flow, touches, {.kept = true}, into);
  }

 private:
  // Of values with many readers only the longest and the shortest parts are candidates; with very
  // many, of the long ones those that leave out few readers, and lengths that double.
  static bool IsTried(size_t from, size_t end, size_t count) {
    constexpr size_t kMany = 6, kVeryMany = 64;
    const size_t length = end - from;
    if (count <= kMany || length == 2) return true;
    const bool is_long = from == 0 || end == count;
    return is_long && (count - length <= kVeryMany || std::has_single_bit(length));
  }

  static std::vector<int> Part(const std::vector<int>& touches, size_t from, size_t end) {
    return {touches.begin() + static_cast<int64_t>(from),
            touches.begin() + static_cast<int64_t>(end)};
  }

  bool MayHold(int g, ir::ValueId root) const {
    return nests_[At(g)].anchor != ir::Anchor::kMove && !IsGathered(g, root);
  }

  void AddPart(ir::ValueId root, const ValueFlow& flow, std::vector<int> touches,
               const Through& through, std::vector<Candidate>* into) const {
    Candidate candidate = {.root = root, .bytes = RootBytes(graph_, root)};
    candidate.touches = std::move(touches);
    candidate.through = through;
    candidate.first_group = through.kept ? 0 : candidate.touches.front();
    candidate.end_group =
        through.kept ? static_cast<int>(nests_.size()) : candidate.touches.back() + 1;
    candidate.is_one_step = candidate.is_whole() && candidate.touches.size() == 2 &&
                            candidate.end_group == candidate.first_group + 2;
    for (size_t m = 0; m < target_.memories.size(); ++m) {
      if (!Holds(m, root, flow, candidate)) continue;
      candidate.memories.push_back(static_cast<int>(m));
      candidate.reserved_bytes = std::max(
          candidate.reserved_bytes, RoundUp(candidate.bytes, target_.memories[m].align_bytes));
    }
    if (!candidate.memories.empty()) into->push_back(std::move(candidate));
  }

  bool Holds(size_t m, ir::ValueId root, const ValueFlow& flow, const Candidate& candidate) const {
    const machine::Memory& memory = target_.memories[m];
    bool holds = RoundUp(candidate.bytes, memory.align_bytes) < UsableBytes(memory);
    for (const int g : candidate.touches) {
      if (std::binary_search(flow.writers.begin(), flow.writers.end(), g)) {
        holds = holds && memory.Holds(nests_[At(g)].operands.back().cls);
      }
      for (int o = 0; o < nests_[At(g)].output(); ++o) {
        const ir::Operand& operand = nests_[At(g)].operands[At(o)];
        if (RootOf(graph_, operand) != root) continue;
        // Indices are read by the load engine, which does not wait for moves. What is loaded lies
        // where its readers want it; zeros of block-diagonal weights are in no constant.
        const bool in_place = HoldsIndices(nests_[At(g)], o) || candidate.is_loaded();
        holds = holds && (in_place ? memory.Holds(operand.cls) : Reaches(m, operand.cls));
        if (candidate.is_loaded()) holds = holds && !operand.diagonal;
      }
    }
    return holds;
  }

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
                                    const ValueFlows& flows, const machine::Target& target,
                                    bool keeps) {
  const Finder finder(graph, nests, target);
  std::vector<Candidate> candidates;
  for (const auto& [root, flow] : flows) finder.Add(root, flow, keeps, &candidates);
  std::map<ir::ValueId, int> by_root;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].is_whole()) by_root[candidates[i].root] = static_cast<int>(i);
  }
  for (Candidate& candidate : candidates) {
    if (!candidate.is_whole()) continue;
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
