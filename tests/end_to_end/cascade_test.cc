// Cascades: random chains of windows in stripes of any height, executed with every check.
#include <gtest/gtest.h>

#include <random>

#include "ir/pass.h"
#include "machine/verifier.h"
#include "scheduler/given_schedule.h"
#include "scheduler/residency.h"
#include "tests/end_to_end/compile_run.h"
#include "tests/end_to_end/random_chain.h"

namespace dla::testing {
namespace {

using ir::GraphBuilder;
using ir::Pattern;
using ir::Shape;
using ir::ValueId;

// A cascade of groups of the graph (after all passes) that follow one another.
scheduler::GivenSchedule RandomCascade(const ir::Graph& graph, RandomChain* random) {
  const auto groups = static_cast<int64_t>(graph.nodes.size());
  const int64_t first = random->Pick(0, groups - 2);
  const int64_t last = random->Pick(first + 1, groups - 1);
  // Few lines, or as many as some group has: then it runs in a single stripe.
  scheduler::GivenCascade cascade = {.lines = random->Pick(1, random->Pick(0, 2) == 0 ? 24 : 5)};
  for (int64_t g = first; g <= last; ++g) {
    cascade.groups.push_back(graph.nodes[static_cast<size_t>(g)].name);
  }
  scheduler::GivenSchedule given;
  given.cascades = {cascade};
  return given;
}

// Whatever the chain, the stripes and the target: bytes and cycles as predicted, every tile where
// it should be, values as evaluated. Chains that do not fit or are none are refused.
TEST(Cascade, RandomChainsRunAsPredicted) {
  const uint32_t seed = std::random_device()();
  std::mt19937 random(seed);
  SCOPED_TRACE(Concat("seed ", seed));
  int ran = 0, refused = 0;
  for (int i = 0; i < 150; ++i) {
    SCOPED_TRACE(Concat("chain ", i));
    RandomChain chain(&random);
    const ir::Graph graph = chain.Make();
    ir::Graph passed = graph;
    ASSERT_TRUE(ir::RunPasses(&passed, {}).ok());
    if (passed.nodes.size() < 2) continue;
    const scheduler::GivenSchedule given = RandomCascade(passed, &chain);
    static const char* const kTargets[] = {"edge32", "edge32-unified", "onsram", "meta-df",
                                           "tpu256"};
    CompileOptions options = {.target = kTargets[chain.Pick(0, 4)]};
    if (options.target == "edge32-unified" && chain.Pick(0, 1) == 0) {
      options.memories = {Concat("pool=", 16 * chain.Pick(100, 1000))};
    }
    // Output channels are cut where their sums do not fit.
    if (options.target == "edge32" && chain.Pick(0, 2) > 0) {
      options.memories = {Concat("output=", 64 * chain.Pick(10, 120))};
    }
    options.schedule.given = &given;
    SCOPED_TRACE(options.target);
    const Result<Compiled> compiled = CompileGraph(graph, options);
    if (!compiled.ok()) {
      const ErrorCode code = compiled.status().code();
      EXPECT_TRUE(code == ErrorCode::kUsage || code == ErrorCode::kDoesNotFit)
          << compiled.status().message();
      ++refused;
      continue;
    }
    ASSERT_EQ(compiled->schedule.cascades.size(), 1U);
    ExpectRuns(*compiled, random());
    if (HasFailure()) return;
    ++ran;
  }
  EXPECT_GT(ran, 40) << refused << " were refused";
}

// The first stripe needs all lines of the first group, whose channels are cut.
TEST(Cascade, OneStripeOfSeveralTiles) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {1, 16, 8, 8});
  const ValueId w = builder.Floats("w", {128, 16, 1, 1}, Pattern(128 * 16));
  const ValueId first = builder.Node("Conv", "first", {x, w});
  const ValueId second = builder.Node("MaxPool", "second", {first},
                                      {{"kernel_shape", Shape{9, 1}}, {"pads", Shape{4, 0, 4, 0}}});
  const ir::Graph graph = builder.Build({second});
  scheduler::GivenSchedule given;
  given.cascades = {{.groups = {"first", "second"}, .lines = 4}};
  int of_several = 0;
  for (int kib = 4; kib <= 64; kib += 4) {
    SCOPED_TRACE(kib);
    CompileOptions options = {.memories = {Concat("output=", kib, "K")}};
    options.schedule.given = &given;
    const Result<Compiled> compiled = CompileGraph(graph, options);
    if (!compiled.ok()) continue;
    const scheduler::Mapping& mapping = compiled->schedule.groups[0].mapping;
    if (!mapping.order.empty() && mapping.order[0] != mapping.stripe.dimension) ++of_several;
    ExpectRuns(*compiled, 1);
  }
  EXPECT_GT(of_several, 0);
}

