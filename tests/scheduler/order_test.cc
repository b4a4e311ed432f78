// Orders of groups against brute force on random graphs: peak and spilled bytes.
#include "scheduler/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// Every group makes a value that some later groups read; some read values from outside, too, and
// some need another without reading anything of it.
OrderProblem RandomProblem(std::mt19937* random, int groups) {
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>((*random)() % static_cast<uint32_t>(high - low + 1));
  };
  OrderProblem problem = {.before = std::vector<std::vector<int>>(At(groups)),
                          .capacity_bytes = pick(0, 60)};
  const int near = pick(1, 4);  // how far readers are from what they read
  for (int g = 0; g < groups; ++g) {
    LiveValue value = {.bytes = pick(1, 30), .groups = {g}, .may_stay = pick(0, 4) > 0};
    for (int readers = pick(0, 2); readers > 0 && g + 1 < groups; --readers) {
      const int reader = std::min(g + pick(1, near), groups - 1);
      value.groups.push_back(reader);
      problem.before[At(reader)].push_back(g);
    }
    if (pick(0, 9) == 0 && g > 0) problem.before[At(g)].push_back(pick(0, g - 1));
    problem.values.push_back(std::move(value));
  }
  for (std::vector<int>& before : problem.before) {
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
  }
  return problem;
}

bool IsOrder(const OrderProblem& problem, const std::vector<int>& order) {
  std::set<int> done;
  for (const int g : order) {
    for (const int b : problem.before[At(g)]) {
      if (done.count(b) == 0) return false;
    }
    if (g < 0 || g >= static_cast<int>(problem.before.size()) || !done.insert(g).second) {
      return false;
    }
  }
  return done.size() == problem.before.size();
}

// Calls f with every order.
void ForEachOrder(const OrderProblem& problem, std::vector<int>* order,
                  const std::function<void(const std::vector<int>&)>& f) {
  if (order->size() == problem.before.size()) return f(*order);
  for (int g = 0; g < static_cast<int>(problem.before.size()); ++g) {
    const auto done = [&](int b) {
      return std::find(order->begin(), order->end(), b) != order->end();
    };
    const std::vector<int>& before = problem.before[At(g)];
    if (done(g) || !std::all_of(before.begin(), before.end(), done)) continue;
    order->push_back(g);
    ForEachOrder(problem, order, f);
    order->pop_back();
  }
}

// On its own, group by group: what was touched and will be touched, with what is touched now.
LiveBytes Walk(const OrderProblem& problem, const std::vector<int>& order) {
  LiveBytes bytes;
  for (size_t at = 0; at < order.size(); ++at) {
    int64_t alive = 0, staying = 0;
    for (const LiveValue& value : problem.values) {
      const auto touched_in = [&](size_t first, size_t end) {
        return std::any_of(value.groups.begin(), value.groups.end(), [&](int g) {
          const auto it = std::find(order.begin(), order.end(), g);
          const auto position = static_cast<size_t>(it - order.begin());
          return first <= position && position < end;
        });
      };
      if (!touched_in(0, at + 1) || !touched_in(at, order.size())) continue;
      alive += value.bytes;
      if (value.may_stay) staying += value.bytes;
    }
    bytes.peak = std::max(bytes.peak, alive);
    bytes.sum += alive;
    bytes.spilled += std::max<int64_t>(staying - problem.capacity_bytes, 0);
  }
  return bytes;
}

bool Equal(const LiveBytes& a, const LiveBytes& b) {
  return a.peak == b.peak && a.spilled == b.spilled && a.sum == b.sum;
}

TEST(Order, EqualsBruteForce) {
  const uint32_t seed = 5;
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  int lower = 0, less_spilled = 0;
  for (int run = 0; run < 1500; ++run) {
    SCOPED_TRACE(run);
    const OrderProblem problem = RandomProblem(&random, 2 + static_cast<int>(random() % 6));
    const LiveBytes before = LiveBytesOf(problem, GraphOrder(problem.before.size()));
    LiveBytes least = before;
    int64_t least_spilled = before.spilled;
    std::vector<int> order;
    ForEachOrder(problem, &order, [&](const std::vector<int>& o) {
      const LiveBytes bytes = LiveBytesOf(problem, o);
      ASSERT_TRUE(Equal(bytes, Walk(problem, o)));
      least.peak = std::min(least.peak, bytes.peak);
      if (bytes.peak <= before.peak) least_spilled = std::min(least_spilled, bytes.spilled);
    });
    const FoundOrder peak = FindOrder(problem, OrderGoal::kPeak);
    ASSERT_TRUE(IsOrder(problem, peak.groups));
    ASSERT_TRUE(peak.proven);
    ASSERT_EQ(LiveBytesOf(problem, peak.groups).peak, least.peak);
    lower += least.peak < before.peak;
    const FoundOrder spilled = FindOrder(problem, OrderGoal::kSpilled);
    ASSERT_TRUE(IsOrder(problem, spilled.groups));
    ASSERT_TRUE(spilled.proven);
    const LiveBytes bytes = LiveBytesOf(problem, spilled.groups);
    ASSERT_LE(bytes.peak, before.peak);
    ASSERT_EQ(bytes.spilled, least_spilled);
    less_spilled += bytes.spilled < before.spilled;
  }
  std::printf("lower peak %d, less spilled %d\n", lower, less_spilled);
  EXPECT_GT(lower, 100);
  EXPECT_GT(less_spilled, 100);
}

