// In which order groups run: orders that keep few bytes alive at once.
//
// The set of groups that have run decides what is alive, so that the best order is a shortest path
// over these sets (dynamic programming over down-sets, as in SERENITY, MLSys 2020). A sequence
// falls apart where every group behind a place needs every last one before it; each part is
// searched by itself, parts of more than 64 groups in windows of the order that there is.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "machine/target.h"
#include "scheduler/given_schedule.h"
#include "support/status.h"

namespace dla::scheduler {

enum class OrderRule : uint8_t { kGraph, kBest };
// "graph", "best"; nothing for another text.
std::optional<OrderRule> ParseOrderRule(std::string_view text);

// Something that is alive from the first to the last of its groups in the order, both included.
struct LiveValue {
  int64_t bytes = 0;
  std::vector<int> groups;  // that write or read it, at least one
  bool may_stay = true;     // on chip; else it only counts for the peak
};

struct OrderProblem {
  std::vector<std::vector<int>> before;  // by group: others that must run before it, all smaller
  std::vector<LiveValue> values;
  int64_t capacity_bytes = 0;  // of all scratchpads
};

struct LiveBytes {
  int64_t spilled = 0;  // bytes of what may stay and has no room, summed over the groups
  int64_t peak = 0;     // most bytes alive while a group runs
  int64_t sum = 0;      // bytes alive, summed over the groups
};

// What an order (of all groups) keeps alive.
LiveBytes LiveBytesOf(const OrderProblem& problem, const std::vector<int>& order);

// What to make small first, second and third.
enum class OrderGoal : uint8_t { kSpilled, kPeak };

struct FoundOrder {
  std::vector<int> groups;  // in the order in which they run
  bool proven = false;      // none of them has less of what comes first
};

// The best order found among those of no higher peak than that of 0, 1, 2, ..., and that order
// itself where nothing is won. `budget` bounds the steps that are looked at; deterministic.
FoundOrder FindOrder(const OrderProblem& problem, OrderGoal goal, int64_t budget = 400'000);

// The graph's groups as such a problem: values that groups make and read. A group runs after those
// that write a buffer it reads, or read one that it writes, and come before it in the graph.
OrderProblem OrderProblemOf(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                            const machine::Target& target);

// A group that needs the one before it where there is one, else any that is ready; of several the
// one of the least rank, then number.
std::vector<int> DepthFirstOrder(const std::vector<std::vector<int>>& before,
                                 const std::vector<int64_t>& rank);

// 0, 1, 2, ...
std::vector<int> GraphOrder(size_t groups);

// Orders worth a schedule, of no higher peak than the graph's: different from it and one another.
std::vector<std::vector<int>> OrdersToTry(const OrderProblem& problem);

// An order and what each group cost in it, by number of the group.
struct TriedOrder {
  std::vector<int> order;
  std::vector<double> cost;
};

// Of each part that runs together in every order, the order in which it cost least, of equals the
// first one's; nothing if that was tried, or has a
// higher peak than the first.
std::optional<std::vector<int>> MixOrders(const OrderProblem& problem,
                                          const std::vector<TriedOrder>& tried);

// The order in which a given schedule lists its groups, if it lists all of them; else that of the
// graph. kUsage: a group comes before one that it needs.
Result<std::vector<int>> GivenOrder(const ir::Graph& graph, const OrderProblem& problem,
                                    const GivenSchedule& given);

// element[order[0]], element[order[1]], ...
template <typename T>
std::vector<T> InOrder(const std::vector<T>& elements, const std::vector<int>& order) {
  std::vector<T> ordered;
  ordered.reserve(order.size());
  for (const int i : order) ordered.push_back(elements[static_cast<size_t>(i)]);
  return ordered;
}

}  // namespace dla::scheduler