// Of groups between barriers, as policies see it.
double CostAlone(const scheduler::Schedule& schedule) {
  double cost = 0;
  for (const scheduler::ScheduledGroup& group : schedule.groups) {
    machine::Counters counters = group.predicted;
    counters.cycles = group.alone_cycles;
    cost += scheduler::AdditiveCost(counters, group.nest, schedule.target, schedule.objective);
  }
  return cost;
}

// Whole values on small scratchpads: bounds <= exact <= best <= the others, and what takes the
// place of another value is right.
TEST(RandomChains, PoliciesAreOrderedAndValuesTakePlaces) {
  using scheduler::ResidencyPolicy;
  const uint32_t seed = std::random_device()();
  std::mt19937 random(seed);
  SCOPED_TRACE(Concat("seed ", seed));
  int took = 0;
  double best_over_exact = 0;
  int compared = 0;
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(Concat("chain ", i));
    RandomChain chain(&random);
    const ir::Graph graph = chain.Make();
    CompileOptions options = {.target = chain.Pick(0, 2) == 0 ? "edge32" : "edge32-unified",
                              .fuse = chain.Pick(0, 2) == 0};
    if (options.target == "edge32-unified") {
      options.memories = {Concat("pool=", 16 * chain.Pick(150, 2000))};
    }
    options.schedule.objective =
        chain.Pick(0, 1) == 0 ? scheduler::Objective::kLatency : scheduler::Objective::kTraffic;
    options.schedule.cascades = false;
    options.schedule.order = scheduler::OrderRule::kGraph;  // each policy may have its own
    options.schedule.search.budget = 20'000;
    std::map<ResidencyPolicy, double> costs;
    for (const ResidencyPolicy policy :
         {ResidencyPolicy::kNone, ResidencyPolicy::kOneStep, ResidencyPolicy::kOnsram,
          ResidencyPolicy::kBest, ResidencyPolicy::kExact}) {
      options.schedule.residency = policy;
      const Result<Compiled> compiled = CompileGraph(graph, options);
      if (!compiled.ok()) {
        EXPECT_EQ(compiled.status().code(), ErrorCode::kDoesNotFit) << compiled.status().message();
        break;
      }
      const scheduler::Schedule& schedule = compiled->schedule;
      costs[policy] = CostAlone(schedule);
      const scheduler::TrafficBound& bound = schedule.residency.bound;
      const machine::Counters totals = scheduler::Totals(schedule);
      EXPECT_LE(bound.dram_bytes, totals.dram_bytes());
      EXPECT_LE(bound.cycles, CyclesApart(schedule));
      EXPECT_LE(totals.cycles, CyclesApart(schedule));
      if (policy != ResidencyPolicy::kBest) continue;
      for (const scheduler::Resident& r : schedule.residents) took += r.over != ir::kNoValue;
      ExpectRuns(*compiled, random());
      if (HasFailure()) return;
    }
    if (costs.size() < 5) continue;
    EXPECT_GE(costs[ResidencyPolicy::kNone], costs[ResidencyPolicy::kOneStep]);
    EXPECT_GE(costs[ResidencyPolicy::kNone], costs[ResidencyPolicy::kOnsram]);
    EXPECT_GE(costs[ResidencyPolicy::kOneStep], costs[ResidencyPolicy::kBest]);
    EXPECT_GE(costs[ResidencyPolicy::kOnsram], costs[ResidencyPolicy::kBest]);
    EXPECT_GE(costs[ResidencyPolicy::kBest], costs[ResidencyPolicy::kExact]);
    best_over_exact += costs[ResidencyPolicy::kBest] / costs[ResidencyPolicy::kExact];
    ++compared;
  }
  EXPECT_GT(took, 10);
  EXPECT_GT(compared, 30);
  EXPECT_LE(best_over_exact / compared, 1.01);
}

