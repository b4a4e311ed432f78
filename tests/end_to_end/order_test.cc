// Groups in another order than the graph's: cheaper or not taken, values the same.
#include <gtest/gtest.h>

#include <random>

#include "ir/evaluate.h"
#include "scheduler/given_schedule.h"
#include "scheduler/residency.h"
#include "scheduler/schedule_json.h"
#include "tests/end_to_end/compile_run.h"
#include "tests/ir/graph_builder.h"

namespace dla::testing {
namespace {

using ir::GraphBuilder;
using ir::ValueId;

// Branches of convolutions that widen or narrow, written breadth first, then joined: added or
// concatenated, twice.
ir::Graph RandomBranches(std::mt19937* random) {
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>((*random)() % static_cast<uint64_t>(high - low + 1));
  };
  GraphBuilder builder;
  int64_t channels = pick(2, 6);
  ValueId x = builder.Input("x", {1, channels, pick(5, 14), pick(5, 12)});
  int names = 0;
  const auto conv = [&](ValueId from, int64_t c, int64_t m) {
    const std::string name = "n" + std::to_string(names++);
    const int64_t k = pick(0, 1) * 2 + 1;
    const ValueId w = builder.Floats(name + ".w", {m, c, k, k}, ir::Pattern(m * c * k * k, names));
    return builder.Node("Conv", name, {from, w}, {{"pads", ir::Shape{k / 2, k / 2, k / 2, k / 2}}});
  };
  for (int part = 0; part < 2; ++part) {
    const int64_t branches = pick(2, 4);
    const bool adds = pick(0, 1) == 0;
    std::vector<ValueId> ends(static_cast<size_t>(branches), x);
    std::vector<int64_t> widths(static_cast<size_t>(branches), channels);
    const int64_t joined = pick(2, 6);
    for (int64_t depth = pick(2, 3); depth-- > 0;) {
      for (size_t b = 0; b < ends.size(); ++b) {
        const int64_t m = depth == 0 ? joined : pick(1, 12);
        ends[b] = conv(ends[b], widths[b], m);
        widths[b] = m;
      }
    }
    const std::string name = "join" + std::to_string(part);
    if (adds) {
      x = ends[0];
      for (size_t b = 1; b < ends.size(); ++b) {
        x = builder.Node("Add", name + "." + std::to_string(b), {x, ends[b]});
      }
      channels = joined;
    } else {
      x = builder.Node("Concat", name, ends, {{"axis", int64_t{1}}});
      channels = joined * branches;
    }
  }
  return builder.Build({conv(x, channels, 3)});
}

double CostOf(const scheduler::Schedule& schedule) {
  double cost = 0;
  for (const scheduler::ScheduledGroup& group : schedule.groups) {
    cost +=
        scheduler::AdditiveCost(group.predicted, group.nest, schedule.target, schedule.objective);
  }
  return cost;
}

std::vector<std::string> NamesOf(const scheduler::Schedule& schedule) {
  std::vector<std::string> names;
  for (const scheduler::ScheduledGroup& group : schedule.groups) names.push_back(group.name);
  return names;
}

void ExpectRuns(const Compiled& compiled, uint64_t jitter) {
  const std::map<std::string, ir::Tensor> inputs = ir::PatternInputs(compiled.graph);
  const auto expected = ir::Evaluate(compiled.graph, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  std::vector<Tensor> tensors;
  for (const auto& [name, t] : inputs) tensors.push_back({name, t.type, t.shape, t.bytes});
  const auto run = RunCompiled(compiled, tensors, {.check = true, .jitter = jitter});
  ASSERT_TRUE(run.ok()) << run.status().message();
  const auto timed = RunCompiled(compiled, tensors, {.check = true});
  ASSERT_TRUE(timed.ok()) << timed.status().message();
  ExpectAsPredicted(compiled, timed->result);
  for (const auto& [name, tensor] : run->outputs) {
    const ir::Tensor& value = expected->at(name);
    EXPECT_LE(RelativeError(tensor, {name, value.type, value.shape, value.bytes}), 1e-5) << name;
    EXPECT_EQ(tensor.bytes, timed->outputs.at(name).bytes) << name;
  }
}

TEST(Order, BestIsNeverDearerAndComputesTheSame) {
  const uint32_t seed = std::random_device()();
  std::printf("seed %u\n", seed);
  SCOPED_TRACE(Concat("seed ", seed));
  std::mt19937 random(seed);
  int reordered = 0, compared = 0;
  for (int run = 0; run < 60; ++run) {
    SCOPED_TRACE(Concat("graph ", run));
    const ir::Graph graph = RandomBranches(&random);
    CompileOptions options = {.target = "edge32-unified"};
    options.memories = {Concat("pool=", 16 * (100 + random() % 900))};
    options.schedule.objective =
        run % 2 == 0 ? scheduler::Objective::kTraffic : scheduler::Objective::kLatency;
    options.schedule.search.budget = 20'000;
    options.schedule.order = scheduler::OrderRule::kGraph;
    const Result<Compiled> plain = CompileGraph(graph, options);
    options.schedule.order = scheduler::OrderRule::kBest;
    const Result<Compiled> best = CompileGraph(graph, options);
    ASSERT_EQ(plain.ok(), best.ok());
    if (!plain.ok()) continue;
    ++compared;
    EXPECT_LE(CostOf(best->schedule), CostOf(plain->schedule));
    ExpectRuns(*best, random());
    if (NamesOf(best->schedule) == NamesOf(plain->schedule)) continue;
    ++reordered;
    EXPECT_LT(CostOf(best->schedule), CostOf(plain->schedule));
    // Written and given back, it is the same schedule.
    const std::string json = scheduler::ScheduleJson(best->graph, best->schedule);
    const auto given = scheduler::ParseGivenSchedule(json);
    ASSERT_TRUE(given.ok()) << given.status().message();
    options.schedule.given = &*given;
    const Result<Compiled> back = CompileGraph(graph, options);
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(NamesOf(back->schedule), NamesOf(best->schedule));
    EXPECT_TRUE(Totals(back->schedule) == Totals(best->schedule));
    if (HasFailure()) return;
  }
  std::printf("%d of %d in another order\n", reordered, compared);
  EXPECT_GT(compared, 40);
  EXPECT_GT(reordered, 5);
}

}  // namespace
}  // namespace dla::testing
