#include "scheduler/traffic_bound.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "scheduler/cycle_bound.h"
#include "scheduler/predict.h"
#include "scheduler/residency_candidates.h"
#include "scheduler/residency_problem.h"
#include "scheduler/value_flow.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// One use of a value by a group, or its making.
struct Touch {
  int group = 0;
  int64_t bytes = 0;
  bool is_write = false;
};

class Bounder {
 public:
  explicit Bounder(const Schedule& schedule)
      : graph_(schedule.graph),
        schedule_(schedule),
        nests_(NestsOf(schedule)),
        flows_(FlowsOf(graph_, nests_)) {
    moved_.resize(nests_.size(), 0);
    for (size_t g = 0; g < nests_.size(); ++g) {
      const ir::Nest& nest = nests_[g];
      std::map<ir::ValueId, int64_t> read;  // a value that is read twice moves once at least
      for (int o = 0; o <= nest.output(); ++o) {
        const ir::ValueId root = RootOf(graph_, nest.operands[At(o)]);
        if (root == ir::kNoValue) continue;
        const int64_t bytes = TouchedBytes(nest, o);
        if (o == nest.output()) {
          moved_[g] += bytes;
          touches_[root].push_back({static_cast<int>(g), bytes, true});
        } else {
          read[root] = std::max(read[root], bytes);
        }
      }
      for (const auto& [root, bytes] : read) {
        moved_[g] += bytes;
        touches_[root].push_back({static_cast<int>(g), bytes, false});
      }
    }
  }

  TrafficBound Run(bool overlap) {
    TrafficBound bound;
    const ResidencyBound bytes = BoundResidency(ProblemOf(false));
    bound.compulsory_bytes = Compulsory();
    bound.dram_bytes = LeastBytes(bytes);
    bound.price = bytes.price;
    double alone = 0;
    if (schedule_.cascades.empty()) {
      for (size_t g = 0; g < nests_.size(); ++g) alone += std::max(Compute(g), Bus(moved_[g]));
      alone -= BoundResidency(ProblemOf(true)).savings;
    } else {
      // A few lines of a value do where the flow has all of it.
      bound.dram_bytes = bound.compulsory_bytes;
    }
    double compute = 0;
    for (size_t g = 0; g < nests_.size(); ++g) compute += Compute(g);
    const double cycles = std::max(compute, Bus(bound.dram_bytes));
    bound.cycles = static_cast<int64_t>(std::floor(cycles + 1e-3));
    bound.alone_cycles = static_cast<int64_t>(std::floor(std::max(alone, cycles) + 1e-3));
    if (const auto least = BoundCycles(graph_, nests_, schedule_)) {
      bound.alone_cycles = std::max(bound.alone_cycles, *least);
    }
    if (!overlap) bound.cycles = bound.alone_cycles;
    return bound;
  }

  BoundWithMore RunWithMore(int64_t more_bytes, ir::ValueId value) const {
    ResidencyProblem problem = ProblemOf(false);
    *std::max_element(problem.capacity_bytes.begin(), problem.capacity_bytes.end()) += more_bytes;
    const ResidencyBound bytes = BoundResidency(problem);
    BoundWithMore bound = {.dram_bytes = LeastBytes(bytes)};
    size_t item = 0;
    for (const auto& [root, touches] : touches_) {
      const size_t end = item + touches.size() - 1;
      if (root == value && item < end) {
        bound.held = *std::min_element(bytes.held.begin() + static_cast<int64_t>(item),
                                       bytes.held.begin() + static_cast<int64_t>(end));
      }
      item = end;
    }
    return bound;
  }

 private:
  int64_t LeastBytes(const ResidencyBound& bytes) const {
    double moved = 0;
    for (const int64_t m : moved_) moved += static_cast<double>(m);
    return std::max(static_cast<int64_t>(std::floor(moved - bytes.savings + 1e-3)), Compulsory());
  }

  // Bytes of the elements that the group touches of one operand, once each.
  static int64_t TouchedBytes(const ir::Nest& nest, int operand) {
    Mapping all_stay;
    all_stay.operands.assign(nest.operands.size(), {.resident = true});
    all_stay.operands[At(operand)].resident = false;
    return CompulsoryBytes(nest, all_stay);
  }