// A plan with cascades, written and given back, is the same plan.
TEST(Cascade, ComesBackFromItsFile) {
  std::mt19937 random(7);
  int cascades = 0;
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    const ir::Graph graph = RandomChain(&random).Make();
    CompileOptions options = {.target = "edge32-unified", .memories = {"pool=3K"}};
    options.schedule.objective = scheduler::Objective::kTraffic;
    const Result<Compiled> chosen = CompileGraph(graph, options);
    if (!chosen.ok()) continue;  // too small for it
    ExpectComesBack(graph, options, chosen->schedule);
    ExpectRuns(*chosen, 1);
    cascades += static_cast<int>(chosen->schedule.cascades.size());
  }
  EXPECT_GT(cascades, 5);
}

// A program whose stripes are damaged is refused, not run.
TEST(Cascade, DamagedStripesAreRefused) {
  std::mt19937 random(11);
  int rings = 0;
  for (int i = 0; i < 60; ++i) {
    RandomChain chain(&random);
    const ir::Graph graph = chain.Make();
    ir::Graph passed = graph;
    ASSERT_TRUE(ir::RunPasses(&passed, {}).ok());
    if (passed.nodes.size() < 2) continue;
    const scheduler::GivenSchedule given = RandomCascade(passed, &chain);
    CompileOptions options = {.target = "onsram"};
    options.schedule.given = &given;
    const Result<Compiled> compiled = CompileGraph(graph, options);
    if (!compiled.ok()) continue;
    const auto refused = [&](auto damage) {
      machine::Program program = compiled->program;
      for (machine::Group& group : program.groups) {
        if (group.cascade >= 0 && !group.loops.empty() && damage(&group)) {
          return !machine::VerifyProgram(program).ok();
        }
      }
      return true;  // nothing of that kind to damage
    };
    EXPECT_TRUE(refused([](machine::Group* g) {
      g->dims[g->stripe_dim].lead = -1;
      return true;
    }));
    EXPECT_TRUE(refused([](machine::Group* g) {
      g->dims[g->stripe_dim].lead = g->dims[g->stripe_dim].extent;
      return true;
    }));
    EXPECT_TRUE(refused([](machine::Group* g) {
      g->stripe_dim = 77;
      return true;
    }));
    EXPECT_TRUE(refused([](machine::Group* g) {
      g->cascade = -1;
      return true;
    }));
    EXPECT_TRUE(refused([&](machine::Group* g) {
      for (machine::OperandDesc& operand : g->operands) {
        for (machine::AxisDesc& axis : operand.axes) {
          if (axis.ring < 2) continue;
          ++rings;
          axis.ring = axis.bound + 1;
          return true;
        }
      }
      return false;
    }));
  }
  EXPECT_GT(rings, 5);
}

// What is no cascade is refused with the reason.
TEST(Cascade, RefusesWhatIsNone) {
  EXPECT_FALSE(scheduler::ParseGivenSchedule(R"({"cascades": 1})").ok());
  EXPECT_FALSE(
      scheduler::ParseGivenSchedule(R"({"cascades": [{"groups": ["a"], "lines": 1}]})").ok());
  EXPECT_FALSE(
      scheduler::ParseGivenSchedule(R"({"cascades": [{"groups": ["a", "b"], "lines": 0}]})").ok());
  std::mt19937 random(3);
  const ir::Graph graph = RandomChain(&random).Make();
  const auto given =
      scheduler::ParseGivenSchedule(R"({"cascades": [{"groups": ["no", "such"], "lines": 1}]})");
  ASSERT_TRUE(given.ok());
  CompileOptions options;
  options.schedule.given = &*given;
  const Result<Compiled> compiled = CompileGraph(graph, options);
  ASSERT_FALSE(compiled.ok());
  EXPECT_EQ(compiled.status().code(), ErrorCode::kUsage);
}

}  // namespace
}  // namespace dla::testing