// Whatever the size and the budget: an order, no higher peak; itself where nothing is won.
TEST(Order, NeverHigherThanTheGraphs) {
  const uint32_t seed = 6;
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (int run = 0; run < 200; ++run) {
    SCOPED_TRACE(run);
    const OrderProblem problem = RandomProblem(&random, 1 + static_cast<int>(random() % 250));
    const std::vector<int> identity = GraphOrder(problem.before.size());
    const LiveBytes before = LiveBytesOf(problem, identity);
    for (const OrderGoal goal : {OrderGoal::kPeak, OrderGoal::kSpilled}) {
      for (const int64_t budget : {10, 10000}) {
        const std::vector<int> order = FindOrder(problem, goal, budget).groups;
        ASSERT_TRUE(IsOrder(problem, order));
        const LiveBytes bytes = LiveBytesOf(problem, order);
        ASSERT_LE(bytes.peak, before.peak);
        if (goal == OrderGoal::kSpilled) {
          ASSERT_LE(bytes.spilled, before.spilled);
        }
        if (Equal(bytes, before)) {
          ASSERT_EQ(order, identity);
        }
        ASSERT_EQ(order, FindOrder(problem, goal, budget).groups);
      }
    }
    if (run >= 30) continue;
    std::vector<std::vector<int>> orders = OrdersToTry(problem);
    for (const std::vector<int>& order : orders) {
      ASSERT_TRUE(IsOrder(problem, order));
      ASSERT_LE(LiveBytesOf(problem, order).peak, before.peak);
      ASSERT_NE(order, identity);
    }
    orders.insert(orders.begin(), identity);
    std::vector<TriedOrder> tried;
    for (const std::vector<int>& order : orders) {
      tried.push_back({.order = order, .cost = {}});
      for (size_t g = 0; g < order.size(); ++g) {
        tried.back().cost.push_back(static_cast<double>(random() % 10));
      }
    }
    const auto mixed = MixOrders(problem, tried);
    if (!mixed) continue;
    ASSERT_TRUE(IsOrder(problem, *mixed));
    ASSERT_LE(LiveBytesOf(problem, *mixed).peak, before.peak);
  }
}

// Two branches that shrink what they read, side by side: one after the other is better.
TEST(Order, RunsOneBranchAfterTheOther) {
  OrderProblem problem = {.before = {{}, {0}, {0}, {1}, {2}, {3, 4}}, .capacity_bytes = 100};
  problem.values = {{.bytes = 10, .groups = {0, 1, 2}},
                    {.bytes = 50, .groups = {1, 3}},
                    {.bytes = 50, .groups = {2, 4}},
                    {.bytes = 1, .groups = {3, 5}},
                    {.bytes = 1, .groups = {4, 5}}};
  const FoundOrder found = FindOrder(problem, OrderGoal::kPeak);
  EXPECT_EQ(found.groups, (std::vector<int>{0, 1, 3, 2, 4, 5}));
  EXPECT_EQ(LiveBytesOf(problem, found.groups).peak, 61);
  EXPECT_EQ(DepthFirstOrder(problem.before, {0, 2, 1, 0, 0, 0}),
            (std::vector<int>{0, 2, 4, 1, 3, 5}));
  // Groups 1 to 4 run together in every order: the part that costs less in the second one.
  const auto mixed = MixOrders(problem, {{{0, 1, 2, 3, 4, 5}, {1, 5, 5, 5, 5, 1}},
                                         {{0, 1, 3, 2, 4, 5}, {9, 4, 4, 4, 4, 9}},
                                         {{0, 2, 4, 1, 3, 5}, {9, 6, 6, 6, 6, 9}}});
  EXPECT_FALSE(mixed.has_value());  // it is the second one
}

TEST(Order, GivenSchedulesNameTheirs) {
  ir::Graph graph;
  for (const char* name : {"a", "b", "c"}) graph.nodes.push_back({.name = name});
  const OrderProblem problem = {.before = {{}, {}, {0}}};
  const auto order = [&](const std::vector<std::string>& names) {
    return GivenOrder(graph, problem, {.order = names});
  };
  EXPECT_EQ(*order({"b", "a", "c"}), (std::vector<int>{1, 0, 2}));
  EXPECT_EQ(*order({"c", "b"}), (std::vector<int>{0, 1, 2}));  // not all
  const auto wrong = order({"c", "a", "b"});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.status().code(), ErrorCode::kUsage);
  EXPECT_EQ(wrong.status().message(), "group 'c' is listed before group 'a', which must run first");
}

}  // namespace
}  // namespace dla::scheduler
