#include "scheduler/residency_problem.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>

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

// A problem with what the solvers look up again and again.
class Problem {
 public:
  explicit Problem(const ResidencyProblem& problem)
      : problem_(problem),
        under_(problem.items.size(), -1),
        touching_(At(problem.steps)),
        known_(At(problem.steps)) {
    for (int i = 0; i < size(); ++i) {
      if (item(i).over >= 0) under_[At(item(i).over)] = i;
      gain_.push_back(GainOf(item(i)));
      longest_ = std::max(longest_, item(i).end_step - item(i).first_step);
      by_start_.push_back(i);
      for (const auto& [step, gain] : item(i).gains) touching_[At(step)].emplace_back(i, gain);
    }
    std::stable_sort(by_start_.begin(), by_start_.end(),
                     [&](int a, int b) { return item(a).first_step < item(b).first_step; });
  }

  int steps() const { return problem_.steps; }
  int size() const { return static_cast<int>(problem_.items.size()); }
  const Holdable& item(int i) const { return problem_.items[At(i)]; }
  double gain(int i) const { return gain_[At(i)]; }
  // The item that may take the place of this one, or -1.
  int under(int i) const { return under_[At(i)]; }
  int64_t capacity(int memory) const { return problem_.capacity_bytes[At(memory)]; }
  size_t memories() const { return problem_.capacity_bytes.size(); }
  // Items that the step touches, and what they gain there.
  const std::vector<std::pair<int, double>>& touching(int step) const {
    return touching_[At(step)];
  }

  // Gain for each byte and step.
  double Worth(int i) const {
    const double room = static_cast<double>(std::max<int64_t>(item(i).bytes, 1)) *
                        static_cast<double>(item(i).end_step - item(i).first_step);
    return gain(i) / room;
  }

  // Calls f(item) for all items that live during one of these steps.
  template <typename F>
  void ForEachAlive(int first_step, int end_step, const F& f) const {
    auto it = std::partition_point(by_start_.begin(), by_start_.end(), [&](int i) {
      return item(i).first_step + longest_ <= first_step;
    });
    for (; it != by_start_.end() && item(*it).first_step < end_step; ++it) {
      if (item(*it).end_step > first_step) f(*it);
    }
  }

  double Cost(int step, const std::vector<Held>& touched, const std::vector<int64_t>& bytes) {
    ++asked_;
    auto& known = known_[At(step)];
    const auto it = known.find(std::tie(bytes, touched));
    if (it != known.end()) return it->second;
    ++evaluations_;
    const double cost = problem_.cost(step, {touched, bytes});
    known.emplace(Key{bytes, touched}, cost);
    return cost;
  }

  int64_t evaluations() const { return evaluations_; }
  int64_t asked() const { return asked_; }  // evaluated or remembered

 private:
  const ResidencyProblem& problem_;
  std::vector<double> gain_;
  std::vector<int> under_;
  std::vector<int> by_start_;
  int longest_ = 0;  // life of an item, in steps
  std::vector<std::vector<std::pair<int, double>>> touching_;
  using Key = std::tuple<std::vector<int64_t>, std::vector<Held>>;
  struct Less {  // looks keys up that are not copied
    using is_transparent = void;
    template <typename A, typename B>
    bool operator()(const A& a, const B& b) const {
      return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
    }
  };
  std::vector<std::map<Key, double, Less>> known_;
  int64_t evaluations_ = 0, asked_ = 0;
};

void Insert(Held held, std::vector<Held>* into) {
  into->insert(std::upper_bound(into->begin(), into->end(), held), held);
}

// A sweep over time. A state is what is held across a step; of equal ones the cheapest goes on.
class Sweep {
 public:
  Sweep(Problem* problem, const std::vector<bool>& may_hold)
      : problem_(*problem), starting_(At(problem->steps())) {
    for (int i = 0; i < problem_.size(); ++i) {
      if (may_hold[At(i)]) starting_[At(problem_.item(i).first_step)].push_back(i);
    }
  }

