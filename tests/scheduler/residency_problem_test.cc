// The residency solver against brute force on random problems: bound <= exact <= best.
#include "scheduler/residency_problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "support/status.h"
#include "tests/random_pick.h"

namespace dla::scheduler {
namespace {

// A step's working set in memory 0 and what it costs on top with that: less room, higher cost.
struct Work {
  int64_t bytes = 0;
  double extra = 0;
};

struct RandomProblem {
  ResidencyProblem problem;
  std::vector<std::vector<Work>> work;  // by step, cheapest first
  std::vector<double> base;
};

double CostOf(const RandomProblem& p, int step, const Holding& holding) {
  const std::span<const int64_t> used = holding.bytes;
  double cost = p.base[static_cast<size_t>(step)];
  for (const Held& h : holding.touched) {
    const Holdable& item = p.problem.items[static_cast<size_t>(h.item)];
    for (const auto& [at, gain] : item.gains) cost -= at == step ? gain : 0;
  }
  for (size_t m = 0; m < used.size(); ++m) {
    if (used[m] > p.problem.capacity_bytes[m]) return kImpossible;
  }
  for (const Work& work : p.work[static_cast<size_t>(step)]) {
    if (used[0] + work.bytes <= p.problem.capacity_bytes[0]) return cost + work.extra;
  }
  return kImpossible;
}

void Fill(std::mt19937* random, RandomProblem* p) {
  const RandomPick pick(random);
  ResidencyProblem& problem = p->problem;
  problem.steps = static_cast<int>(pick(3, 9));
  const int64_t memories = pick(1, 3);
  for (int64_t m = 0; m < memories; ++m) problem.capacity_bytes.push_back(pick(16, 64));
  for (int s = 0; s < problem.steps; ++s) {
    p->base.push_back(static_cast<double>(pick(100, 200)));
    std::vector<Work> work = {{pick(4, problem.capacity_bytes[0]), 0}};
    while (work.back().bytes > 1 && work.size() < 3) {
      work.push_back(
          {pick(0, work.back().bytes - 1), work.back().extra + static_cast<double>(pick(1, 20))});
    }
    p->work.push_back(std::move(work));
  }
  const int64_t items = pick(1, 7);
  for (int64_t i = 0; i < items; ++i) {
    const int first = static_cast<int>(pick(0, problem.steps - 2));
    const int last = static_cast<int>(pick(first + 1, std::min(first + 4, problem.steps - 1)));
    Holdable item = {.bytes = pick(1, 40), .first_step = first, .end_step = last + 1};
    for (int m = 0; m < static_cast<int>(memories); ++m) {
      if (pick(0, 3) > 0) item.memories.push_back(m);
    }
    item.gains = {{first, static_cast<double>(pick(0, 10))},
                  {last, static_cast<double>(pick(1, 10))}};
    item.is_one_step = last == first + 1;
    item.is_extra = !item.is_one_step && pick(0, 2) == 0;
    problem.items.push_back(std::move(item));
  }
  // Some items may take the place of one that ends where they begin.
  for (size_t i = 0; i < problem.items.size(); ++i) {
    std::vector<bool> is_taken(problem.items.size(), false);
    for (const Holdable& item : problem.items) {
      if (item.over >= 0) is_taken[static_cast<size_t>(item.over)] = true;
    }
    for (size_t k = 0; k < problem.items.size(); ++k) {
      Holdable& item = problem.items[i];
      const Holdable& before = problem.items[k];
      if (is_taken[k] || before.end_step != item.first_step + 1 || pick(0, 2) == 0) continue;
      item.over = static_cast<int>(k);
      break;
    }
  }
  // Which have the bytes of those (they end later, so that one pass in order of time does).
  std::vector<size_t> order(problem.items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return problem.items[a].first_step < problem.items[b].first_step;
  });
  for (const size_t i : order) {
    Holdable& item = problem.items[i];
    if (item.over >= 0) item.bytes = problem.items[static_cast<size_t>(item.over)].bytes;
  }
  problem.cost = [p](int step, const Holding& holding) { return CostOf(*p, step, holding); };
}

double CostOfChoice(const RandomProblem& p, const std::vector<int>& memory) {
  double cost = 0;
  for (int s = 0; s < p.problem.steps; ++s) {
    std::vector<Held> held;
    std::vector<int64_t> bytes(p.problem.capacity_bytes.size(), 0);
    for (size_t i = 0; i < memory.size(); ++i) {
      const Holdable& item = p.problem.items[i];
      if (memory[i] >= 0 && item.first_step <= s && s < item.end_step) {
        held.push_back({static_cast<int>(i), memory[i]});
        const bool shares = item.over >= 0 && s == item.first_step &&
                            memory[static_cast<size_t>(item.over)] == memory[i];
        if (!shares) bytes[static_cast<size_t>(memory[i])] += item.bytes;
      }
    }
    cost += CostOf(p, s, {held, bytes});
  }
  return cost;
}

double BruteForce(const RandomProblem& p, size_t i, std::vector<int>* memory) {
  if (i == memory->size()) return CostOfChoice(p, *memory);
  (*memory)[i] = -1;
  double best = BruteForce(p, i + 1, memory);
  for (const int m : p.problem.items[i].memories) {
    (*memory)[i] = m;
    best = std::min(best, BruteForce(p, i + 1, memory));
  }
  (*memory)[i] = -1;
  return best;
}

// Gains of many magnitudes, as the steps of a subgradient make them, and values that gain together
// exactly what one gains that covers them all: only rounding tells the paths of the flow apart.
TEST(ResidencyProblem, BoundOfGainsThatAreEqualButForRoundingEnds) {
  const uint32_t seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> share(0, 1);
  for (int run = 0; run < 3000; ++run) {
    SCOPED_TRACE(Concat("seed ", seed, ", problem ", run));
    ResidencyProblem problem = {.steps = 3 + static_cast<int>(random() % 20)};
    problem.capacity_bytes = {static_cast<int64_t>(random() % 5000) + 16};
    const double scale = std::pow(10, static_cast<double>(random() % 12));
    double all = 0;
    for (int s = 0; s + 1 < problem.steps; ++s) {
      const double density = scale * share(random);
      for (auto copies = random() % 3 + 1; copies-- > 0;) {
        const auto bytes = static_cast<int64_t>(random() % 900) + 1;
        problem.items.push_back({.bytes = bytes, .first_step = s, .end_step = s + 1});
        problem.items.back().gains = {{s, density * static_cast<double>(bytes)}};
      }
    }
    const size_t parts = problem.items.size();
    for (size_t more = 0; more < parts; ++more) {
      const int first = static_cast<int>(random() % static_cast<uint32_t>(problem.steps - 1));
      const int end =
          first + 1 + static_cast<int>(random() % static_cast<uint32_t>(problem.steps - 1 - first));
      const auto bytes = static_cast<int64_t>(random() % 900) + 1;
      double gain = 0;
      for (int s = first; s < end; ++s) {
        const auto one = std::find_if(problem.items.begin(), problem.items.end(),
                                      [&](const Holdable& i) { return i.first_step == s; });
        gain += one->gains[0].second / static_cast<double>(one->bytes) * static_cast<double>(bytes);
      }
      problem.items.push_back({.bytes = bytes, .first_step = first, .end_step = end});
      problem.items.back().gains = {{end, gain}};
    }
    for (Holdable& item : problem.items) {
      item.memories = {0};
      all += item.gains[0].second;
    }
    const ResidencyBound bound = BoundResidency(problem);
    EXPECT_GE(bound.savings, 0);
    EXPECT_LE(bound.savings, all * (1 + 1e-9));
    for (const Holdable& item : problem.items) {
      if (item.bytes > problem.capacity_bytes[0]) continue;
      EXPECT_GE(bound.savings, item.gains[0].second * (1 - 1e-9));
    }
  }
}

TEST(ResidencyProblem, BoundIsBelowExactIsBelowTheOthers) {
  const uint32_t seed = 7;
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  double best_over_exact = 0;
  double saved_by_best = 0;
  double saved_by_exact = 0;
  const int runs = 3000;
  for (int run = 0; run < runs; ++run) {
    RandomProblem p;
    Fill(&random, &p);
    std::vector<int> memory(p.problem.items.size(), -1);
    const double least = BruteForce(p, 0, &memory);
    const auto solve = [&](ResidencyPolicy policy) {
      // Few states, so that `best` is put to the test.
      const ResidencyResult result = SolveResidency(p.problem, {.policy = policy, .states = 4});
      EXPECT_NEAR(CostOfChoice(p, result.memory), result.cost, 1e-6);
      return result;
    };
    const ResidencyResult exact = solve(ResidencyPolicy::kExact);
    ASSERT_TRUE(exact.complete);
    ASSERT_NEAR(exact.cost, least, 1e-6) << "run " << run;
    const double none = solve(ResidencyPolicy::kNone).cost;
    const double one_step = solve(ResidencyPolicy::kOneStep).cost;
    const double onsram = solve(ResidencyPolicy::kOnsram).cost;
    const double best = solve(ResidencyPolicy::kBest).cost;
    ASSERT_LE(least, best + 1e-6);
    ASSERT_LE(best, one_step + 1e-6);
    ASSERT_LE(best, onsram + 1e-6);
    ASSERT_LE(one_step, none + 1e-6);
    ASSERT_LE(onsram, none + 1e-6);
    const ResidencyBound bound = BoundResidency(p.problem);
    ASSERT_LE(none - bound.savings, least + 1e-6) << "run " << run;
    best_over_exact += best / least;
    saved_by_best += none - best;
    saved_by_exact += none - least;
  }
  std::printf("best / exact %.5f in the mean; best saves %.4f of what exact saves\n",
              best_over_exact / runs, saved_by_best / saved_by_exact);
  EXPECT_LE(best_over_exact / runs, 1.01);
}

// With everything small against one memory the flow is the answer itself.
TEST(ResidencyProblem, BoundIsTightWithoutShortage) {
  ResidencyProblem problem = {.capacity_bytes = {100}, .steps = 3};
  problem.items = {
      {.bytes = 10, .first_step = 0, .end_step = 2, .memories = {0}, .gains = {{1, 5}}},
      {.bytes = 20, .first_step = 1, .end_step = 3, .memories = {0}, .gains = {{2, 7}}}};
  const ResidencyBound bound = BoundResidency(problem);
  EXPECT_NEAR(bound.savings, 12, 1e-9);
  for (const double price : bound.price) EXPECT_NEAR(price, 0, 1e-9);
}

// One byte more where memory is short saves what the item that is cut gains for a byte.
TEST(ResidencyProblem, PricesSayWhereMemoryIsShort) {
  ResidencyProblem problem = {.capacity_bytes = {25}, .steps = 3};
  problem.items = {
      {.bytes = 20, .first_step = 0, .end_step = 2, .memories = {0}, .gains = {{1, 40}}},
      {.bytes = 10, .first_step = 1, .end_step = 3, .memories = {0}, .gains = {{2, 10}}}};
  const ResidencyBound bound = BoundResidency(problem);
  EXPECT_NEAR(bound.savings, 45, 1e-9);
  EXPECT_NEAR(bound.price[1], 1, 1e-9);
  EXPECT_NEAR(bound.price[2], 0, 1e-9);
}

}  // namespace
}  // namespace dla::scheduler
