#include "scheduler/slice_choice.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/cascade.h"
#include "scheduler/cascade_choice.h"
#include "scheduler/gain.h"
#include "scheduler/residency.h"
#include "scheduler/residency_candidates.h"
#include "scheduler/value_flow.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

size_t At(int64_t i) { return static_cast<size_t>(i); }

constexpr int kMostMembers = 8;
constexpr int kFitting = 2;  // heights of stripes, and numbers of slices, that fit and are compared
constexpr double kHope = 0.7;     // of the estimate
constexpr size_t kMostAlone = 4;  // groups that are cut alone
constexpr int kAxesAlone = 2;     // along the outermost ones
constexpr int64_t kCounts[] = {2, 3, 4, 6, 8, 12, 16, 24, 32};

// Groups of a schedule that follow one another as a graph of their own.
struct Window {
  GroupSpan groups;
  GroupGraph alone;
  std::map<ir::ValueId, int> whole_in;  // values of `alone` that stay, and the memory
  std::vector<int64_t> reserved_bytes;  // by memory: of what stays, used here or not
};

class Chooser {
 public:
  Chooser(const Schedule& schedule, SlicedWay way)
      : schedule_(schedule),
        way_(way),
        nests_(NestsOf(schedule)),
        flows_(FlowsOf(schedule.graph, nests_)) {}

  std::vector<ChosenSlicing> Run() { return way_ == SlicedWay::kAlone ? Alone() : Chains(); }

 private:
  // By dynamic programming over the ends of the chains.
  std::vector<ChosenSlicing> Chains() const {
    const int groups = static_cast<int>(nests_.size());
    std::vector<double> best(At(groups) + 1, 0);  // cost of the groups before that end
    std::vector<std::pair<int, std::optional<Slicing>>> last(At(groups) + 1);  // its first group
    for (int end = 1; end <= groups; ++end) {
      best[At(end)] = best[At(end - 1)] + CostNow(end - 1);
      last[At(end)] = {end - 1, std::nullopt};
      for (int first = end - 2; first >= std::max(0, end - kMostMembers); --first) {
        if (!IsReadBefore(first, end)) break;
        if (!IsPromising({first, end})) continue;
        const auto found = BestSlicing({first, end});
        if (!found || best[At(first)] + found->second >= best[At(end)]) continue;
        best[At(end)] = best[At(first)] + found->second;
        last[At(end)] = {first, found->first};
      }
    }
    std::vector<ChosenSlicing> chosen;
    for (int end = groups, first = 0; end > 0; end = first) {
      first = last[At(end)].first;
      if (!last[At(end)].second) continue;
      double saves = best[At(first)] - best[At(end)];
      for (int g = first; g < end; ++g) saves += CostNow(g);
      chosen.push_back({std::move(*last[At(end)].second), saves});
    }
    SortBySavings(&chosen);
    return chosen;
  }

  // Halves of single groups: one of them may hold, or leave to others, what the whole group cannot.
  std::vector<ChosenSlicing> Alone() const {
    std::vector<ChosenSlicing> chosen;
    for (int g = 0; g < static_cast<int>(nests_.size()); ++g) {
      const ScheduledGroup& group = schedule_.groups[At(g)];
      if (group.cascade >= 0) continue;
      const double saves = Gain(g, BytesMovedFor(g)) / 2;
      if (saves == 0) continue;
      int axes = 0;
      for (const ir::Axis& axis : group.nest.operands.back().axes) {
        if (axis.bound < 2 || axis.terms.size() != 1 || axes++ >= kAxesAlone) continue;
        const ir::Dimension& d = group.nest.dimensions[At(axis.terms[0].dimension)];
        chosen.push_back({{.groups = {group.name}, .dimension = d.name, .count = 2}, saves});
      }
    }
    SortBySavings(&chosen);
    chosen.resize(std::min(chosen.size(), kMostAlone * kAxesAlone));
    return chosen;
  }

  // Of values that other groups make or read, and of anything again.
  int64_t BytesMovedFor(int g) const {
    const ScheduledGroup& group = schedule_.groups[At(g)];
    int64_t bytes = group.predicted.dram_bytes() - group.compulsory_bytes;
    for (size_t o = 0; o < group.nest.operands.size(); ++o) {
      const ir::Operand& operand = group.nest.operands[o];
      if (operand.is_local || StaysOnChip(group.mapping.operands[o])) continue;
      const ValueFlow& flow = flows_.at(RootOf(schedule_.graph, operand));
      if (!flow.writers.empty() && !flow.readers.empty()) bytes += DenseBytes(operand);
    }
    return bytes;
  }

  static void SortBySavings(std::vector<ChosenSlicing>* chosen) {
    std::stable_sort(chosen->begin(), chosen->end(),
                     [](const auto& a, const auto& b) { return a.saves > b.saves; });
  }

  // What transfers of so many bytes cost the group today.
  double Gain(int g, int64_t bytes) const {
    const ScheduledGroup& group = schedule_.groups[At(g)];
    const SearchResult now = {.mapping = group.mapping, .predicted = group.predicted};
    return TransferGain(group.nest, now, static_cast<double>(bytes), schedule_.target,
                        schedule_.objective);
  }

