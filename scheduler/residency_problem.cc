#include "scheduler/residency_problem.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

constexpr std::array<std::string_view, 6> kNames = {"none", "one-step", "onsram",
                                                    "best", "exact",    "infinite"};

double GainOf(const Holdable& item) {
  double gain = 0;
  for (const auto& step_gain : item.gains) gain += step_gain.second;
  return gain;
}

// Costs of steps, remembered.
class Costs {
 public:
  explicit Costs(const ResidencyProblem& problem) : problem_(problem), known_(At(problem.steps)) {}

  double operator()(int step, const std::vector<Held>& held) {
    const auto [it, is_new] = known_[At(step)].try_emplace(held, 0);
    if (is_new) {
      ++evaluations_;
      it->second = problem_.cost(step, held);
    }
    return it->second;
  }

  int64_t evaluations() const { return evaluations_; }

 private:
  const ResidencyProblem& problem_;
  std::vector<std::map<std::vector<Held>, double>> known_;
  int64_t evaluations_ = 0;
};

// A sweep over time. A state is what is held across a step; of equal ones the cheapest goes on.
class Sweep {
 public:
  Sweep(const ResidencyProblem& problem, const std::vector<bool>& may_hold, Costs* costs)
      : problem_(problem), costs_(*costs), starting_(At(problem.steps)) {
    for (size_t i = 0; i < problem.items.size(); ++i) {
      if (may_hold[i]) starting_[At(problem.items[i].first_step)].push_back(static_cast<int>(i));
    }
  }

  // At most `most` states go on after a step; `complete` tells whether none was dropped. With
  // `stop_when_full` the sweep gives up instead: nothing.
  std::optional<std::vector<int>> Run(size_t most, bool stop_when_full, bool* complete) {
    *complete = true;
    trail_.assign(1, {-1, {}});
    std::vector<State> states = {{.held = {}, .cost = 0, .promise = 0, .trail = 0}};
    for (int step = 0; step < problem_.steps; ++step) {
      for (const int item : starting_[At(step)]) {
        Expand(item, &states);
        if (!Limit(most, stop_when_full, &states, complete)) return std::nullopt;
      }
      std::map<std::vector<Held>, State> next;
      for (const State& state : states) Take(step, state, &next);
      states.clear();
      for (auto& entry : next) states.push_back(std::move(entry.second));
      if (states.empty() || !Limit(most, stop_when_full, &states, complete)) return std::nullopt;
    }
    const State& best =
        *std::min_element(states.begin(), states.end(),
                          [](const State& a, const State& b) { return a.cost < b.cost; });
    std::vector<int> memory(problem_.items.size(), -1);
    for (int at = best.trail; at > 0; at = trail_[At(at)].first) {
      memory[At(trail_[At(at)].second.item)] = trail_[At(at)].second.memory;
    }
    return memory;
  }

 private:
  struct State {
    std::vector<Held> held;  // in increasing order
    double cost = 0;
    double promise = 0;  // gains that the held items still have to come
    int trail = 0;       // the last choice that led here
  };

  // Adds the states in which the item is held, in each memory with room for it.
  void Expand(int i, std::vector<State>* states) {
    const Holdable& item = problem_.items[At(i)];
    const size_t count = states->size();
    for (size_t s = 0; s < count; ++s) {
      for (const int memory : item.memories) {
        int64_t used = item.bytes;
        for (const Held& held : (*states)[s].held) {
          if (held.memory == memory) used += problem_.items[At(held.item)].bytes;
        }
        if (used > problem_.capacity_bytes[At(memory)]) continue;
        State with = (*states)[s];
        with.held.insert(std::upper_bound(with.held.begin(), with.held.end(), Held{i, memory}),
                         {i, memory});
        with.promise += GainOf(item);
        trail_.push_back({with.trail, {i, memory}});
        with.trail = static_cast<int>(trail_.size()) - 1;
        states->push_back(std::move(with));
      }
    }
  }

  // False if there are more states than that and this ends the sweep.
  static bool Limit(size_t most, bool stop_when_full, std::vector<State>* states, bool* complete) {
    if (states->size() <= most) return true;
    *complete = false;
    if (!stop_when_full) Trim(most, states);
    return !stop_when_full;
  }

  void Take(int step, const State& state, std::map<std::vector<Held>, State>* next) {
    const double cost = costs_(step, state.held);
    if (cost == kImpossible) return;
    State after = state;
    after.cost += cost;
    for (const Held& held : state.held) {
      for (const auto& [at, gain] : problem_.items[At(held.item)].gains) {
        if (at == step) after.promise -= gain;
      }
    }
    std::erase_if(after.held, [&](const Held& held) {
      return problem_.items[At(held.item)].end_step <= step + 1;
    });
    const auto it = next->find(after.held);
    if (it == next->end()) {
      next->emplace(after.held, std::move(after));
    } else if (after.cost < it->second.cost) {
      it->second = std::move(after);
    }
  }

  // Keeps the state that holds nothing and those of the least cost less what they promise.
  static void Trim(size_t most, std::vector<State>* states) {
    std::stable_sort(states->begin(), states->end(), [](const State& a, const State& b) {
      if (a.held.empty() != b.held.empty()) return a.held.empty();
      return a.cost - a.promise < b.cost - b.promise;
    });
    states->resize(most);
  }

