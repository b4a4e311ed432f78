#include "scheduler/explain_residency.h"

#include <algorithm>
#include <numeric>

#include "scheduler/residency_candidates.h"
#include "scheduler/searcher.h"
#include "scheduler/traffic_bound.h"
#include "scheduler/transfers.h"
#include "scheduler/value_flow.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

class Explainer {
 public:
  explicit Explainer(const Schedule& schedule)
      : graph_(schedule.graph),
        schedule_(schedule),
        nests_(NestsOf(schedule)),
        flows_(FlowsOf(graph_, nests_)) {}

  // Of the value of that name, or of its slices.
  Result<std::string> Run(std::string_view name) const {
    std::string text;
    for (const ir::Value& value : graph_.values) {
      const bool is_slice = value.name.starts_with(Concat(name, " ["));
      if ((value.name != name && !is_slice) || flows_.count(value.storage.root) == 0) continue;
      text += Concat(text.empty() ? "" : "\n", Explain(value));
    }
    if (!text.empty()) return text;
    return Usage("no group makes or reads a value '", name, "'; it may be fused into one");
  }

 private:
  std::string Explain(const ir::Value& value) const {
    const ir::ValueId root = value.storage.root;
    std::string text = Concat("value '", value.name, "': ", RootBytes(graph_, root), " bytes");
    if (graph_.values[At(root)].name != value.name) {
      text += Concat(", part of '", graph_.values[At(root)].name, "'");
    }
    bool stays = false;
    for (const Resident& r : schedule_.residents) {  // parts of its life
      if (r.root != root) continue;
      text += Stays(r);
      stays = true;
    }
    return Concat(text, stays ? "" : "\n" + WhyNot(root), "\n", WithMore(root));
  }

  // What further steps of 64 KiB would give, by the bound; of cascades only the prices are known.
  std::string WithMore(ir::ValueId root) const {
    constexpr int64_t kMore = 64 * 1024;
    constexpr int kSteps = 4;
    if (!schedule_.cascades.empty()) {
      return Concat(kMore, " bytes more of scratchpad would save at most ",
                    static_cast<int64_t>(SavedByMore(schedule_, kMore)),
                    " DRAM bytes in all (by the bound's prices)\n");
    }
    std::string text;
    for (int step = 0; step <= kSteps; ++step) {
      const BoundWithMore bound = BoundTrafficWithMore(schedule_, step * kMore, root);
      text += Concat(step == 0 ? "as it is" : Concat("with ", step * kMore, " bytes more"),
                     ": any residency moves at least ", bound.dram_bytes,
                     " DRAM bytes; the bound holds ", static_cast<int>(100 * bound.held + 0.5),
                     "% of this value on chip\n");
    }
    return text;
  }

  const std::string& GroupName(int g) const { return schedule_.groups[At(g)].name; }

  std::string Stays(const Resident& r) const {
    return Concat("\nstays in '", schedule_.target.memories[At(r.memory)].name, "' at ", r.address,
                  " from group '", GroupName(r.first_group), "' to '", GroupName(r.end_group - 1),
                  "'", r.through.loaded ? ", loaded by the first group that reads it" : "",
                  r.through.stored ? ", and is stored as well" : "",
                  r.through.kept ? ", loaded in the first inference and kept for later ones" : "",
                  "; spares at least ", SparedBy(r), " bytes of transfers",
                  r.through.kept ? " of each later one" : "");
  }

  // One transfer for each group that finds it on chip or leaves it there.
  int64_t SparedBy(const Resident& r) const {
    int64_t bytes = 0;
    for (int g = r.first_group; g < r.end_group; ++g) {
      const ScheduledGroup& group = schedule_.groups[At(g)];
      const Mapping mapping = SteadyMapping(group.mapping);
      for (size_t o = 0; o < group.nest.operands.size(); ++o) {
        const ir::Operand& operand = group.nest.operands[o];
        if (RootOf(graph_, operand) != r.root) continue;
        if (StaysOnChip(mapping.operands[o])) bytes += DenseBytes(operand);
      }
    }
    return bytes;
  }

  // One transfer for each group that makes or reads it.
  int64_t Spared(ir::ValueId root) const {
    int64_t bytes = 0;
    for (const ScheduledGroup& group : schedule_.groups) {
      for (const ir::Operand& operand : group.nest.operands) {
        if (RootOf(graph_, operand) == root) bytes += DenseBytes(operand);
      }
    }
    return bytes;
  }

  std::string WhyNot(ir::ValueId root) const {
    const ValueFlow& flow = flows_.at(root);
    if (flow.writers.empty() && flow.readers.size() < 2) {
      return graph_.values[At(root)].constant != nullptr
                 ? "does not stay: a constant that one group reads"
                 : "does not stay: an input of the graph that one group reads";
    }
    if (flow.is_graph_output) return "does not stay: an output of the graph";
    if (flow.readers.empty()) return "does not stay: no group reads it";
    for (const auto* groups : {&flow.writers, &flow.readers}) {
      for (const int g : *groups) {
        if (schedule_.groups[At(g)].nest.anchor == ir::Anchor::kMove) {
          return Concat("does not stay: group '", GroupName(g), "' only moves data");
        }
      }
    }
    const auto largest = std::max_element(
        schedule_.target.memories.begin(), schedule_.target.memories.end(),
        [](const machine::Memory& a, const machine::Memory& b) { return a.bytes < b.bytes; });
    if (RootBytes(graph_, root) >= UsableBytes(*largest)) {
      return Concat("does not stay: larger than every scratchpad (the largest, '", largest->name,
                    "', has ", largest->bytes, " bytes)");
    }
    return Concat("does not stay: its room from group '", GroupName(FirstUse(flow)), "' to '",
                  GroupName(flow.readers.back()), "' is worth more to others; it would spare at ",
                  "least ", Spared(root), " bytes of transfers, its room costs ",
                  static_cast<int64_t>(RoomCost(root)), " by the bound's prices, and ",
                  Fullest(flow));
  }

  static int FirstUse(const ValueFlow& flow) {
    return flow.writers.empty() ? flow.readers.front() : flow.writers.front();
  }

  double RoomCost(ir::ValueId root) const {
    const ValueFlow& flow = flows_.at(root);
    double price = 0;
    for (int g = FirstUse(flow); g <= flow.readers.back(); ++g) {
      price += schedule_.residency.bound.price[At(g)];
    }
    return price * static_cast<double>(RootBytes(graph_, root));
  }

  std::string Fullest(const ValueFlow& flow) const {
    int64_t most = -1;
    int at = FirstUse(flow);
    for (int g = FirstUse(flow); g <= flow.readers.back(); ++g) {
      int64_t held = 0;
      for (const Resident& r : schedule_.residents) {
        if (r.first_group <= g && g < r.end_group) held += r.bytes;
      }
      if (held > most) most = held, at = g;
    }
    return Concat("others hold ", most, " bytes during '", GroupName(at), "'");
  }

  const ir::Graph& graph_;
  const Schedule& schedule_;
  std::vector<ir::Nest> nests_;
  ValueFlows flows_;
};

}  // namespace

Result<std::string> ExplainResidency(const Schedule& schedule, std::string_view value) {
  return Explainer(schedule).Run(value);
}

double SavedByMore(const Schedule& schedule, int64_t bytes) {
  const std::vector<double>& price = schedule.residency.bound.price;
  return std::accumulate(price.begin(), price.end(), 0.0) * static_cast<double>(bytes);
}

}  // namespace dla::scheduler
