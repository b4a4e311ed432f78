#include "scheduler/residency.h"

#include <algorithm>
#include <limits>
#include <map>

#include "scheduler/predict.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

constexpr double kImpossible = std::numeric_limits<double>::infinity();

ir::ValueId RootOf(const ir::Graph& graph, const ir::Operand& operand) {
  if (operand.is_local) return ir::kNoValue;
  return graph.values[At(operand.value)].storage.root;
}

// Groups that write or read each root.
struct Flow {
  std::vector<size_t> writers, readers;
};

std::map<ir::ValueId, Flow> FlowsOf(const ir::Graph& graph, const std::vector<ir::Nest>& nests) {
  std::map<ir::ValueId, Flow> flows;
  for (size_t g = 0; g < nests.size(); ++g) {
    for (int o = 0; o <= nests[g].output(); ++o) {
      if (nests[g].operands[At(o)].is_local) continue;
      Flow& flow = flows[RootOf(graph, nests[g].operands[At(o)])];
      (o == nests[g].output() ? flow.writers : flow.readers).push_back(g);
    }
  }
  return flows;
}

bool IsGraphOutput(const ir::Graph& graph, ir::ValueId root) {
  return std::any_of(graph.outputs.begin(), graph.outputs.end(), [&](ir::ValueId v) {
    return v == root || graph.values[At(v)].storage.root == root;
  });
}

class Planner {
 public:
  Planner(const ir::Graph& graph, const std::vector<ir::Nest>& nests, const ResidencyRules& rules,
          Searcher* searcher)
      : graph_(graph), nests_(nests), rules_(rules), searcher_(*searcher) {
    const auto flows = FlowsOf(graph, nests);
    handed_over_.resize(nests.size(), ir::kNoValue);
    for (size_t g = 0; g + 1 < nests.size(); ++g) {
      const ir::ValueId root = RootOf(graph, nests[g].operands.back());
      const Flow& flow = flows.at(root);
      const bool only_next = std::all_of(flow.readers.begin(), flow.readers.end(),
                                         [&](size_t reader) { return reader == g + 1; });
      const bool moves =
          nests[g].anchor == ir::Anchor::kMove || nests[g + 1].anchor == ir::Anchor::kMove;
      if (flow.writers.size() == 1 && !flow.readers.empty() && only_next && !moves &&
          !IsGraphOutput(graph, root)) {
        handed_over_[g] = root;
      }
    }
  }

  Result<ResidencyPlan> Run(const std::function<void(size_t, size_t)>& progress) {
    DLA_RETURN_IF_ERROR(CheckGiven());
    // states[g]: choices for the result of group g; least[g][s]: cost of groups 0..g when it is s.
    std::vector<std::vector<int>> states(nests_.size());
    std::vector<std::vector<double>> least(nests_.size());
    std::vector<std::vector<size_t>> from(nests_.size());
    for (size_t g = 0; g < nests_.size(); ++g) {
      if (progress) progress(g, nests_.size());
      states[g] = Choices(g);
      const std::vector<int> before = g == 0 ? std::vector<int>{-1} : states[g - 1];
      for (const int after : states[g]) {
        double best = kImpossible;
        size_t best_from = 0;
        for (size_t s = 0; s < before.size(); ++s) {
          const double cost = (g == 0 ? 0 : least[g - 1][s]) + Cost(g, before[s], after);
          if (cost < best) best = cost, best_from = s;
        }
        least[g].push_back(best);
        from[g].push_back(best_from);
      }
      if (*std::min_element(least[g].begin(), least[g].end()) == kImpossible) {
        if (!given_fault_.ok()) return given_fault_;
        return DoesNotFit("node '", graph_.nodes[g].name, "'");
      }
    }
    if (progress) progress(nests_.size(), nests_.size());
    return TraceBack(states, least, from);
  }

