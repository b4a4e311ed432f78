#include "scheduler/order.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>

#include "scheduler/residency_candidates.h"
#include "scheduler/searcher.h"
#include "scheduler/value_flow.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

constexpr int kWindow = 64;  // groups of a window: a bit each

// Compared from the first on.
using Cost = std::array<int64_t, 3>;

// Groups [first, end) of an order.
struct Window {
  int first = 0, end = 0;
  bool falls_apart = true;  // from what is before and behind: every order runs these together
};

// Places at which a sequence falls apart: where every group behind them that needs none of those
// behind needs each one before them that none of those before needs.
std::vector<Window> WindowsOf(const std::vector<std::vector<int>>& before) {
  const int n = static_cast<int>(before.size());
  std::vector<int> first_after(At(n), n);  // the first group that needs this one
  std::vector<std::vector<int>> sources_from(At(n) + 1);
  for (int g = 0; g < n; ++g) {
    int last = -1;
    for (const int b : before[At(g)]) {
      first_after[At(b)] = std::min(first_after[At(b)], g);
      last = std::max(last, b);
    }
    sources_from[At(last) + 1].push_back(g);
  }
  std::vector<Window> windows = {{0, n}};
  std::multiset<int> sinks;  // by the first group that needs them
  std::set<int> sources;
  for (int at = 1; at < n; ++at) {
    sources.insert(sources_from[At(at - 1)].begin(), sources_from[At(at - 1)].end());
    sources.erase(at - 1);
    sinks.insert(first_after[At(at - 1)]);
    sinks.erase(at - 1);  // these are needed by a group that is before the place now
    sources.insert(sources_from[At(at)].begin(), sources_from[At(at)].end());
    const bool apart = std::all_of(sources.begin(), sources.end(), [&](int source) {
      return static_cast<size_t>(std::count_if(before[At(source)].begin(), before[At(source)].end(),
                                               [&](int b) { return first_after[At(b)] >= at; })) ==
             sinks.size();
    });
    if (!apart) continue;
    windows.back().end = at;
    windows.push_back({at, n});
  }
  return windows;
}

// The search of one window of an order.
class WindowSearch {
 public:
  // No step may keep more than `most_peak` bytes alive.
  WindowSearch(const OrderProblem& problem, OrderGoal goal, const std::vector<int>& order,
               const std::vector<int>& position, Window window, int64_t most_peak)
      : problem_(problem), goal_(goal), order_(order), window_(window), most_peak_(most_peak) {
    const int size = window.end - window.first;
    needs_.assign(At(size), 0);
    touches_.resize(At(size));
    for (int i = 0; i < size; ++i) {
      for (const int b : problem.before[At(Group(i))]) {
        const int at = position[At(b)] - window.first;
        if (at >= 0) needs_[At(i)] |= uint64_t{1} << at;
      }
    }
    for (const LiveValue& value : problem.values) AddValue(value, position);
  }

