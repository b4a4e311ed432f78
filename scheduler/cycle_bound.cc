#include "scheduler/cycle_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "scheduler/exact/exact_search.h"
#include "scheduler/residency_candidates.h"
#include "scheduler/residency_problem.h"
#include "scheduler/searcher.h"
#include "scheduler/value_flow.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

constexpr size_t kMostPlayers = 4;  // of a group

// A group's values that may stay and its least cycles with each set of them on chip.
struct Group {
  std::vector<ir::ValueId> players;
  std::vector<ir::ValueId> others;  // are taken to stay
  std::vector<double> least;        // by set, as bits
  std::vector<double> price;        // by player: s[g][v]
};

class Bounder {
 public:
  Bounder(const ir::Graph& graph, const std::vector<ir::Nest>& nests, const Schedule& schedule)
      : graph_(graph),
        nests_(nests),
        schedule_(schedule),
        target_(schedule.target),
        flows_(FlowsOf(graph, nests)),
        in_parts_(!schedule.cascades.empty()) {}

  std::optional<int64_t> Run() {
    if (!MemoriesAreAlike()) return std::nullopt;
    ListItems();
    for (size_t g = 0; g < nests_.size(); ++g) {
      groups_[g].least.resize(size_t{1} << groups_[g].players.size());
      for (uint32_t set = 0; set < groups_[g].least.size(); ++set) {
        const std::optional<double> least = LeastCycles(g, set);
        if (!least) return std::nullopt;
        groups_[g].least[set] = *least;
      }
      AllowWhatIsScheduled(g);
      SetFirstPrices(&groups_[g]);
    }
    if (in_parts_) {
      double least = 0;
      for (const Group& g : groups_) least += *std::min_element(g.least.begin(), g.least.end());
      return static_cast<int64_t>(std::floor(least + 1e-3));
    }
    double all = 0;
    double reached = 0;
    for (size_t g = 0; g < nests_.size(); ++g) {
      all += groups_[g].least[0];
      reached += static_cast<double>(schedule_.groups[g].alone_cycles);
    }
    return static_cast<int64_t>(std::floor(all - MostSavings(all - reached) + 1e-3));
  }

 private:
  // Every scratchpad holds every class, as fast as any other, so that it does not matter to a group
  // in which one its values stay.
  bool MemoriesAreAlike() const {
    return std::all_of(target_.memories.begin(), target_.memories.end(),
                       [](const machine::Memory& memory) {
                         for (int c = 0; c < kOperandClassCount; ++c) {
                           if (!memory.Holds(static_cast<OperandClass>(c))) return false;
                         }
                         return !memory.bytes_per_cycle.has_value();
                       });
  }

  // A value from one touch to the next, as an item of the flow.
  struct Segment {
    int from = 0;  // groups
    int to = 0;
    ir::ValueId root = ir::kNoValue;
  };

  void ListItems() {
    groups_.resize(nests_.size());
    problem_.steps = static_cast<int>(nests_.size());
    int64_t largest = 0;
    std::vector<int> memories;
    for (const machine::Memory& memory : target_.memories) {
      memories.push_back(static_cast<int>(problem_.capacity_bytes.size()));
      problem_.capacity_bytes.push_back(memory.bytes);
      largest = std::max(largest, memory.bytes);
    }
    for (const auto& [root, flow] : flows_) {
      std::vector<int> touches = flow.writers;
      touches.insert(touches.end(), flow.readers.begin(), flow.readers.end());
      std::sort(touches.begin(), touches.end());
      if (touches.size() < 2) continue;
      if (!in_parts_ && LeastBytes(root, touches) > largest) continue;
      for (size_t i = 0; i + 1 < touches.size(); ++i) {
        segments_.push_back({touches[i], touches[i + 1], root});
        // The group that reads it last may put its output in its place.
        const int end = touches[i + 1];
        const bool ends = TakenOver(graph_, nests_, flows_, end) != root || end == touches[i];
        // As in traffic_bound.cc.
        const int end_step = ends ? end + 1 : end;
        const int first_step = touches[i] + (i > 0 ? 1 : 0);
        const bool is_empty = first_step >= end_step;
        problem_.items.push_back({.bytes = is_empty ? 1 : LeastBytes(root, touches),
                                  .first_step = is_empty ? end_step - 1 : first_step,
                                  .end_step = end_step,
                                  .memories = memories});
      }
      AddPlayer(root, flow);
    }
  }