  double CostNow(int g) const {
    machine::Counters counters = schedule_.groups[At(g)].predicted;
    counters.cycles = schedule_.groups[At(g)].alone_cycles;
    return AdditiveCost(counters, nests_[At(g)], schedule_.target, schedule_.objective);
  }

  ir::ValueId MadeBy(int g) const { return RootOf(schedule_.graph, nests_[At(g)].operands.back()); }

  // Does a later group before `end`, and none behind it, read what the group makes?
  bool IsReadBefore(int g, int end) const {
    const ValueFlow& flow = flows_.at(MadeBy(g));
    return !flow.is_graph_output && flow.writers.size() == 1 && !flow.readers.empty() &&
           flow.readers.front() > g && flow.readers.back() < end;
  }

  bool PartsCascade(int border) const {
    if (border == 0 || border == static_cast<int>(nests_.size())) return false;
    const int before = schedule_.groups[At(border - 1)].cascade;
    return before >= 0 && before == schedule_.groups[At(border)].cascade;
  }

  // Does something between the groups go through DRAM today that need not, while their constants
  // could stay?
  bool IsPromising(GroupSpan groups) const {
    if (PartsCascade(groups.first) || PartsCascade(groups.end)) return false;
    bool is_lost = false;
    for (int g = groups.first; g < groups.end - 1; ++g) {
      is_lost = is_lost || !StaysOnChip(schedule_.groups[At(g)].mapping.operands.back());
    }
    int64_t constants = 0, room = 0;
    for (int g = groups.first; g < groups.end; ++g) {
      for (const ir::Operand& operand : nests_[At(g)].operands) {
        if (operand.is_constant) constants += DenseBytes(operand);
      }
    }
    for (const machine::Memory& memory : schedule_.target.memories) room += UsableBytes(memory);
    return is_lost && constants < room;
  }

  Window WindowOf(GroupSpan groups) const {
    Window window = {.groups = groups};
    std::map<ir::ValueId, ir::ValueId> number;  // in the window, of the schedule's values
    ir::Graph& graph = window.alone.graph;
    const auto add = [&](ir::ValueId v) {
      const auto [it, is_new] = number.emplace(v, static_cast<ir::ValueId>(graph.values.size()));
      if (is_new) graph.values.push_back(schedule_.graph.values[At(v)]);
      return it->second;
    };
    for (int g = groups.first; g < groups.end; ++g) {
      graph.nodes.push_back({.name = schedule_.groups[At(g)].name});
      window.alone.nests.push_back(nests_[At(g)]);
      for (ir::Operand& operand : window.alone.nests.back().operands) {
        if (operand.is_local) continue;
        const ir::ValueId root = add(RootOf(schedule_.graph, operand));
        operand.value = add(operand.value);
        graph.values[At(operand.value)].storage.root = root;
      }
    }
    graph.outputs.push_back(number.at(MadeBy(groups.end - 1)));
    window.reserved_bytes.assign(schedule_.target.memories.size(), 0);
    for (const Resident& r : schedule_.residents) {
      const bool within = groups.first <= r.first_group && r.end_group <= groups.end;
      if (within || r.end_group <= groups.first || groups.end <= r.first_group) continue;
      window.reserved_bytes[At(r.memory)] +=
          RoundUp(r.bytes, schedule_.target.memories[At(r.memory)].align_bytes);
      const auto value = number.find(r.root);
      if (value != number.end() && r.through == Through())
        window.whole_in[value->second] = r.memory;
    }
    return window;
  }

  // The slices at which the groups cost least, and that cost; nothing if they cannot be cut so.
  std::optional<std::pair<Slicing, double>> BestSlicing(GroupSpan groups) const {
    const Window window = WindowOf(groups);
    std::optional<std::pair<Slicing, double>> best;
    const ir::Nest& tip = nests_[At(groups.end - 1)];
    for (const ir::Axis& axis : tip.operands.back().axes) {
      if (axis.terms.size() != 1) continue;
      const ir::Dimension& d = tip.dimensions[At(axis.terms[0].dimension)];
      Slicing slicing = {.dimension = d.name};
      for (const ir::Node& node : window.alone.graph.nodes) slicing.groups.push_back(node.name);
      int fitting = 0;
      for (const int64_t count : kCounts) {
        slicing.count = count;
        const Result<GroupGraph> sliced = Slice(window.alone, slicing);
        if (!sliced.ok()) break;
        const double cost = CostOf(window, *sliced, count);
        if (cost == kImpossible) continue;
        if (!best || cost < best->second) best = {slicing, cost};
        if (++fitting == kFitting) break;
      }
    }
    return best;
  }