  // At most `most` states go on after a step; `complete` tells whether none was dropped. With
  // `stop_when_full` the sweep gives up instead: nothing.
  std::optional<std::vector<int>> Run(size_t most, bool stop_when_full, bool* complete) {
    *complete = true;
    trail_.assign(1, {-1, {}});
    std::vector<State> states = {
        {.held = {}, .bytes = std::vector<int64_t>(problem_.memories(), 0)}};
    for (int step = 0; step < problem_.steps(); ++step) {
      for (const int item : starting_[At(step)]) {
        Expand(item, &states);
        if (!Limit(most, stop_when_full, &states, complete)) return std::nullopt;
      }
      std::map<std::vector<Held>, State> next;
      for (State& state : states) Take(step, std::move(state), &next);
      states.clear();
      for (auto& entry : next) states.push_back(std::move(entry.second));
      if (states.empty() || !Limit(most, stop_when_full, &states, complete)) return std::nullopt;
    }
    const State& best =
        *std::min_element(states.begin(), states.end(),
                          [](const State& a, const State& b) { return a.cost < b.cost; });
    std::vector<int> memory(At(problem_.size()), -1);
    for (int at = best.trail; at > 0; at = trail_[At(at)].first) {
      memory[At(trail_[At(at)].second.item)] = trail_[At(at)].second.memory;
    }
    return memory;
  }

 private:
  struct State {
    std::vector<Held> held;      // in increasing order
    std::vector<int64_t> bytes;  // taken, by memory
    double cost = 0;
    double promise = 0;  // gains that the held items still have to come
    int trail = 0;       // the last choice that led here
  };

  // Adds the states in which the item is held, in each memory with room for it.
  void Expand(int i, std::vector<State>* states) {
    const Holdable& item = problem_.item(i);
    const size_t count = states->size();
    for (size_t s = 0; s < count; ++s) {
      for (const int memory : item.memories) {
        const int64_t bytes = IsHeld({item.over, memory}, (*states)[s]) ? 0 : item.bytes;
        if ((*states)[s].bytes[At(memory)] + bytes > problem_.capacity(memory)) continue;
        State with = (*states)[s];
        Insert({i, memory}, &with.held);
        with.bytes[At(memory)] += bytes;
        with.promise += problem_.gain(i);
        trail_.push_back({with.trail, {i, memory}});
        with.trail = static_cast<int>(trail_.size()) - 1;
        states->push_back(std::move(with));
      }
    }
  }

  static bool IsHeld(Held held, const State& state) {
    return std::binary_search(state.held.begin(), state.held.end(), held);
  }

  // False if there are more states than that and this ends the sweep.
  static bool Limit(size_t most, bool stop_when_full, std::vector<State>* states, bool* complete) {
    if (states->size() <= most) return true;
    *complete = false;
    if (!stop_when_full) Trim(most, states);
    return !stop_when_full;
  }

