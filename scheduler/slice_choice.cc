#include "scheduler/slice_choice.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "scheduler/cascade.h"
#include "scheduler/cascade_choice.h"
#include "scheduler/residency.h"
#include "scheduler/searcher.h"
#include "scheduler/value_flow.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

size_t At(int64_t i) { return static_cast<size_t>(i); }

constexpr int kMostMembers = 8;
constexpr int kFitting = 2;  // heights of stripes, and numbers of slices, that fit and are compared
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
  explicit Chooser(const Schedule& schedule)
      : schedule_(schedule), nests_(NestsOf(schedule)), flows_(FlowsOf(schedule.graph, nests_)) {
    for (const ScheduledGroup& group : schedule.groups) ++named_[group.name];
  }

  std::vector<Slicing> Run() {
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
    std::vector<Slicing> chosen;
    for (int end = groups; end > 0; end = last[At(end)].first) {
      if (last[At(end)].second) chosen.push_back(*last[At(end)].second);
    }
    std::reverse(chosen.begin(), chosen.end());
    return chosen;
  }

 private:
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
  // could stay? Slices are written down by name: groups that share one with others cannot be cut.
  bool IsPromising(GroupSpan groups) const {
    if (PartsCascade(groups.first) || PartsCascade(groups.end)) return false;
    bool is_lost = false;
    for (int g = groups.first; g < groups.end; ++g) {
      if (named_.at(schedule_.groups[At(g)].name) > 1) return false;
    }
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

  // With every slice a cascade: the first, the last, and those between, which differ by a line. Of
  // two slices only the first counts: too low an estimate, by which they are tried too often.
  double CostOf(const Window& window, const GroupGraph& sliced, int64_t count) const {
    const ValueFlows flows = FlowsOf(sliced.graph, sliced.nests);
    const CascadePlanner planner(sliced.graph, sliced.nests, flows, schedule_.target);
    double cost = 0;
    for (const int64_t s : {int64_t{0}, count / 2, count - 1}) {
      if (s == count / 2 && count == 2) continue;
      const double slice = CascadeCost(window, sliced, planner, static_cast<int>(s));
      if (slice == kImpossible) return kImpossible;
      cost += s == count / 2 ? slice * static_cast<double>(count - 2) : slice;
    }
    return cost;
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
  const std::vector<ir::Nest> nests_;
  const ValueFlows flows_;
  std::map<std::string, int> named_;  // how many groups have that name
};

}  // namespace

std::vector<Slicing> ChooseSlices(const Schedule& schedule) { return Chooser(schedule).Run(); }

}  // namespace dla::scheduler
