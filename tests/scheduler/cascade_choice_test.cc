// Cascades and residency together against all choices, on small random networks: bound <= exact <=
// best, best within 1 % of exact in the mean.
#include "scheduler/cascade_choice.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "ir/op.h"
#include "ir/pass.h"
#include "machine/target_file.h"
#include "scheduler/cascade.h"
#include "scheduler/residency.h"
#include "scheduler/scheduler.h"
#include "scheduler/searcher.h"
#include "tests/ir/graph_builder.h"

namespace dla::scheduler {
namespace {

using ir::ValueId;

size_t At(int64_t i) { return static_cast<size_t>(i); }

// A network of two to five groups, its nests and a target with little room.
struct Problem {
  ir::Graph graph;
  std::vector<ir::Nest> nests;
  machine::Target target;
  Objective objective = Objective::kTraffic;
  SearchOptions search;
};

class RandomProblem {
 public:
  explicit RandomProblem(std::mt19937* random) : random_(*random) {}

  Problem Make(const std::vector<machine::Target>& targets) {
    Problem problem = {.graph = Network(), .target = targets[At(Pick(0, 2))]};
    if (!ir::RunPasses(&problem.graph, {}).ok()) ADD_FAILURE() << "passes";
    for (const ir::Node& node : problem.graph.nodes) {
      problem.nests.push_back(*ir::BuildNest(problem.graph, node));
      for (ir::Operand& operand : problem.nests.back().operands) {
        operand.is_constant = problem.graph.values[At(operand.value)].constant != nullptr;
      }
    }
    // One scratchpad or two, for everything.
    machine::Memory memory = problem.target.memories[0];
    memory.holds = targets[0].memories[0].holds;
    problem.target.memories.clear();
    problem.target.links.clear();
    for (int64_t m = Pick(1, 2); m > 0; --m) {
      memory.name = "m" + std::to_string(m);
      memory.bytes = memory.align_bytes * (Pick(600, 4000) / memory.align_bytes);
      problem.target.memories.push_back(memory);
    }
    problem.objective = Pick(0, 1) == 0 ? Objective::kTraffic : Objective::kLatency;
    problem.search.way = Pick(0, 9) == 0 ? SearchWay::kExact : SearchWay::kNone;
    problem.search.budget = 2000;
    return problem;
  }

  int64_t Pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  // Convolutions and pooling, each of the last value or the one before, with residual additions.
  ir::Graph Network() {
    ir::GraphBuilder builder;
    const ir::Shape shape = {1, Pick(1, 4), Pick(4, 9), Pick(3, 9)};
    std::vector<ValueId> values = {builder.Input("x", shape)};
    for (int64_t i = 0, groups = Pick(2, 5); i < groups; ++i) {
      const std::string name = "n" + std::to_string(i);
      const int64_t last = static_cast<int64_t>(values.size()) - 1;
      const ValueId from =
          values[At(i + 1 < groups ? Pick(std::max<int64_t>(last - 1, 0), last) : last)];
      const int64_t k = 2 * Pick(0, 1) + 1, c = shape[1];
      ValueId made = ir::kNoValue;
      if (Pick(0, 3) == 0) {
        made = builder.Node(
            "MaxPool", name, {from},
            {{"kernel_shape", ir::Shape{k, 1}}, {"pads", ir::Shape{k / 2, 0, k / 2, 0}}});
      } else {
        const ValueId w = builder.Floats(name + ".w", {c, c, k, 1}, ir::Pattern(c * c * k));
        made = builder.Node("Conv", name, {from, w}, {{"pads", ir::Shape{k / 2, 0, k / 2, 0}}});
      }
      const ValueId other = values[At(Pick(0, last))];
      if (Pick(0, 2) == 0) made = builder.Node("Add", name + ".add", {made, other});
      values.push_back(made);
    }
    return builder.Build({values.back()});
  }