  void Take(int step, State state, std::map<std::vector<Held>, State>* next) {
    std::vector<Held> touched;
    for (const auto& [item, gain] : problem_.touching(step)) {
      const auto it = std::lower_bound(state.held.begin(), state.held.end(), Held{item, 0});
      if (it == state.held.end() || it->item != item) continue;
      touched.push_back(*it);
      state.promise -= gain;
    }
    const double cost = problem_.Cost(step, touched, state.bytes);
    if (cost == kImpossible) return;
    state.cost += cost;
    const auto ends = [&](Held held) { return problem_.item(held.item).end_step <= step + 1; };
    for (const Held& held : state.held) {
      // What took its place goes on in it.
      if (!ends(held) || IsHeld({problem_.under(held.item), held.memory}, state)) continue;
      state.bytes[At(held.memory)] -= problem_.item(held.item).bytes;
    }
    std::erase_if(state.held, ends);
    const auto it = next->find(state.held);
    if (it == next->end()) {
      std::vector<Held> key = state.held;
      next->emplace(std::move(key), std::move(state));
    } else if (state.cost < it->second.cost) {
      it->second = std::move(state);
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

  Problem& problem_;
  std::vector<std::vector<int>> starting_;   // items by their first step
  std::vector<std::pair<int, Held>> trail_;  // the choice before, and the choice; 0: none
};

// A choice for all items and its cost, changed item by item.
class Assignment {
 public:
  Assignment(Problem* problem, const std::vector<int>& memory)
      : problem_(*problem),
        memory_(At(problem->size()), -1),
        bytes_(At(problem->steps()), std::vector<int64_t>(problem->memories(), 0)),
        touched_(At(problem->steps())) {
    for (int i = 0; i < problem_.size(); ++i) Move(i, memory[At(i)], [](int) { return false; });
    for (int s = 0; s < problem_.steps(); ++s) step_cost_.push_back(CostAt(s));
  }

  // What the whole would cost more (or, negative, less) with the item in that memory.
  double Change(int i, int memory) {
    const int before = memory_[At(i)];
    if (memory >= 0 && memory != before && !HasRoom(i, memory)) return kImpossible;
    double change = 0;
    Move(i, memory, [&](int s) {
      const double cost = CostAt(s);
      change = cost == kImpossible ? kImpossible : change + cost - step_cost_[At(s)];
      return change != kImpossible;
    });
    Move(i, before, [](int) { return false; });
    return change;
  }

  void Set(int i, int memory) {
    Move(i, memory, [&](int s) {
      step_cost_[At(s)] = CostAt(s);
      return true;
    });
  }

  double Cost() const { return std::accumulate(step_cost_.begin(), step_cost_.end(), 0.0); }
  const std::vector<int>& memory() const { return memory_; }

 private:
  double CostAt(int s) { return problem_.Cost(s, touched_[At(s)], bytes_[At(s)]); }

  bool HasRoom(int i, int memory) const {
    const Holdable& item = problem_.item(i);
    const int under = problem_.under(i);
    const int first = IsIn(item.over, memory) ? item.first_step + 1 : item.first_step;
    const int end = IsIn(under, memory) ? item.end_step - 1 : item.end_step;
    for (int s = first; s < end; ++s) {
      if (bytes_[At(s)][At(memory)] + item.bytes > problem_.capacity(memory)) return false;
    }
    return true;
  }

  bool IsIn(int i, int memory) const { return i >= 0 && memory_[At(i)] == memory; }

  // Counts the room that item i takes `sign` times: all but the step in which it takes another's
  // place, or another its.
  void CountRoom(int i, int64_t sign) {
    const int memory = memory_[At(i)];
    if (memory < 0) return;
    const Holdable& item = problem_.item(i);
    const int first = IsIn(item.over, memory) ? item.first_step + 1 : item.first_step;
    const int end = IsIn(problem_.under(i), memory) ? item.end_step - 1 : item.end_step;
    for (int s = first; s < end; ++s) bytes_[At(s)][At(memory)] += sign * item.bytes;
  }

  // Moves the item and looks at each of its steps until f(step) is false.
  template <typename F>
  void Move(int i, int memory, const F& f) {
    const Holdable& item = problem_.item(i);
    CountRoom(i, -1);
    memory_[At(i)] = memory;
    CountRoom(i, 1);
    for (const auto& step_gain : item.gains) {
      std::vector<Held>& touched = touched_[At(step_gain.first)];
      std::erase_if(touched, [&](const Held& h) { return h.item == i; });
      if (memory >= 0) Insert({i, memory}, &touched);
    }
    for (int s = item.first_step; s < item.end_step && f(s); ++s) continue;
  }

  Problem& problem_;
  std::vector<int> memory_;
  std::vector<std::vector<int64_t>> bytes_;  // held, by step and memory
  std::vector<std::vector<Held>> touched_;   // by step
  std::vector<double> step_cost_;
};

// Size, liveness and significance: most saved for each byte and step first.
void FillGreedily(const Problem& problem, const std::vector<bool>& may_hold, Assignment* choice) {
  std::vector<int> order;
  for (int i = 0; i < problem.size(); ++i) {
    if (may_hold[At(i)]) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return problem.Worth(a) > problem.Worth(b); });
  for (const int i : order) {
    std::vector<int> memories = problem.item(i).memories;
    std::stable_sort(memories.begin(), memories.end(),
                     [&](int a, int b) { return problem.capacity(a) < problem.capacity(b); });
    for (const int memory : memories) {
      if (choice->Change(i, memory) == kImpossible) continue;
      choice->Set(i, memory);
      break;
    }
  }
}

// Moves one item at a time: into or out of a memory, or in with those that it pushes out (the ones
// that gain least for the room) until it fits. Stops when a whole pass improves nothing, or after
// many looks.
class LocalSearch {
 public:
  LocalSearch(const Problem& problem, const std::vector<bool>& may_hold, Assignment* choice)
      : problem_(problem), may_hold_(may_hold), choice_(*choice) {}

