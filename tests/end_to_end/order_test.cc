// Groups in another order than the graph's: cheaper or not taken, values the same.
#include <gtest/gtest.h>

#include <random>

#include "machine/target_file.h"
#include "scheduler/given_schedule.h"
#include "scheduler/schedule_json.h"
#include "tests/end_to_end/compile_run.h"
#include "tests/ir/graph_builder.h"
#include "tests/random_pick.h"

namespace dla::testing {
namespace {

using ir::GraphBuilder;
using ir::ValueId;

// Branches of convolutions that widen or narrow, written breadth first, then joined: added or
// concatenated, twice.
ir::Graph RandomBranches(std::mt19937* random) {
  const RandomPick pick(random);
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

std::vector<std::string> NamesOf(const scheduler::Schedule& schedule) {
  std::vector<std::string> names;
  for (const scheduler::ScheduledGroup& group : schedule.groups) names.push_back(group.name);
  return names;
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
    ExpectComesBack(graph, options, best->schedule);
    if (HasFailure()) return;
  }
  std::printf("%d of %d in another order\n", reordered, compared);
  EXPECT_GT(compared, 40);
  EXPECT_GT(reordered, 5);
}

// The file of a schedule with other names of scratchpads.
Result<scheduler::GivenSchedule> Renamed(const Compiled& compiled, const std::string& from,
                                         const std::string& to) {
  std::string json = scheduler::ScheduleJson(compiled.schedule);
  for (size_t at = json.find(from); at != std::string::npos; at = json.find(from, at + 1)) {
    json.replace(at, from.size(), to);
  }
  return scheduler::ParseGivenSchedule(json);
}

// A schedule for two scratchpads is one for a single scratchpad of their size: told of it, the
// compiler never makes a dearer one, whatever policy it has of its own; nor one that runs
// otherwise.
TEST(Start, NeverDearerThanWhatItStartsFrom) {
  const uint32_t seed = std::random_device()();
  std::printf("seed %u\n", seed);
  SCOPED_TRACE(Concat("seed ", seed));
  std::mt19937 random(seed);
  int compared = 0, won = 0, left_out = 0;
  const Result<machine::Target> base = machine::LoadTarget("edge32-unified", {});
  ASSERT_TRUE(base.ok());
  for (int run = 0; run < 20; ++run) {
    SCOPED_TRACE(Concat("graph ", run));
    const ir::Graph graph = RandomBranches(&random);
    machine::Target one = *base, two = *base;
    const int64_t half = 16 * (60 + static_cast<int64_t>(random() % 400));
    one.memories[0].bytes = 2 * half;
    two.memories[0].bytes = half;
    two.memories.push_back(two.memories[0]);
    two.memories[1].name = "other";
    CompileOptions options = {.machine = two};
    options.schedule.objective = scheduler::Objective::kTraffic;
    // Tiles of cascades are laid out anew, and other nests have other mappings.
    options.schedule.cascades = false;
    options.schedule.multiply = scheduler::MultiplyBy::kArray;
    options.schedule.search.budget = 2'000;
    options.schedule.prefetch = false;
    const Result<Compiled> finer = CompileGraph(graph, options);
    if (!finer.ok()) continue;
    const auto start = Renamed(*finer, "\"other\"", "\"pool\"");
    ASSERT_TRUE(start.ok()) << start.status().message();
    options.machine = one;
    // A poor policy is put to the test more often than the best.
    if (run % 3 != 0) options.schedule.residency = scheduler::ResidencyPolicy::kOneStep;
    const Result<Compiled> plain = CompileGraph(graph, options);
    options.schedule.starts = {&*start};
    const Result<Compiled> told = CompileGraph(graph, options);
    ASSERT_TRUE(told.ok()) << told.status().message();
    ASSERT_TRUE(plain.ok());
    left_out += static_cast<int>(told->schedule.warnings.size());
    if (told->schedule.warnings.empty()) {
      EXPECT_LE(Totals(told->schedule).dram_bus_bytes(), Totals(finer->schedule).dram_bus_bytes());
    }
    EXPECT_LE(CostOf(told->schedule), CostOf(plain->schedule));
    ++compared;
    if (CostOf(told->schedule) == CostOf(plain->schedule)) continue;
    ++won;
    ExpectRuns(*told, random());
    if (HasFailure()) return;
  }
  std::printf("%d of %d cheaper with a start, %d impossible\n", won, compared, left_out);
  EXPECT_LE(left_out, 3);
  EXPECT_GT(compared, 10);
  EXPECT_GT(won, 2);
}

}  // namespace
}  // namespace dla::testing