  const ResidencyProblem& problem_;
  Costs& costs_;
  std::vector<std::vector<int>> starting_;   // items by their first step
  std::vector<std::pair<int, Held>> trail_;  // the choice before, and the choice; 0: none
};

// A choice for all items and its cost, changed item by item.
class Assignment {
 public:
  Assignment(const ResidencyProblem& problem, Costs* costs)
      : problem_(problem),
        costs_(*costs),
        memory_(problem.items.size(), -1),
        held_(At(problem.steps)),
        step_cost_(At(problem.steps)) {
    for (int s = 0; s < problem.steps; ++s) step_cost_[At(s)] = costs_(s, {});
  }

  // What the whole would cost more (or, negative, less) with the item in that memory.
  double Change(int i, int memory) {
    const Holdable& item = problem_.items[At(i)];
    double change = 0;
    for (int s = item.first_step; s < item.end_step; ++s) {
      const std::vector<Held> held = With(s, i, memory);
      if (memory >= 0 && !Fits(held, memory)) return kImpossible;
      const double cost = costs_(s, held);
      if (cost == kImpossible) return kImpossible;
      change += cost - step_cost_[At(s)];
    }
    return change;
  }

  void Set(int i, int memory) {
    const Holdable& item = problem_.items[At(i)];
    for (int s = item.first_step; s < item.end_step; ++s) {
      held_[At(s)] = With(s, i, memory);
      step_cost_[At(s)] = costs_(s, held_[At(s)]);
    }
    memory_[At(i)] = memory;
  }

  double Cost() const { return std::accumulate(step_cost_.begin(), step_cost_.end(), 0.0); }
  const std::vector<int>& memory() const { return memory_; }
  const std::vector<Held>& HeldAt(int step) const { return held_[At(step)]; }

 private:
  std::vector<Held> With(int step, int i, int memory) const {
    std::vector<Held> held = held_[At(step)];
    std::erase_if(held, [&](const Held& h) { return h.item == i; });
    if (memory >= 0) {
      held.insert(std::upper_bound(held.begin(), held.end(), Held{i, memory}), {i, memory});
    }
    return held;
  }

  bool Fits(const std::vector<Held>& held, int memory) const {
    int64_t used = 0;
    for (const Held& h : held) {
      if (h.memory == memory) used += problem_.items[At(h.item)].bytes;
    }
    return used <= problem_.capacity_bytes[At(memory)];
  }

  const ResidencyProblem& problem_;
  Costs& costs_;
  std::vector<int> memory_;
  std::vector<std::vector<Held>> held_;  // by step
  std::vector<double> step_cost_;
};

// Size, liveness and significance: most saved for each byte and step first.
void FillGreedily(const ResidencyProblem& problem, Assignment* choice) {
  std::vector<int> order(problem.items.size());
  std::iota(order.begin(), order.end(), 0);
  const auto score = [&](int i) {
    const Holdable& item = problem.items[At(i)];
    const double room = static_cast<double>(std::max<int64_t>(item.bytes, 1)) *
                        static_cast<double>(item.end_step - item.first_step);
    return GainOf(item) / room;
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return score(a) > score(b); });
  for (const int i : order) {
    std::vector<int> memories = problem.items[At(i)].memories;
    std::stable_sort(memories.begin(), memories.end(), [&](int a, int b) {
      return problem.capacity_bytes[At(a)] < problem.capacity_bytes[At(b)];
    });
    for (const int memory : memories) {
      if (choice->Change(i, memory) == kImpossible) continue;
      choice->Set(i, memory);
      break;
    }
  }
}

// Moves one item at a time: into or out of a memory, or in with those that it pushes out (the ones
// that gain least for the room) until it fits. Stops when a whole pass improves nothing.
class LocalSearch {
 public:
  LocalSearch(const ResidencyProblem& problem, const std::vector<bool>& may_hold,
              Assignment* choice)
      : problem_(problem), may_hold_(may_hold), choice_(*choice) {}

  void Run(int rounds) {
    bool improved = true;
    for (int round = 0; round < rounds && improved; ++round) {
      improved = false;
      for (int i = 0; i < static_cast<int>(problem_.items.size()); ++i) {
        if (may_hold_[At(i)] && Move(i)) improved = true;
      }
    }
  }

 private:
  bool Move(int i) {
    int best = choice_.memory()[At(i)];
    const int before = best;
    double least = -1e-9;
    std::vector<int> options = problem_.items[At(i)].memories;
    options.push_back(-1);
    for (const int memory : options) {
      if (memory == before) continue;
      const double change = choice_.Change(i, memory);
      if (change < least) least = change, best = memory;
    }
    if (best != before) {
      choice_.Set(i, best);
      return true;
    }
    return before < 0 && Push(i);
  }