 private:
  // Every given group and value exists, and each value can stay where it is said to.
  Status CheckGiven() const {
    if (rules_.given == nullptr) return Status();
    for (const auto& given : rules_.given->groups) {
      const std::string& name = given.first;  // not a structured binding: Clang 14 captures none
      const bool known = std::any_of(graph_.nodes.begin(), graph_.nodes.end(),
                                     [&](const ir::Node& node) { return node.name == name; });
      if (!known) return Usage("group '", name, "': the model has no group of that name");
    }
    if (!rules_.given->values) return Status();
    for (const auto& [name, memory] : *rules_.given->values) {
      const int m = searcher_.target().MemoryIndex(memory);
      if (m < 0) return Usage("value '", name, "': there is no scratchpad '", memory, "'");
      bool can_stay = false;
      for (size_t g = 0; g < nests_.size(); ++g) {
        if (handed_over_[g] == ir::kNoValue || NameOf(handed_over_[g]) != name) continue;
        const std::vector<int> choices = AllChoices(g);
        can_stay = std::find(choices.begin(), choices.end(), m) != choices.end();
      }
      if (!can_stay) {
        return Usage(
            "value '", name, "' cannot stay in '", memory,
            "': only a value that one group makes and only the next one uses can stay, in ",
            "a scratchpad that holds its classes and is large enough");
      }
    }
    return Status();
  }

  const std::string& NameOf(ir::ValueId value) const { return graph_.values[At(value)].name; }

  // The choices for the result of group g: -1, or a scratchpad in which it stays.
  std::vector<int> Choices(size_t g) const {
    if (rules_.forbidden.count(static_cast<int>(g)) != 0) return {-1};
    if (rules_.given == nullptr || !rules_.given->values) return AllChoices(g);
    if (handed_over_[g] == ir::kNoValue) return {-1};
    const auto it = rules_.given->values->find(NameOf(handed_over_[g]));
    if (it == rules_.given->values->end()) return {-1};
    return {searcher_.target().MemoryIndex(it->second)};
  }

  std::vector<int> AllChoices(size_t g) const {
    std::vector<int> choices = {-1};
    const ir::ValueId root = handed_over_[g];
    if (root == ir::kNoValue) return choices;
    const auto& memories = searcher_.target().memories;
    for (size_t m = 0; m < memories.size(); ++m) {
      bool holds = memories[m].Holds(nests_[g].operands.back().cls);
      for (int o = 0; o < nests_[g + 1].output(); ++o) {
        const ir::Operand& operand = nests_[g + 1].operands[At(o)];
        if (RootOf(graph_, operand) == root) holds = holds && Reaches(m, operand.cls);
      }
      if (holds && Reserved(root, m) < UsableBytes(memories[m])) {
        choices.push_back(static_cast<int>(m));
      }
    }
    return choices;
  }

  // Can an operand of this class use a value that stays in the memory, in place or over a link?
  bool Reaches(size_t from, OperandClass cls) const {
    const machine::Target& target = searcher_.target();
    if (target.memories[from].Holds(cls)) return true;
    for (size_t to = 0; to < target.memories.size(); ++to) {
      if (target.memories[to].Holds(cls) &&
          target.FindLink(static_cast<int>(from), static_cast<int>(to)) != nullptr) {
        return true;
      }
    }
    return false;
  }

  int64_t Reserved(ir::ValueId root, size_t memory) const {
    return RoundUp(RootBytes(graph_, root), searcher_.target().memories[memory].align_bytes);
  }

  const SearchResult* Mapped(size_t g, int before, int after) {
    const ir::Nest& nest = nests_[g];
    std::vector<int> resident_in(nest.operands.size(), -1);
    std::vector<int64_t> reserved(searcher_.target().memories.size(), 0);
    if (before >= 0) {
      const ir::ValueId root = handed_over_[g - 1];
      reserved[At(before)] += Reserved(root, At(before));
      for (int o = 0; o < nest.output(); ++o) {
        if (RootOf(graph_, nest.operands[At(o)]) == root) resident_in[At(o)] = before;
      }
    }
    if (after >= 0) {
      reserved[At(after)] += Reserved(handed_over_[g], At(after));
      resident_in[At(nest.output())] = after;
    }
    const GivenMapping* given = GivenFor(g);
    if (given != nullptr) return Resolve(*given, g, resident_in, reserved);
    return searcher_.Find(nest, resident_in, reserved);
  }