  void Run(int rounds) {
    const int64_t most = problem_.asked() + kMostAsked;
    bool improved = true;
    for (int round = 0; round < rounds && improved; ++round) {
      improved = false;
      for (int i = 0; i < problem_.size(); ++i) {
        if (problem_.asked() > most) return;
        if (may_hold_[At(i)] && Move(i)) improved = true;
      }
    }
  }

 private:
  bool Move(int i) {
    int best = choice_.memory()[At(i)];
    const int before = best;
    double least = -1e-9;
    std::vector<int> options = problem_.item(i).memories;
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
    for (const int memory : problem_.item(i).memories) {
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
    for (const int memory : problem_.item(i).memories) {
      if (choice_.Change(i, memory) >= 0) continue;
      choice_.Set(i, memory);
      return;
    }
  }

  // Of those in the memory that live together with item i, the one with the least gain for its
  // room; of equals the one that meets it first. -1: there is none.
  int Weakest(int i, int memory) const {
    const Holdable& item = problem_.item(i);
    int weakest = -1;
    std::tuple<double, int, int> least;
    problem_.ForEachAlive(item.first_step, item.end_step, [&](int other) {
      if (other == i || choice_.memory()[At(other)] != memory) return;
      const int meets = std::max(problem_.item(other).first_step, item.first_step);
      const std::tuple key(problem_.Worth(other), meets, other);
      if (weakest < 0 || key < least) least = key, weakest = other;
    });
    return weakest;
  }

  static constexpr size_t kMostPushed = 3;
  // Steps whose cost is asked for: where lives are long (weights that thousands of groups share),
  // a pass over all items would look at them too often.
  static constexpr int64_t kMostAsked = 1'000'000;
  const Problem& problem_;
  const std::vector<bool>& may_hold_;
  Assignment& choice_;
};

class Solver {
 public:
  Solver(const ResidencyProblem& problem, const ResidencyOptions& options)
      : options_(options), problem_(problem) {}

  ResidencyResult Run() {
    const std::vector<int64_t> nothing(problem_.memories(), 0);
    for (int s = 0; s < problem_.steps(); ++s) {
      const double cost = problem_.Cost(s, {}, nothing);
      result_.cost_of_none += cost;
      if (cost == kImpossible && result_.failed_step < 0) result_.failed_step = s;
    }
    result_.memory.assign(At(problem_.size()), -1);
    result_.cost = result_.cost_of_none;
    if (result_.failed_step < 0) Improve();
    result_.evaluations = problem_.evaluations();
    return result_;
  }

 private:
  void Improve() {
    const std::vector<bool> all(At(problem_.size()), true);
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
    const std::vector<bool> plain = Plain();
    SweepAndSearch(plain);
    if (plain != all) SweepAndSearch(all);
  }

  void SweepAndSearch(const std::vector<bool>& may_hold) {
    RunSweep(may_hold, options_.states, false);
    if (complete_) return;
    Assignment choice(&problem_, result_.memory);
    LocalSearch(problem_, may_hold, &choice).Run(options_.rounds);
    Accept(choice.memory(), choice.Cost());
  }

  std::vector<bool> Plain() const {
    std::vector<bool> plain;
    for (int i = 0; i < problem_.size(); ++i) plain.push_back(!problem_.item(i).is_extra);
    return plain;
  }

  std::vector<bool> OneStep() const {
    std::vector<bool> one_step;
    for (int i = 0; i < problem_.size(); ++i) one_step.push_back(problem_.item(i).is_one_step);
    return one_step;
  }

  void RunSweep(const std::vector<bool>& may_hold, size_t most, bool stop_when_full) {
    const auto memory = Sweep(&problem_, may_hold).Run(most, stop_when_full, &complete_);
    if (memory) Accept(*memory, Assignment(&problem_, *memory).Cost());
  }

  void RunGreedy() {
    Assignment choice(&problem_, std::vector<int>(At(problem_.size()), -1));
    FillGreedily(problem_, Plain(), &choice);
    Accept(choice.memory(), choice.Cost());
  }

  void Accept(const std::vector<int>& memory, double cost) {
    if (cost >= result_.cost) return;
    result_.memory = memory;
    result_.cost = cost;
  }

  const ResidencyOptions& options_;
  Problem problem_;
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