  std::mt19937& random_;
};

double CostOf(const Problem& problem, const ResidencyPlan& plan) {
  double cost = 0;
  for (size_t g = 0; g < plan.mappings.size(); ++g) {
    cost += AdditiveCost(plan.mappings[g]->predicted, problem.nests[g], problem.target,
                         problem.objective);
  }
  return cost;
}

// Calls f with every set of chains that do not overlap, in stripes of every height.
void ForEachChoice(const Problem& problem, const CascadePlanner& planner, int from,
                   GivenSchedule* given, const std::function<void()>& f) {
  const int groups = static_cast<int>(problem.nests.size());
  if (from == groups) return f();
  ForEachChoice(problem, planner, from + 1, given, f);
  for (int end = from + 2; end <= groups; ++end) {
    if (!planner.IsChain({from, end})) continue;
    GivenCascade cascade;
    for (int g = from; g < end; ++g) cascade.groups.push_back(problem.graph.nodes[At(g)].name);
    int64_t lines = 0;
    for (const ir::Dimension& d : problem.nests[At(end - 1)].dimensions) {
      if (d.name == "E") lines = d.extent - 1;
    }
    for (cascade.lines = lines; cascade.lines > 0; --cascade.lines) {
      given->cascades->push_back(cascade);
      ForEachChoice(problem, planner, end, given, f);
      given->cascades->pop_back();
    }
  }
}

struct Exact {
  double cost = kImpossible;
  size_t cascades = 0;
  int64_t choices = 0;
};

using Plan = std::function<Result<ResidencyPlan>(ResidencyPolicy, const GivenSchedule*)>;

// All cascades, each with the best of all that may stay beside them.
Exact TryEverything(const Problem& problem, const Plan& plan) {
  const ValueFlows flows = FlowsOf(problem.graph, problem.nests);
  const CascadePlanner planner(problem.graph, problem.nests, flows, problem.target);
  GivenSchedule given;
  given.cascades.emplace();
  Exact exact;
  ForEachChoice(problem, planner, 0, &given, [&] {
    ++exact.choices;
    const Result<ResidencyPlan> one = plan(ResidencyPolicy::kExact, &given);
    if (!one.ok() || CostOf(problem, *one) >= exact.cost) return;
    exact.cost = CostOf(problem, *one);
    exact.cascades = given.cascades->size();
  });
  return exact;
}

// What the compiler reports as a bound. Where it has chosen no cascades, the bound of the bytes is
// one of schedules that hold whole values, and only what is compulsory bounds all.
void ExpectBoundBelow(const Problem& problem, double exact) {
  ScheduleOptions options = {.objective = problem.objective, .search = problem.search};
  options.prefetch = false;
  options.order = OrderRule::kGraph;
  const Result<Schedule> schedule = MakeSchedule(problem.graph, problem.target, options);
  if (!schedule.ok()) return;
  const TrafficBound& bound = schedule->residency.bound;
  const bool chosen = !schedule->cascades.empty();
  if (problem.objective == Objective::kTraffic) {
    const int64_t bytes = chosen ? bound.dram_bytes : bound.compulsory_bytes;
    EXPECT_LE(static_cast<double>(bytes), exact);
    EXPECT_GT(bytes, 0);
  } else if (chosen) {
    EXPECT_LE(static_cast<double>(bound.alone_cycles), exact);
  }
}

TEST(CascadeChoice, BoundIsBelowExactIsBelowBest) {
  const uint32_t seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  std::vector<machine::Target> targets;
  for (const char* name : {"edge32-unified", "edge32-ideal-unified", "onsram"}) {
    targets.push_back(*machine::LoadTarget(name, {}));
  }
  double ratio = 0, worst = 1;
  int compared = 0, with_cascades = 0, equal = 0;
  int64_t choices = 0;
  for (int run = 0; run < 2000; ++run) {
    SCOPED_TRACE(Concat("network ", run));
    const Problem problem = RandomProblem(&random).Make(targets);
    Searcher searcher(problem.target, problem.objective, problem.search);
    const Plan plan = [&](ResidencyPolicy policy, const GivenSchedule* given) {
      // Few states, so that `best` is put to the test.
      return PlanResidency(problem.graph, problem.nests,
                           {.options = {.policy = policy, .states = 4}, .given = given}, &searcher,
                           {});
    };
    const Result<ResidencyPlan> best = plan(ResidencyPolicy::kBest, nullptr);
    if (!best.ok()) continue;  // too small
    const Exact exact = TryEverything(problem, plan);
    choices += exact.choices;
    const double cost = CostOf(problem, *best);
    ASSERT_LE(exact.cost, cost * (1 + 1e-12));
    if (run % 20 == 0) ExpectBoundBelow(problem, exact.cost);
    ++compared;
    with_cascades += exact.cascades > 0;
    equal += cost <= exact.cost * (1 + 1e-9);
    ratio += cost / exact.cost;
    worst = std::max(worst, cost / exact.cost);
  }
  std::printf(
      "%d networks, %d best with cascades, %lld choices; best / exact %.5f in the mean, "
      "%.3f at most, equal in %d\n",
      compared, with_cascades, static_cast<long long>(choices), ratio / compared, worst, equal);
  EXPECT_GT(compared, 1000);
  EXPECT_GT(with_cascades, 100);
  EXPECT_LE(ratio / compared, 1.01);
}

}  // namespace
}  // namespace dla::scheduler