  bool Push(int i) {
    for (const int memory : problem_.items[At(i)].memories) {
      const double cost = choice_.Cost();
      std::vector<std::pair<int, int>> undo;
      double change = choice_.Change(i, memory);
      while (change == kImpossible && undo.size() < kMostPushed) {
        const int out = Weakest(i, memory);
        if (out < 0) break;
        undo.emplace_back(out, memory);
        choice_.Set(out, -1);
        change = choice_.Change(i, memory);
      }
      if (change != kImpossible) {
        choice_.Set(i, memory);
        for (const auto& entry : undo) Return(entry.first);
        if (choice_.Cost() < cost - 1e-9) return true;
        choice_.Set(i, -1);
        for (const auto& entry : undo) choice_.Set(entry.first, -1);
      }
      for (const auto& [item, place] : undo) choice_.Set(item, place);
    }
    return false;
  }

  // An item that was pushed out may find another memory.
  void Return(int i) {
    for (const int memory : problem_.items[At(i)].memories) {
      if (choice_.Change(i, memory) >= 0) continue;
      choice_.Set(i, memory);
      return;
    }
  }

  // Of those in the memory that live together with item i, the one with the least gain for its
  // room.
  int Weakest(int i, int memory) const {
    int weakest = -1;
    double least = kImpossible;
    const Holdable& item = problem_.items[At(i)];
    for (int s = item.first_step; s < item.end_step; ++s) {
      for (const Held& held : choice_.HeldAt(s)) {
        if (held.memory != memory || held.item == i) continue;
        const Holdable& other = problem_.items[At(held.item)];
        const double worth =
            GainOf(other) / (static_cast<double>(std::max<int64_t>(other.bytes, 1)) *
                             static_cast<double>(other.end_step - other.first_step));
        if (worth < least) least = worth, weakest = held.item;
      }
    }
    return weakest;
  }

  static constexpr size_t kMostPushed = 3;
  const ResidencyProblem& problem_;
  const std::vector<bool>& may_hold_;
  Assignment& choice_;
};

class Solver {
 public:
  Solver(const ResidencyProblem& problem, const ResidencyOptions& options)
      : problem_(problem), options_(options), costs_(problem) {}

  ResidencyResult Run() {
    for (int s = 0; s < problem_.steps; ++s) {
      const double cost = costs_(s, {});
      result_.cost_of_none += cost;
      if (cost == kImpossible && result_.failed_step < 0) result_.failed_step = s;
    }
    result_.memory.assign(problem_.items.size(), -1);
    result_.cost = result_.cost_of_none;
    if (result_.failed_step < 0) Improve();
    result_.evaluations = costs_.evaluations();
    return result_;
  }

 private:
  void Improve() {
    const std::vector<bool> all(problem_.items.size(), true);
    switch (options_.policy) {
      case ResidencyPolicy::kNone:
        return;
      case ResidencyPolicy::kOneStep:
        RunSweep(OneStep(), options_.states, false);
        return;
      case ResidencyPolicy::kOnsram:
        RunGreedy();
        return;
      case ResidencyPolicy::kExact:
        RunSweep(all, options_.exact_states, true);
        result_.complete = complete_;
        if (complete_) return;
        break;
      case ResidencyPolicy::kBest:
      case ResidencyPolicy::kInfinite:
        break;
    }
    RunSweep(OneStep(), options_.states, false);
    RunGreedy();
    RunSweep(all, options_.states, false);
    if (complete_) return;
    Assignment choice = Restore(result_.memory);
    LocalSearch(problem_, all, &choice).Run(options_.rounds);
    Accept(choice.memory(), choice.Cost());
  }

  std::vector<bool> OneStep() const {
    std::vector<bool> one_step;
    for (const Holdable& item : problem_.items) one_step.push_back(item.is_one_step);
    return one_step;
  }

  Assignment Restore(const std::vector<int>& memory) {
    Assignment choice(problem_, &costs_);
    for (size_t i = 0; i < memory.size(); ++i) {
      if (memory[i] >= 0) choice.Set(static_cast<int>(i), memory[i]);
    }
    return choice;
  }

  void RunSweep(const std::vector<bool>& may_hold, size_t most, bool stop_when_full) {
    const auto memory = Sweep(problem_, may_hold, &costs_).Run(most, stop_when_full, &complete_);
    if (memory) Accept(*memory, Restore(*memory).Cost());
  }

  void RunGreedy() {
    Assignment choice(problem_, &costs_);
    FillGreedily(problem_, &choice);
    Accept(choice.memory(), choice.Cost());
  }

  void Accept(const std::vector<int>& memory, double cost) {
    if (cost >= result_.cost) return;
    result_.memory = memory;
    result_.cost = cost;
  }

  const ResidencyProblem& problem_;
  const ResidencyOptions& options_;
  Costs costs_;
  ResidencyResult result_;
  bool complete_ = false;
};

}  // namespace

std::optional<ResidencyPolicy> ParseResidencyPolicy(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<ResidencyPolicy>(i);
  }
  return std::nullopt;
}

std::string_view ResidencyPolicyName(ResidencyPolicy policy) {
  return kNames[static_cast<size_t>(policy)];
}

ResidencyResult SolveResidency(const ResidencyProblem& problem, const ResidencyOptions& options) {
  return Solver(problem, options).Run();
}

}  // namespace dla::scheduler