  double Bus(int64_t bytes) const {
    const machine::Rational rate = schedule_.target.dram.bytes_per_cycle;
    return static_cast<double>(bytes) * static_cast<double>(rate.denominator) /
           static_cast<double>(rate.numerator);
  }

  double Compute(size_t g) const {
    return static_cast<double>(
        ComputeCycles(nests_[g], schedule_.groups[g].mapping, schedule_.target));
  }

  // Inputs and constants that are read, and outputs, once each.
  int64_t Compulsory() const {
    int64_t bytes = 0;
    for (const auto& [root, touches] : touches_) {
      const ValueFlow& flow = flows_.at(root);
      int64_t most = 0;
      if (flow.is_graph_output) {
        for (const Touch& touch : touches) most += touch.is_write ? touch.bytes : 0;
      } else if (flow.writers.empty()) {
        for (const Touch& touch : touches) most = std::max(most, touch.bytes);
      }
      bytes += most;
    }
    return bytes;
  }

  // Segments between consecutive touches. The last one of each pair saves its load; a value whose
  // segments are all held is never stored: each segment gets its share of that.
  ResidencyProblem ProblemOf(bool in_cycles) const {
    ResidencyProblem problem = {.steps = static_cast<int>(nests_.size())};
    for (const machine::Memory& memory : schedule_.target.memories) {
      problem.capacity_bytes.push_back(memory.bytes);
    }
    std::vector<int> memories;
    for (size_t m = 0; m < schedule_.target.memories.size(); ++m) {
      memories.push_back(static_cast<int>(m));
    }
    for (const auto& [root, touches] : touches_) {
      const ValueFlow& flow = flows_.at(root);
      double store = 0;
      if (!flow.is_graph_output) {
        for (const Touch& touch : touches) {
          if (touch.is_write) store += Worth(touch, in_cycles);
        }
      }
      const double segments = static_cast<double>(touches.size()) - 1;
      int64_t bytes = 0;
      for (const Touch& touch : touches) bytes = std::max(bytes, touch.bytes);
      for (size_t i = 0; i + 1 < touches.size(); ++i) {
        const double load = touches[i + 1].is_write ? 0 : Worth(touches[i + 1], in_cycles);
        // The group that reads it last may put its output in its place.
        const int end = touches[i + 1].group;
        const bool ends = TakenOver(graph_, nests_, flows_, end) != root || end == touches[i].group;
        // Where two segments meet the value takes room once: the second one begins behind. One that
        // has no step of its own then takes next to none.
        const int end_step = ends ? end + 1 : end;
        const int first_step = touches[i].group + (i > 0 ? 1 : 0);
        const bool is_empty = first_step >= end_step;
        problem.items.push_back({.name = graph_.values[At(root)].name,
                                 .bytes = is_empty ? 1 : bytes,
                                 .first_step = is_empty ? end_step - 1 : first_step,
                                 .end_step = end_step,
                                 .memories = memories,
                                 .gains = {{touches[i + 1].group, load + store / segments}}});
      }
    }
    return problem;
  }

  // What the group saves at most when it need not move this.
  double Worth(const Touch& touch, bool in_cycles) const {
    if (!in_cycles) return static_cast<double>(touch.bytes);
    const size_t g = At(touch.group);
    return std::min(Bus(touch.bytes), std::max(0.0, Bus(moved_[g]) - Compute(g)));
  }

  const ir::Graph& graph_;
  const Schedule& schedule_;
  const std::vector<ir::Nest> nests_;
  const ValueFlows flows_;
  std::vector<int64_t> moved_;                         // by group: everything once
  std::map<ir::ValueId, std::vector<Touch>> touches_;  // by root, in order of the groups
};

}  // namespace

TrafficBound BoundTraffic(const Schedule& schedule, bool overlap) {
  return Bounder(schedule).Run(overlap);
}

BoundWithMore BoundTrafficWithMore(const Schedule& schedule, int64_t more_bytes,
                                   ir::ValueId value) {
  return Bounder(schedule).RunWithMore(more_bytes, value);
}

}  // namespace dla::scheduler