  // The window's groups in a better order; empty: there is none. `complete`: nothing was dropped.
  std::vector<int> Run(int64_t budget, bool* complete) {
    const int size = static_cast<int>(needs_.size());
    State identity = Start();
    for (int i = 0; i < size; ++i) identity = After(identity, i);
    const size_t width = static_cast<size_t>(std::max<int64_t>(budget / (8 * size), 8));
    trail_.clear();
    std::vector<State> states = {Start()};
    for (int step = 0; step < size; ++step) {
      states = Advance(states);
      if (states.size() <= width) continue;
      *complete = false;
      Trim(width, &states);
    }
    if (states.empty() || CostOf(states[0].bytes) >= CostOf(identity.bytes)) return {};
    std::vector<int> found;
    for (int at = states[0].trail; at >= 0; at = trail_[At(at)].first) {
      found.push_back(Group(trail_[At(at)].second));
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

 private:
  struct Live {
    uint64_t groups = 0;  // of the window
    bool starts_before = false, ends_behind = false;
    int64_t bytes = 0, staying = 0;
  };
  struct State {
    uint64_t done = 0;
    int64_t alive = 0, staying = 0;  // bytes that go on, and of these what may stay
    LiveBytes bytes;
    int trail = -1;
  };

  int Group(int i) const { return order_[At(window_.first + i)]; }

  void AddValue(const LiveValue& value, const std::vector<int>& position) {
    Live live = {.bytes = value.bytes, .staying = value.may_stay ? value.bytes : 0};
    for (const int g : value.groups) {
      const int at = position[At(g)];
      live.starts_before = live.starts_before || at < window_.first;
      live.ends_behind = live.ends_behind || at >= window_.end;
      if (at >= window_.first && at < window_.end) {
        live.groups |= uint64_t{1} << (at - window_.first);
      }
    }
    if (live.starts_before && (live.ends_behind || live.groups != 0)) {
      start_.alive += live.bytes;
      start_.staying += live.staying;
    }
    for (size_t i = 0; i < touches_.size(); ++i) {
      if ((live.groups >> i & 1U) != 0) touches_[i].push_back(static_cast<int>(values_.size()));
    }
    if (live.groups != 0) values_.push_back(live);
  }

  State Start() const { return start_; }

  // While a group runs, what it touches first is alive, and what it touches last still is.
  State After(const State& state, int i) const {
    State next = state;
    next.done |= uint64_t{1} << i;
    for (const int v : touches_[At(i)]) {
      const Live& value = values_[At(v)];
      if (value.starts_before || (value.groups & state.done) != 0) continue;
      next.alive += value.bytes;
      next.staying += value.staying;
    }
    next.bytes.peak = std::max(next.bytes.peak, next.alive);
    next.bytes.sum += next.alive;
    next.bytes.spilled += std::max<int64_t>(next.staying - problem_.capacity_bytes, 0);
    for (const int v : touches_[At(i)]) {
      const Live& value = values_[At(v)];
      if (value.ends_behind || (value.groups & ~next.done) != 0) continue;
      next.alive -= value.bytes;
      next.staying -= value.staying;
    }
    return next;
  }

  // One group more. Of equal sets the cheapest, of equals the one that is found first: that of the
  // order as it is.
  std::vector<State> Advance(const std::vector<State>& states) {
    std::vector<State> next;
    std::unordered_map<uint64_t, size_t> index;
    for (const State& state : states) {
      for (int i = 0; i < static_cast<int>(needs_.size()); ++i) {
        if ((state.done >> i & 1U) != 0 || (needs_[At(i)] & ~state.done) != 0) continue;
        State after = After(state, i);
        if (after.bytes.peak > most_peak_) continue;
        const auto [it, is_new] = index.try_emplace(after.done, next.size());
        if (!is_new && CostOf(after.bytes) >= CostOf(next[it->second].bytes)) continue;
        trail_.emplace_back(state.trail, i);
        after.trail = static_cast<int>(trail_.size()) - 1;
        if (is_new) {
          next.push_back(after);
        } else {
          next[it->second] = after;
        }
      }
    }
    return next;
  }

  void Trim(size_t width, std::vector<State>* states) const {
    std::stable_sort(states->begin(), states->end(), [&](const State& a, const State& b) {
      return std::tuple(CostOf(a.bytes), a.alive) < std::tuple(CostOf(b.bytes), b.alive);
    });
    states->resize(width);
  }

  Cost CostOf(const LiveBytes& bytes) const {
    if (goal_ == OrderGoal::kPeak) return {bytes.peak, bytes.spilled, bytes.sum};
    return {bytes.spilled, bytes.peak, bytes.sum};
  }

  const OrderProblem& problem_;
  const OrderGoal goal_;
  const std::vector<int>& order_;
  const Window window_;
  const int64_t most_peak_;
  std::vector<uint64_t> needs_;            // by group of the window
  std::vector<std::vector<int>> touches_;  // values, by group of the window
  std::vector<Live> values_;
  State start_;
  std::vector<std::pair<int, int>> trail_;  // the step before, and the group
};

// Cuts windows of more than 64 groups, the first piece of `offset` groups.
std::vector<Window> CutLong(const std::vector<Window>& windows, int offset) {
  std::vector<Window> cut;
  for (const Window& window : windows) {
    int first = window.first;
    while (window.end - first > kWindow) {
      const int end = first + (first == window.first ? offset : kWindow);
      cut.push_back({first, end, false});
      first = end;
    }
    cut.push_back({first, window.end, first == window.first});
  }
  return cut;
}

}  // namespace

LiveBytes LiveBytesOf(const OrderProblem& problem, const std::vector<int>& order) {
  std::vector<int> position(order.size());
  for (size_t i = 0; i < order.size(); ++i) position[At(order[i])] = static_cast<int>(i);
  std::vector<int64_t> alive(order.size(), 0), staying(order.size(), 0);
  for (const LiveValue& value : problem.values) {
    int first = static_cast<int>(order.size()), last = -1;
    for (const int g : value.groups) {
      first = std::min(first, position[At(g)]);
      last = std::max(last, position[At(g)]);
    }
    for (int at = first; at <= last; ++at) {
      alive[At(at)] += value.bytes;
      if (value.may_stay) staying[At(at)] += value.bytes;
    }
  }
  LiveBytes bytes;
  for (size_t at = 0; at < order.size(); ++at) {
    bytes.peak = std::max(bytes.peak, alive[at]);
    bytes.sum += alive[at];
    bytes.spilled += std::max<int64_t>(staying[at] - problem.capacity_bytes, 0);
  }
  return bytes;
}

FoundOrder FindOrder(const OrderProblem& problem, OrderGoal goal, int64_t budget) {
  const int groups = static_cast<int>(problem.before.size());
  FoundOrder found = {.groups = GraphOrder(At(groups)), .proven = true};
  if (groups < 2) return found;
  const std::vector<Window> parts = WindowsOf(problem.before);
  std::vector<int> position = found.groups;
  const int64_t peak = LiveBytesOf(problem, found.groups).peak;
  for (const int offset : {kWindow, kWindow / 2}) {  // where windows were cut, across the cuts, too
    for (const Window& window : CutLong(parts, offset)) {
      if (offset != kWindow && window.falls_apart) continue;
      const int size = window.end - window.first;
      found.proven = found.proven && window.falls_apart;
      if (size < 2) continue;
      WindowSearch search(problem, goal, found.groups, position, window, peak);
      const std::vector<int> better = search.Run(budget * size / groups, &found.proven);
      for (size_t i = 0; i < better.size(); ++i) {
        found.groups[At(window.first) + i] = better[i];
        position[At(better[i])] = window.first + static_cast<int>(i);
      }
    }
  }
  return found;
}

std::optional<OrderRule> ParseOrderRule(std::string_view text) {
  if (text == "graph") return OrderRule::kGraph;
  return text == "best" ? std::optional(OrderRule::kBest) : std::nullopt;
}

OrderProblem OrderProblemOf(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                            const machine::Target& target) {
  OrderProblem problem;
  problem.before.resize(nests.size());
  for (const machine::Memory& memory : target.memories) {
    problem.capacity_bytes += UsableBytes(memory);
  }
  const ValueFlows flows = FlowsOf(graph, nests);
  std::set<ir::ValueId> staying;
  for (const Candidate& c : CandidatesOf(graph, nests, flows, target, false))
    staying.insert(c.root);
  for (const auto& [root, flow] : flows) {
    for (const int writer : flow.writers) {
      for (const int reader : flow.readers) {
        if (writer != reader)
          problem.before[At(std::max(writer, reader))].push_back(std::min(writer, reader));
      }
    }
    if (flow.writers.empty() || flow.readers.empty()) continue;
    LiveValue value = {.bytes = RootBytes(graph, root),
                       .groups = flow.writers,
                       .may_stay = staying.count(root) != 0};
    value.groups.insert(value.groups.end(), flow.readers.begin(), flow.readers.end());
    problem.values.push_back(std::move(value));
  }
  for (std::vector<int>& before : problem.before) {
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
  }
  return problem;
}

std::vector<int> GraphOrder(size_t groups) {
  std::vector<int> order(groups);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

std::vector<int> DepthFirstOrder(const std::vector<std::vector<int>>& before,
                                 const std::vector<int64_t>& rank) {
  const size_t groups = before.size();
  std::vector<std::vector<int>> behind(groups);
  std::vector<size_t> missing(groups, 0);
  const auto first = [&](int a, int b) {
    return std::tuple(rank[At(a)], a) < std::tuple(rank[At(b)], b);
  };
  std::set<int, decltype(first)> ready(first);
  for (size_t g = 0; g < groups; ++g) {
    for (const int b : before[g]) behind[At(b)].push_back(static_cast<int>(g));
    missing[g] = before[g].size();
    if (missing[g] == 0) ready.insert(static_cast<int>(g));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    int next = -1;
    if (!order.empty()) {
      for (const int g : behind[At(order.back())]) {
        if (ready.count(g) != 0 && (next < 0 || first(g, next))) next = g;
      }
    }
    if (next < 0) next = *ready.begin();
    ready.erase(next);
    order.push_back(next);
    for (const int g : behind[At(next)]) {
      if (--missing[At(g)] == 0) ready.insert(g);
    }
  }
  return order;
}

std::vector<std::vector<int>> OrdersToTry(const OrderProblem& problem) {
  constexpr size_t kMostGroups = 1000;  // a schedule for each order takes long
  const size_t groups = problem.before.size();
  std::vector<std::vector<int>> orders;
  if (groups > kMostGroups) return orders;
  const std::vector<int> graph_order = GraphOrder(groups);
  std::vector<int64_t> made(groups, 0), way(groups, 0);  // bytes; groups to the end, negative
  for (const LiveValue& value : problem.values) made[At(value.groups.front())] += value.bytes;
  for (size_t g = groups; g-- > 0;) {
    for (const int b : problem.before[g]) way[At(b)] = std::min(way[At(b)], way[g] - 1);
  }
  const int64_t peak = LiveBytesOf(problem, graph_order).peak;
  for (std::vector<int> order :
       {FindOrder(problem, OrderGoal::kSpilled).groups, FindOrder(problem, OrderGoal::kPeak).groups,
        DepthFirstOrder(problem.before, made), DepthFirstOrder(problem.before, way)}) {
    const bool is_new =
        order != graph_order && std::find(orders.begin(), orders.end(), order) == orders.end();
    if (is_new && LiveBytesOf(problem, order).peak <= peak) orders.push_back(std::move(order));
  }
  return orders;
}

std::optional<std::vector<int>> MixOrders(const OrderProblem& problem,
                                          const std::vector<TriedOrder>& tried) {
  std::vector<int> mixed;
  for (const Window& part : WindowsOf(problem.before)) {
    const TriedOrder* cheapest = nullptr;
    double least = 0;
    for (const TriedOrder& t : tried) {
      double cost = 0;
      for (int g = part.first; g < part.end; ++g) cost += t.cost[At(g)];
      if (cheapest == nullptr || cost < least) least = cost, cheapest = &t;
    }
    mixed.insert(mixed.end(), cheapest->order.begin() + part.first,
                 cheapest->order.begin() + part.end);
  }
  const auto is_mixed = [&](const TriedOrder& t) { return t.order == mixed; };
  if (std::any_of(tried.begin(), tried.end(), is_mixed)) return std::nullopt;
  const int64_t peak = LiveBytesOf(problem, tried[0].order).peak;
  if (LiveBytesOf(problem, mixed).peak > peak) return std::nullopt;
  return mixed;
}

Result<std::vector<int>> GivenOrder(const ir::Graph& graph, const OrderProblem& problem,
                                    const GivenSchedule& given) {
  const size_t groups = graph.nodes.size();
  std::map<std::string, int> number;
  for (size_t g = 0; g < groups; ++g) number[graph.nodes[g].name] = static_cast<int>(g);
  std::vector<int> order;
  for (const std::string& name : given.order) {
    const auto it = number.find(name);
    if (it != number.end()) order.push_back(it->second);
  }
  if (order.size() != groups) return GraphOrder(groups);
  std::vector<bool> done(groups, false);
  for (const int g : order) {
    for (const int b : problem.before[At(g)]) {
      if (done[At(b)]) continue;
      return Usage("group '", graph.nodes[At(g)].name, "' is listed before group '",
                   graph.nodes[At(b)].name, "', which must run first");
    }
    done[At(g)] = true;
  }
  return order;
}

}  // namespace dla::scheduler