  const GivenMapping* GivenFor(size_t g) const {
    if (rules_.given == nullptr) return nullptr;
    const auto it = rules_.given->groups.find(graph_.nodes[g].name);
    return it == rules_.given->groups.end() ? nullptr : &it->second;
  }

  // The given mapping with these residents; null (and a fault) if it is illegal.
  const SearchResult* Resolve(const GivenMapping& given, size_t g,
                              const std::vector<int>& resident_in,
                              const std::vector<int64_t>& reserved) {
    const std::string where = "group '" + graph_.nodes[g].name + "'";
    const Result<Mapping> mapping = ResolveMapping(given, nests_[g], searcher_.target(), reserved);
    if (!mapping.ok()) {
      given_fault_ = mapping.status().At(where);
      return nullptr;
    }
    for (size_t o = 0; o < resident_in.size(); ++o) {
      const OperandPlace& place = mapping->operands[o];
      if ((place.resident ? place.memory : place.source) != resident_in[o]) {
        given_fault_ = Usage(where, ": operands[", o, "] is ", StaysOnChip(place) ? "" : "not ",
                             "resident, which does not agree with 'values'");
        return nullptr;
      }
    }
    return searcher_.Keep(nests_[g], *mapping);
  }

  // The objective as one number that adds up over groups. `balanced` trades 5 % of the cycles that
  // the bytes take on the bus.
  double Cost(size_t g, int before, int after) {
    const SearchResult* result = Mapped(g, before, after);
    if (result == nullptr) return kImpossible;
    const machine::Counters& c = result->predicted;
    const double cycles = static_cast<double>(c.cycles);
    const double bytes = static_cast<double>(c.dram_bus_bytes());
    const machine::Target& target = searcher_.target();
    const double energy = EnergyPj(c, target, nests_[g].operands[0].ReadType());
    switch (searcher_.objective()) {
      case Objective::kLatency:
        return cycles + 1e-6 * bytes;
      case Objective::kTraffic:
        return bytes + 1e-6 * cycles;
      case Objective::kEnergy:
      case Objective::kEdp:
        return energy + 1e-6 * cycles;
      case Objective::kBalanced:
        break;
    }
    const machine::Rational rate = target.dram.bytes_per_cycle;
    return cycles + 0.05 * bytes * static_cast<double>(rate.denominator) /
                        static_cast<double>(rate.numerator);
  }

  ResidencyPlan TraceBack(const std::vector<std::vector<int>>& states,
                          const std::vector<std::vector<double>>& least,
                          const std::vector<std::vector<size_t>>& from) {
    ResidencyPlan plan;
    plan.result_in.resize(nests_.size(), -1);
    plan.mappings.resize(nests_.size(), nullptr);
    plan.handed_over = handed_over_;
    size_t s = 0;
    for (size_t g = nests_.size(); g-- > 0;) {
      if (g + 1 == nests_.size()) {
        s = static_cast<size_t>(std::min_element(least[g].begin(), least[g].end()) -
                                least[g].begin());
      }
      plan.result_in[g] = states[g][s];
      const size_t previous = from[g][s];
      const int before = g == 0 ? -1 : states[g - 1][previous];
      plan.mappings[g] = Mapped(g, before, states[g][s]);
      s = previous;
    }
    return plan;
  }

  const ir::Graph& graph_;
  const std::vector<ir::Nest>& nests_;
  const ResidencyRules& rules_;
  Searcher& searcher_;
  std::vector<ir::ValueId> handed_over_;
  Status given_fault_;
};

}  // namespace

int64_t RootBytes(const ir::Graph& graph, ir::ValueId root) {
  const ir::Value& value = graph.values[At(root)];
  return TypeBytes(value.type, ir::ElementCount(value.shape));
}

Result<ResidencyPlan> PlanResidency(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                                    const ResidencyRules& rules, Searcher* searcher,
                                    const std::function<void(size_t, size_t)>& progress) {
  return Planner(graph, nests, rules, searcher).Run(progress);
}

}  // namespace dla::scheduler
