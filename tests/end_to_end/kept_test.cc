// Values that are loaded whole and stay: read by several groups, between two uses, or from
// inference to inference. Every plan is executed.
#include <gtest/gtest.h>

#include <random>

#include "scheduler/residency_candidates.h"
#include "tests/end_to_end/compile_run.h"
#include "tests/ir/graph_builder.h"
#include "tests/random_pick.h"

namespace dla::testing {
namespace {

using ir::GraphBuilder;
using ir::Pattern;
using ir::Shape;
using ir::ValueId;
using scheduler::Resident;

// Runs four times; the later inferences are counted as predicted, too.
void ExpectRunsAgain(const Compiled& compiled) {
  const Outcome outcome = ExpectRuns(compiled, 7, 4);
  ASSERT_TRUE(outcome.result.steady.has_value());
  const runtime::Counts& steady = *outcome.result.steady;
  for (size_t g = 0; g < steady.groups.size(); ++g) {
    machine::Counters counted = steady.groups[g].counters;
    EXPECT_TRUE(counted == compiled.schedule.groups[g].steady)
        << "group " << g << ": " << counted.cycles << " cycles, " << counted.dram_bytes()
        << " bytes; predicted " << compiled.schedule.groups[g].steady.cycles << ", "
        << compiled.schedule.groups[g].steady.dram_bytes();
  }
}

Compiled MustCompileGraph(const ir::Graph& graph, const CompileOptions& options) {
  Result<Compiled> compiled = CompileGraph(graph, options);
  EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  return compiled.ok() ? std::move(*compiled) : Compiled{};
}

int64_t KeptBytes(const scheduler::Schedule& schedule) {
  int64_t bytes = 0;
  for (const Resident& r : schedule.residents) bytes += r.through.kept ? r.bytes : 0;
  return bytes;
}

int CountLoaded(const scheduler::Schedule& schedule) {
  int count = 0;
  for (const Resident& r : schedule.residents) count += r.through.loaded ? 1 : 0;
  return count;
}

// A weight that very many groups read may stay, but not in every part of its life that there is:
// the parts would be as many as the square of its readers.
TEST(Kept, OfVeryManyReadersFewPartsAreTried) {
  GraphBuilder builder;
  ValueId x = builder.Input("x", {1, 4, 6, 6});
  const ValueId w = builder.Floats("w", {4, 4, 3, 3}, Pattern(4 * 4 * 9));
  constexpr int kReaders = 300;
  for (int i = 0; i < kReaders; ++i) {
    x = builder.Node("Conv", Concat("n", i), {x, w}, {{"pads", Shape{1, 1, 1, 1}}});
  }
  CompileOptions options = {.target = "edge32-unified"};
  options.schedule.objective = scheduler::Objective::kTraffic;
  options.schedule.slices = false;
  const Compiled compiled = MustCompileGraph(builder.Build({x}), options);
  const scheduler::Schedule& schedule = compiled.schedule;
  const std::vector<ir::Nest> nests = scheduler::NestsOf(schedule);
  const scheduler::ValueFlows flows = scheduler::FlowsOf(schedule.graph, nests);
  int parts = 0, longest = 0;
  for (const scheduler::Candidate& candidate :
       scheduler::CandidatesOf(schedule.graph, nests, flows, schedule.target, false)) {
    if (schedule.graph.values[static_cast<size_t>(candidate.root)].constant == nullptr) continue;
    ++parts;
    longest = std::max(longest, static_cast<int>(candidate.touches.size()));
  }
  EXPECT_EQ(longest, kReaders);
  EXPECT_LT(parts, 2 * kReaders);  // of 44,850
  ExpectRuns(compiled, 3);
}

// Two towers with the same weights.
ir::Graph Siamese() {
  GraphBuilder builder;
  const ValueId a = builder.Input("a", {1, 8, 12, 12});
  const ValueId b = builder.Input("b", {1, 8, 12, 12});
  const ValueId w = builder.Floats("w", {8, 8, 3, 3}, Pattern(8 * 8 * 9));
  const ir::AttributeMap pads = {{"pads", Shape{1, 1, 1, 1}}};
  const ValueId x = builder.Node("Conv", "x", {a, w}, pads);
  const ValueId y = builder.Node("Conv", "y", {b, w}, pads);
  return builder.Build({builder.Node("Mul", "z", {x, y})});
}

// An input that three groups read, with windows.
ir::Graph Branches() {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", {1, 8, 10, 10});
  const auto conv = [&](const std::string& name, int64_t k) {
    const ValueId w = builder.Floats(name + ".w", {8, 8, k, k}, Pattern(64 * k * k, int(k)));
    return builder.Node("Conv", name, {x, w}, {{"pads", Shape{k / 2, k / 2, k / 2, k / 2}}});
  };
  const ValueId a = conv("a", 1), b = conv("b", 3), c = conv("c", 5);
  return builder.Build({builder.Node("Concat", "cat", {a, b, c}, {{"axis", int64_t{1}}})});
}

TEST(Kept, SharedWeightsAndInputsAreLoadedOnce) {
  for (const char* target : {"edge32", "edge32-unified", "edge32-ideal", "onsram", "meta-df"}) {
    for (const ir::Graph& graph : {Siamese(), Branches()}) {
      SCOPED_TRACE(Concat(target, " ", graph.inputs.size(), " inputs"));
      CompileOptions options = {.target = target};
      options.schedule.objective = scheduler::Objective::kTraffic;
      options.schedule.cascades = false;
      const Compiled compiled = MustCompileGraph(graph, options);
      EXPECT_GE(CountLoaded(compiled.schedule), 1);
      const int64_t bytes = Totals(compiled.schedule).dram_bytes();
      EXPECT_GE(bytes, compiled.schedule.residency.bound.dram_bytes);
      EXPECT_EQ(bytes, compiled.schedule.residency.bound.compulsory_bytes);
      ExpectRunsAgain(compiled);
    }
  }
}

// Later inferences move exactly what stays less.
TEST(Kept, WeightsStayFromInferenceToInference) {
  for (const char* target : {"edge32", "edge32-unified", "onsram", "tpu256", "edge32-ws"}) {
    for (const ir::Graph& graph : {Siamese(), Branches()}) {
      SCOPED_TRACE(Concat(target, " ", graph.inputs.size(), " inputs"));
      CompileOptions options = {.target = target};
      options.schedule.objective = scheduler::Objective::kTraffic;
      const Compiled once = MustCompileGraph(graph, options);
      EXPECT_EQ(KeptBytes(once.schedule), 0);
      EXPECT_TRUE(once.program.steady.empty());
      options.schedule.inferences = 100;
      const Compiled kept = MustCompileGraph(graph, options);
      const int64_t first = Totals(kept.schedule).dram_bytes();
      const int64_t steady = SteadyTotals(kept.schedule).dram_bytes();
      EXPECT_GT(KeptBytes(kept.schedule), 0);
      EXPECT_EQ(first - steady, KeptBytes(kept.schedule));
      EXPECT_LT(steady, Totals(once.schedule).dram_bytes());
      EXPECT_LT(SteadyTotals(kept.schedule).cycles, Totals(kept.schedule).cycles);
      ExpectRunsAgain(kept);
    }
  }
}

// A chain of 1x1 convolutions whose first value is read again at the end (and, in between, twice).
ir::Graph LongSkip(std::mt19937* random) {
  GraphBuilder builder;
  const RandomPick pick(random);
  const int64_t c = pick(4, 12), h = pick(6, 14);
  ValueId x = builder.Input("x", {1, c, h, h});
  std::vector<ValueId> values = {x};
  const int64_t count = pick(4, 8);
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = Concat("n", i);
    const int64_t k = 2 * pick(0, 1) + 1;
    const ValueId w = builder.Floats(name + ".w", {c, c, k, k}, Pattern(c * c * k * k, int(i)));
    x = builder.Node("Conv", name, {x, w}, {{"pads", Shape{k / 2, k / 2, k / 2, k / 2}}});
    if (pick(0, 1) == 0) x = builder.Node("Relu", name + ".relu", {x});
    const ValueId other = values[static_cast<size_t>(pick(0, int64_t(values.size()) - 1))];
    if (pick(0, 1) == 0) x = builder.Node("Mul", name + ".mul", {x, other});
    values.push_back(x);
  }
  return builder.Build({x, values[values.size() / 2]});
}

// Parts of lives on small scratchpads, for one inference and for many: as predicted, never dearer
// than without them, and read back from the schedule.
TEST(Kept, PartsOfLivesRunAsPredicted) {
  const uint32_t seed = std::random_device()();
  std::mt19937 random(seed);
  SCOPED_TRACE(Concat("seed ", seed));
  int parts = 0, kept = 0;
  for (int i = 0; i < 40; ++i) {
    const ir::Graph graph = LongSkip(&random);
    CompileOptions options = {.target = i % 4 == 3 ? "onsram" : "edge32-unified"};
    options.memories = {Concat("pool=", 64 * (40 + random() % 200))};
    options.schedule.objective =
        i % 3 == 0 ? scheduler::Objective::kLatency : scheduler::Objective::kTraffic;
    options.schedule.inferences = i % 2 == 0 ? 1 : 50;
    options.schedule.cascades = i % 5 == 0;
    SCOPED_TRACE(Concat("graph ", i, " ", options.target, " ", options.memories[0]));
    const Result<Compiled> compiled = CompileGraph(graph, options);
    if (!compiled.ok()) {
      EXPECT_EQ(compiled.status().code(), ErrorCode::kDoesNotFit) << compiled.status().message();
      continue;
    }
    for (const Resident& r : compiled->schedule.residents) {
      parts += r.through.loaded || r.through.stored ? 1 : 0;
      kept += r.through.kept ? 1 : 0;
    }
    EXPECT_GE(Totals(compiled->schedule).dram_bytes(),
              compiled->schedule.residency.bound.dram_bytes);
    ExpectRunsAgain(*compiled);
    if (HasFailure()) return;
  }
  EXPECT_GT(parts, 5);
  EXPECT_GT(kept, 5);
}

}  // namespace
}  // namespace dla::testing
