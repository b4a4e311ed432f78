// The flow bound of residency_problem.h.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "scheduler/residency_problem.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

struct Arc {
  int from = 0;
  int to = 0;
  double room = 0;  // units that still pass
  double gain = 0;  // of one unit
};

// Flow along the line of steps, which is a graph without circles at first; taking units back makes
// arcs backwards, so longest paths are found by sweeps until nothing changes (Bellman and Ford).
class Flow {
 public:
  explicit Flow(int steps) : steps_(steps), out_(At(steps) + 1) {}

  // The arc's number.
  size_t Add(int from, int to, double room, double gain) {
    const size_t arc = arcs_.size();
    out_[At(from)].push_back(arcs_.size());
    arcs_.push_back({from, to, room, gain});
    least_ += kRounding * std::abs(gain);
    out_[At(to)].push_back(arcs_.size());
    arcs_.push_back({to, from, 0, -gain});
    return arc;
  }

  double Through(size_t arc) const { return arcs_[arc ^ 1U].room; }

  // Pushes `units` along ever less gainful paths while they gain anything.
  void Push(double units, int most_paths) {
    for (int path = 0; path < most_paths && units > 0; ++path) {
      Longest();
      if (distance_[At(steps_)] <= least_ || !IsPath()) return;
      double push = units;
      for (int node = steps_; node != 0; node = arcs_[via_[At(node)]].from) {
        push = std::min(push, arcs_[via_[At(node)]].room);
      }
      for (int node = steps_; node != 0; node = arcs_[via_[At(node)]].from) {
        arcs_[via_[At(node)]].room -= push;
        arcs_[via_[At(node)] ^ 1U].room += push;
      }
      units -= push;
    }
    Longest();
  }

  // What a unit gains between the ends of a step: the fall of the potential.
  std::vector<double> Prices() const {
    std::vector<double> prices;
    for (int s = 0; s < steps_; ++s) {
      prices.push_back(std::max(0.0, distance_[At(s) + 1] - distance_[At(s)]));
    }
    return prices;
  }

 private:
  // Differences of sums below this share of all gains are rounding: around a circle they would add
  // up to a gain.
  static constexpr double kRounding = 1e-12;

  // Do the arcs lead back to the first step? Not where rounding made a circle after all; what has
  // been pushed so far then stands (prices of any flow are a bound).
  bool IsPath() const {
    int node = steps_;
    for (int arcs = 0; node != 0 && arcs <= steps_; ++arcs) node = arcs_[via_[At(node)]].from;
    return node == 0;
  }

  void Longest() {
    distance_.assign(At(steps_) + 1, -1e300);
    via_.assign(At(steps_) + 1, 0);
    distance_[0] = 0;
    std::vector<bool> waits(At(steps_) + 1, false);
    waits[0] = true;
    for (int sweep = 0; sweep <= steps_; ++sweep) {
      bool changed = false;
      for (int node = 0; node <= steps_; ++node) {
        if (!waits[At(node)]) continue;
        waits[At(node)] = false;
        for (const size_t a : out_[At(node)]) {
          const Arc& arc = arcs_[a];
          const double reached = distance_[At(node)] + arc.gain;
          if (arc.room <= 0 || reached <= distance_[At(arc.to)] + least_) continue;
          distance_[At(arc.to)] = reached;
          via_[At(arc.to)] = a;
          waits[At(arc.to)] = true;
          changed = true;
        }
      }
      if (!changed) return;
    }
  }

  const int steps_;
  std::vector<Arc> arcs_;  // arc a and its reverse a ^ 1
  std::vector<std::vector<size_t>> out_;
  double least_ = 0;  // that counts as a gain
  std::vector<double> distance_;
  std::vector<size_t> via_;
};

}  // namespace

ResidencyBound BoundResidency(const ResidencyProblem& problem, int most_paths) {
  const double capacity = static_cast<double>(
      std::accumulate(problem.capacity_bytes.begin(), problem.capacity_bytes.end(), int64_t{0}));
  Flow flow(problem.steps);
  for (int s = 0; s < problem.steps; ++s) flow.Add(s, s + 1, capacity, 0);
  const auto can_stay = [&](const Holdable& item) {
    return std::any_of(item.memories.begin(), item.memories.end(),
                       [&](int m) { return item.bytes <= problem.capacity_bytes[At(m)]; });
  };
  const auto gain_of = [](const Holdable& item) {
    double gain = 0;
    for (const auto& step_gain : item.gains) gain += step_gain.second;
    return gain;
  };
  // Where another may take its place, an item's last step is left out.
  std::vector<int> end_step;
  for (const Holdable& item : problem.items) end_step.push_back(item.end_step);
  for (const Holdable& item : problem.items) {
    if (item.over >= 0) --end_step[At(item.over)];
  }
  std::vector<std::optional<size_t>> arcs(problem.items.size());
  for (size_t i = 0; i < arcs.size(); ++i) {
    const Holdable& item = problem.items[i];
    if (!can_stay(item) || gain_of(item) <= 0 || item.bytes <= 0) continue;
    const double bytes = static_cast<double>(item.bytes);
    arcs[i] = flow.Add(item.first_step, end_step[i], bytes, gain_of(item) / bytes);
  }
  flow.Push(capacity, most_paths);
  ResidencyBound bound = {.price = flow.Prices()};
  for (size_t i = 0; i < arcs.size(); ++i) {
    const double bytes = static_cast<double>(problem.items[i].bytes);
    bound.held.push_back(arcs[i] ? flow.Through(*arcs[i]) / bytes : 0);
  }
  for (const double price : bound.price) bound.savings += price * capacity;
  for (size_t i = 0; i < arcs.size(); ++i) {
    const Holdable& item = problem.items[i];
    if (!can_stay(item)) continue;
    double worth = gain_of(item);
    for (int s = item.first_step; s < end_step[i]; ++s) {
      worth -= bound.price[At(s)] * static_cast<double>(item.bytes);
    }
    bound.savings += std::max(0.0, worth);
  }
  return bound;
}

}  // namespace dla::scheduler