  // What must lie on chip at least to hold what the groups touch of it.
  int64_t LeastBytes(ir::ValueId root, const std::vector<int>& touches) const {
    int64_t bytes = 0;
    for (const int g : touches) {
      for (const ir::Operand& operand : nests_[At(g)].operands) {
        if (RootOf(graph_, operand) != root) continue;
        bytes = std::max(bytes, DenseBytes(operand));
      }
    }
    return std::min(bytes, RootBytes(graph_, root));
  }

  // The groups that gain by the value being on chip: all that read it but the first one of a value
  // that no group makes, and those that make it if it need not be stored.
  void AddPlayer(ir::ValueId root, const ValueFlow& flow) {
    const size_t first = flow.writers.empty() ? 1 : 0;
    for (size_t i = first; i < flow.readers.size(); ++i) AddPlayerOf(flow.readers[i], root);
    if (flow.is_graph_output) return;
    for (const int g : flow.writers) AddPlayerOf(g, root);
  }

  void AddPlayerOf(int g, ir::ValueId root) {
    Group& group = groups_[At(g)];
    const auto& operands = nests_[At(g)].operands;
    const bool can_stay = std::none_of(operands.begin(), operands.end(), [&](const auto& operand) {
      return operand.gather && RootOf(graph_, operand) == root;
    });
    if (nests_[At(g)].anchor == ir::Anchor::kMove || !can_stay) return;
    if (std::find(group.players.begin(), group.players.end(), root) != group.players.end()) return;
    (group.players.size() < kMostPlayers ? group.players : group.others).push_back(root);
  }

  std::optional<double> LeastCycles(size_t g, uint32_t set) {
    const ir::Nest& nest = nests_[g];
    const auto& [players, others, least, price] = groups_[g];
    std::vector<int> resident_in(nest.operands.size(), -1);
    for (size_t o = 0; o < nest.operands.size(); ++o) {
      const ir::ValueId root = RootOf(graph_, nest.operands[o]);
      for (size_t p = 0; p < players.size(); ++p) {
        if (players[p] == root && (set >> p & 1U) != 0) resident_in[o] = 0;
      }
      if (std::find(others.begin(), others.end(), root) != others.end()) resident_in[o] = 0;
    }
    std::vector<int64_t> key = CostKey(nest);
    key.insert(key.end(), resident_in.begin(), resident_in.end());
    const auto [known, is_new] = known_.try_emplace(std::move(key));
    if (is_new) known->second = Search(nest, resident_in);
    return known->second;
  }

  std::optional<double> Search(const ir::Nest& nest, const std::vector<int>& resident_in) const {
    SearchProblem problem = {
        .nest = &nest, .target = &target_, .objective = Objective::kLatency, .options = {}};
    problem.resident_in = resident_in;
    problem.options.budget = schedule_.search.budget / kBudgetShare;
    for (const machine::Memory& memory : target_.memories) {
      problem.free_bytes.push_back(UsableBytes(memory));
    }
    const std::optional<ExactResult> result = ExactSearch(problem);
    return result ? std::optional(result->least) : std::nullopt;
  }

  // Where the search looks at some sizes only, the schedule may have better ones.
  void AllowWhatIsScheduled(size_t g) {
    Group& group = groups_[g];
    uint32_t set = 0;
    const Mapping& mapping = schedule_.groups[g].mapping;
    for (size_t p = 0; p < group.players.size(); ++p) {
      for (size_t o = 0; o < nests_[g].operands.size(); ++o) {
        if (RootOf(graph_, nests_[g].operands[o]) != group.players[p]) continue;
        if (StaysOnChip(mapping.operands[o])) set |= uint32_t{1} << p;
      }
    }
    const double cycles = static_cast<double>(schedule_.groups[g].alone_cycles);
    group.least[set] = std::min(group.least[set], cycles);
  }

  // The most that a value saves whatever else is on chip: then nothing is left for the sets.
  static void SetFirstPrices(Group* group) {
    for (size_t p = 0; p < group->players.size(); ++p) {
      double most = 0;
      for (uint32_t set = 0; set < group->least.size(); ++set) {
        const uint32_t bit = uint32_t{1} << p;
        if ((set & bit) == 0) most = std::max(most, group->least[set] - group->least[set | bit]);
      }
      group->price.push_back(most);
    }
  }

  // Of all sets, the one that saves most at these prices, and how much.
  static std::pair<uint32_t, double> BestSet(const Group& group) {
    std::pair<uint32_t, double> best = {0, 0.0};
    for (uint32_t set = 1; set < group.least.size(); ++set) {
      double saved = group.least[0] - group.least[set];
      for (size_t p = 0; p < group.players.size(); ++p) {
        if ((set >> p & 1U) != 0) saved -= group.price[p];
      }
      if (saved > best.second) best = {set, saved};
    }
    return best;
  }