  // Of the chain in cascades, or with slices of values that stay whole.
  double CostOf(const Window& window, const GroupGraph& sliced, int64_t count) const {
    const ValueFlows flows = FlowsOf(sliced.graph, sliced.nests);
    if (way_ == SlicedWay::kWhole) return WholeCost(window, sliced, flows, count);
    const CascadePlanner planner(sliced.graph, sliced.nests, flows, schedule_.target);
    // The first slice, the last, and those between, which differ by a line.
    const auto slice = [&](int64_t s) {
      return CascadeCost(window, sliced, planner, static_cast<int>(s));
    };
    double cost = slice(0);
    if (cost != kImpossible) cost += slice(count - 1);
    if (cost != kImpossible && count > 2) cost += slice(count / 2) * static_cast<double>(count - 2);
    return way_ == SlicedWay::kHoped ? kHope * cost : cost;
  }

  // What the groups cost today without the transfers of what lies between them, and with constants
  // loaded for every slice where there is no room for them.
  double WholeCost(const Window& window, const GroupGraph& sliced, const ValueFlows& flows,
                   int64_t count) const {
    const size_t members = window.alone.nests.size();
    const auto& memories = schedule_.target.memories;
    const int first = static_cast<int>(At(count / 2) * members);  // of a slice in the middle
    std::vector<std::vector<int64_t>> taken(members, window.reserved_bytes);
    for (const Candidate& c :
         CandidatesOf(sliced.graph, sliced.nests, flows, schedule_.target, false)) {
      const GroupSpan life = {c.first_group - first, c.end_group - first};
      if (!c.is_whole() || life.first < 0 || life.end > static_cast<int>(members)) continue;
      const auto fits = [&](int m) {
        return std::all_of(taken.begin() + life.first, taken.begin() + life.end, [&](auto& by) {
          return by[At(m)] + c.reserved_bytes < UsableBytes(memories[At(m)]) / 4 * 3;
        });
      };
      const auto memory = std::find_if(c.memories.begin(), c.memories.end(), fits);
      if (memory == c.memories.end()) return kImpossible;
      for (int i = life.first; i < life.end; ++i) taken[At(i)][At(*memory)] += c.reserved_bytes;
    }
    double cost = 0;
    for (size_t m = 0; m < members; ++m) {
      cost += MemberCost(window.groups.first + static_cast<int>(m), window, sliced, taken[m]);
    }
    return cost;
  }

  double MemberCost(int g, const Window& window, const GroupGraph& sliced,
                    const std::vector<int64_t>& taken) const {
    const ScheduledGroup& group = schedule_.groups[At(g)];
    int64_t room = 0, saved = 0, again = 0;
    for (size_t m = 0; m < taken.size(); ++m) {
      room += UsableBytes(schedule_.target.memories[m]) - taken[m];
    }
    const size_t members = window.alone.nests.size();
    const size_t count = sliced.nests.size() / members;
    for (size_t o = 0; o < group.nest.operands.size(); ++o) {
      const ir::Operand& operand = group.nest.operands[o];
      const int64_t bytes = DenseBytes(operand);
      if (operand.is_constant && bytes > room) again += bytes * static_cast<int64_t>(count - 1);
      if (operand.is_local || StaysOnChip(group.mapping.operands[o])) continue;
      const auto writer = flows_.at(RootOf(schedule_.graph, operand)).writers;
      const bool inside = writer.size() == 1 && window.groups.first <= writer[0] &&
                          writer[0] < window.groups.end - 1;
      if (inside) saved += bytes;
    }
    double repeated = 0;
    for (size_t s = 0; s < count; ++s) {
      const ir::Nest& nest = sliced.nests[s * members + At(g - window.groups.first)];
      for (size_t d = 0; d < nest.dimensions.size(); ++d) {
        repeated += static_cast<double>(nest.dimensions[d].repeated) /
                    static_cast<double>(group.nest.dimensions[d].extent);
      }
    }
    return (CostNow(g) - Gain(g, saved) + Gain(g, again)) * (1 + repeated);
  }

  double CascadeCost(const Window& window, const GroupGraph& sliced, const CascadePlanner& planner,
                     int slice) const {
    const int members = window.groups.end - window.groups.first;
    const GroupSpan groups = {slice * members, (slice + 1) * members};
    if (!planner.IsChain(groups)) return kImpossible;
    double best = kImpossible;
    int fitting = 0;
    for (const int64_t lines : HeightsOf(sliced.nests[At(groups.end - 1)])) {
      const auto plan = planner.Plan(groups, lines, window.whole_in, window.reserved_bytes);
      if (!plan) continue;
      double cost = 0;
      for (int m = 0; m < members; ++m) {
        cost += AdditiveCost(plan->predicted[At(m)], sliced.nests[At(groups.first + m)],
                             schedule_.target, schedule_.objective);
      }
      best = std::min(best, cost);
      if (++fitting == kFitting) break;
    }
    return best;
  }

  const Schedule& schedule_;
  const SlicedWay way_;
  const std::vector<ir::Nest> nests_;
  const ValueFlows flows_;
};

}  // namespace

std::vector<ChosenSlicing> ChooseSlices(const Schedule& schedule, SlicedWay way) {
  return Chooser(schedule, way).Run();
}

}  // namespace dla::scheduler