  double PriceOf(int g, ir::ValueId root) const {
    const Group& group = groups_[At(g)];
    const auto it = std::find(group.players.begin(), group.players.end(), root);
    return it == group.players.end() ? 0
                                     : group.price[static_cast<size_t>(it - group.players.begin())];
  }

  // Each segment gains the price of the use at its end, if that is one, and its share of the
  // stores.
  void SetGains() {
    for (size_t i = 0; i < segments_.size();) {
      size_t end = i;
      while (end < segments_.size() && segments_[end].root == segments_[i].root) ++end;
      const ValueFlow& flow = flows_.at(segments_[i].root);
      double store = 0;
      for (const int g : flow.writers) store += PriceOf(g, segments_[i].root);
      const double share = store / static_cast<double>(end - i);
      for (; i < end; ++i) {
        const auto& readers = flow.readers;
        const bool reads = std::binary_search(readers.begin(), readers.end(), segments_[i].to);
        const double load = reads ? PriceOf(segments_[i].to, segments_[i].root) : 0;
        problem_.items[i].gains = {{segments_[i].to, load + share}};
      }
    }
  }

  // How much of each value is on chip at each group, by the flow.
  std::map<std::pair<int, ir::ValueId>, double> HeldAt(const std::vector<double>& share) const {
    std::map<std::pair<int, ir::ValueId>, double> held;
    for (size_t i = 0; i < segments_.size();) {
      size_t end = i;
      double sum = 0;
      for (; end < segments_.size() && segments_[end].root == segments_[i].root; ++end) {
        held[{segments_[end].to, segments_[end].root}] = share[end];
        sum += share[end];
      }
      for (const int g : flows_.at(segments_[i].root).writers) {
        held[{g, segments_[i].root}] = sum / static_cast<double>(end - i);
      }
      i = end;
    }
    return held;
  }

  // `reached`: what some choice saves. Steps are as long as Polyak has them.
  double MostSavings(double reached) {
    double least = std::numeric_limits<double>::infinity();
    const size_t size = nests_.size() + segments_.size() + 1;
    const int rounds = static_cast<int>(std::clamp<size_t>(kWork / (size * size), 1, kMostRounds));
    double stride = 1;
    for (int round = 0; round < rounds; ++round) {
      SetGains();
      const ResidencyBound flow = BoundResidency(problem_);
      double savings = flow.savings;
      const auto held = HeldAt(flow.held);
      double norm = 0;
      std::vector<std::vector<double>> slope(groups_.size());
      for (size_t g = 0; g < groups_.size(); ++g) {
        const auto [set, saved] = BestSet(groups_[g]);
        savings += saved;
        for (size_t p = 0; p < groups_[g].players.size(); ++p) {
          const auto it = held.find({static_cast<int>(g), groups_[g].players[p]});
          const double is_held = it == held.end() ? 0 : it->second;
          slope[g].push_back(is_held - ((set >> p & 1U) != 0 ? 1 : 0));
          norm += slope[g].back() * slope[g].back();
        }
      }
      stride = savings < least ? stride : stride * 0.8;
      least = std::min(least, savings);
      if (norm <= 0 || savings - reached < 0.5) break;
      for (size_t g = 0; g < groups_.size(); ++g) {
        for (size_t p = 0; p < groups_[g].players.size(); ++p) {
          double& price = groups_[g].price[p];
          price = std::max(0.0, price - stride * (savings - reached) / norm * slope[g][p]);
        }
      }
    }
    return least;
  }

  static constexpr int64_t kBudgetShare = 10;  // of a group's search goes to one bound
  static constexpr size_t kWork = 20'000'000;  // rounds times size squared
  static constexpr size_t kMostRounds = 100;
  const ir::Graph& graph_;
  const std::vector<ir::Nest>& nests_;
  const Schedule& schedule_;
  const machine::Target& target_;
  const ValueFlows flows_;
  const bool in_parts_;  // values need no room to speak of
  std::vector<Group> groups_;
  std::vector<Segment> segments_;  // by item of the problem; those of one value follow one another
  ResidencyProblem problem_;
  std::map<std::vector<int64_t>, std::optional<double>> known_;
};

}  // namespace

std::optional<int64_t> BoundCycles(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                                   const Schedule& schedule) {
  return Bounder(graph, nests, schedule).Run();
}

}  // namespace dla::scheduler
