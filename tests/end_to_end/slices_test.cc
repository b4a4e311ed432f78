// Slices: random chains cut along rows, columns and channels, executed with every check.
#include "scheduler/slices.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "ir/pass.h"
#include "scheduler/given_schedule.h"
#include "scheduler/report.h"
#include "scheduler/schedule_json.h"
#include "tests/end_to_end/compile_run.h"
#include "tests/end_to_end/random_chain.h"

namespace dla::testing {
namespace {

size_t At(int64_t i) { return static_cast<size_t>(i); }

scheduler::Slicing RandomSlicing(const ir::Graph& graph, RandomChain* random) {
  const auto groups = static_cast<int64_t>(graph.nodes.size());
  const int64_t first = random->Pick(0, groups - 1);
  const int64_t last = random->Pick(first, std::min(groups - 1, first + 4));
  const char* dimensions[] = {"E", "F", "M", "E", "F", "G"};
  scheduler::Slicing slicing = {.dimension = dimensions[random->Pick(0, 5)],
                                .count = random->Pick(2, 4)};
  for (int64_t g = first; g <= last; ++g) slicing.groups.push_back(graph.nodes[At(g)].name);
  return slicing;
}

// Nominal MACs are those of the schedule without slices: what is computed again counts as issued
// alone.
void ExpectNominalMacs(const Compiled& sliced, const Compiled& whole) {
  const machine::Counters a = Totals(sliced.schedule), b = Totals(whole.schedule);
  EXPECT_EQ(a.macs_array + a.macs_vector, b.macs_array + b.macs_vector);
  EXPECT_GE(a.macs_issued, a.macs_array + a.macs_vector);
}

// Values are those of the reference evaluator, counters as predicted, whatever is cut: once, or the
// slices again along another dimension; cascades and residency are planned as ever.
TEST(Slices, RandomChainsComputeTheSame) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(Concat("seed ", seed));
  std::mt19937 random(seed);
  const char* targets[] = {"edge32", "edge32-unified", "onsram", "meta-df", "edge32-ws"};
  int ran = 0, twice = 0, repeated = 0;
  for (int i = 0; i < 250; ++i) {
    SCOPED_TRACE(i);
    RandomChain chain(&random);
    const ir::Graph graph = chain.Make();
    ir::Graph passed = graph;
    ASSERT_TRUE(ir::RunPasses(&passed, {}).ok());
    scheduler::GivenSchedule given;
    given.slicings = {RandomSlicing(passed, &chain)};
    CompileOptions options = {.target = targets[i % 5]};
    if (i % 5 == 1) options.memories = {Concat("pool=", chain.Pick(3, 20), "K")};
    options.schedule.objective =
        i % 2 == 0 ? scheduler::Objective::kTraffic : scheduler::Objective::kLatency;
    options.schedule.given = &given;
    Result<Compiled> compiled = CompileGraph(graph, options);
    if (!compiled.ok()) continue;  // the chain cannot be cut so, or is too large
    if (chain.Pick(0, 1) == 0) {   // a part of the first slice, along another dimension
      scheduler::Slicing again = {.dimension = given.slicings[0].dimension == "E" ? "F" : "E",
                                  .count = 2};
      const size_t members = given.slicings[0].groups.size();
      size_t at = 0;
      while (compiled->schedule.groups[at].name.find(" [") == std::string::npos) ++at;
      for (size_t m = 0; m < members; ++m) {
        again.groups.push_back(compiled->schedule.groups[at + m].name);
      }
      given.slicings.push_back(again);
      Result<Compiled> cut_twice = CompileGraph(graph, options);
      if (cut_twice.ok()) compiled = std::move(cut_twice), ++twice;
    }
    ExpectRuns(*compiled, random());
    CompileOptions plain = options;
    plain.schedule.given = nullptr;
    plain.schedule.slices = false;
    const Result<Compiled> whole = CompileGraph(graph, plain);
    ASSERT_TRUE(whole.ok());
    ExpectNominalMacs(*compiled, *whole);
    const machine::Counters totals = Totals(compiled->schedule);
    repeated += totals.macs_issued > Totals(whole->schedule).macs_issued ? 1 : 0;
    ++ran;
    if (HasFailure()) return;
  }
  EXPECT_GT(ran, 40);
  EXPECT_GT(twice, 5);
  EXPECT_GT(repeated, 10);
}

// A node that was cut is explained slice by slice, and so is its value.
void ExpectExplained(const Compiled& sliced) {
  for (const scheduler::ScheduledGroup& group : sliced.schedule.groups) {
    const size_t at = group.name.find(" [");
    if (at == std::string::npos) continue;
    const auto node = scheduler::Explain(sliced.schedule, group.onnx_nodes.front());
    ASSERT_TRUE(node.ok()) << node.status().message();
    EXPECT_NE(node->find(group.name), std::string::npos) << *node;
    const ir::Value& made = sliced.schedule.graph.values[At(group.nest.operands.back().value)];
    const std::string whole = made.name.substr(0, made.name.find(" ["));
    const auto value = scheduler::Explain(sliced.schedule, whole);
    ASSERT_TRUE(value.ok()) << value.status().message();
  }
}

// What is chosen costs no more than without, and comes back from its file.
TEST(Slices, ChosenOnesWinAndComeBack) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(Concat("seed ", seed));
  std::mt19937 random(seed);
  int chosen = 0;
  for (int i = 0; i < 150; ++i) {
    SCOPED_TRACE(i);
    RandomChain chain(&random);
    const ir::Graph graph = chain.Make();
    CompileOptions options = {.target = i % 2 == 0 ? "edge32-unified" : "edge32-ideal-unified",
                              .memories = {Concat("pool=", chain.Pick(1000, 4000))}};
    options.schedule.objective = i % 3 == 0   ? scheduler::Objective::kLatency
                                 : i % 3 == 1 ? scheduler::Objective::kTraffic
                                              : scheduler::Objective::kEnergy;
    const Result<Compiled> best = CompileGraph(graph, options);
    if (!best.ok()) continue;  // too small for it
    options.schedule.slices = false;
    const Result<Compiled> without = CompileGraph(graph, options);
    ASSERT_TRUE(without.ok());
    ASSERT_LE(CostOf(best->schedule), CostOf(without->schedule));
    ASSERT_LE(best->schedule.residency.bound.dram_bytes, Totals(best->schedule).dram_bytes());
    ASSERT_LE(best->schedule.residency.bound.cycles, Totals(best->schedule).cycles);
    if (best->schedule.slicings.empty()) continue;
    ++chosen;
    ExpectRuns(*best, random());
    ExpectNominalMacs(*best, *without);
    ExpectExplained(*best);
    ExpectComesBack(graph, options, best->schedule);
    if (HasFailure()) return;
  }
  EXPECT_GT(chosen, 5);
}

Result<Compiled> CompileInDram(const ir::Graph& graph, const scheduler::GivenSchedule& given,
                               scheduler::MultiplyBy multiply) {
  CompileOptions options = {.target = "edge32"};
  options.schedule.residency = scheduler::ResidencyPolicy::kNone;
  options.schedule.multiply = multiply;
  options.schedule.given = &given;
  return CompileGraph(graph, options);
}

// How many copies of weights in tile order DRAM holds; -1: nothing was compiled.
int PackedWeights(const Result<Compiled>& compiled) {
  EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  if (!compiled.ok()) return -1;
  ExpectRuns(*compiled, 5);
  int packed = 0;
  for (const scheduler::DramRegion& region : compiled->schedule.regions) {
    packed += region.kind == scheduler::DramKind::kPackedWeight ? 1 : 0;
  }
  return packed;
}

// Groups whose weights are packed alike have one copy of them: slices, those of groups side by
// side included, and convolutions that read the same weight; in other tiles they have their own.
TEST(Slices, ShareTheirWeights) {
  using scheduler::MultiplyBy;
  const ir::AttributeMap pads = {{"pads", ir::Shape{1, 1, 1, 1}}};
  ir::AttributeMap grouped = pads;
  grouped["group"] = int64_t{4};
  ir::GraphBuilder one, packed, two;
  const auto weight = [](ir::GraphBuilder* builder, int64_t c) {
    return builder->Floats("w", {8, c, 3, 3}, ir::Pattern(8 * c * 9));
  };
  const ir::ValueId x = one.Input("x", {1, 8, 8, 8});
  const ir::Graph conv = one.Build({one.Node("Conv", "y", {x, weight(&one, 8)}, pads)});
  scheduler::GivenSchedule given;
  given.slicings = {{{"y"}, "E", 4}};
  EXPECT_EQ(PackedWeights(CompileInDram(conv, given, MultiplyBy::kArray)), 1);

  const ir::ValueId p = packed.Input("x", {1, 8, 8, 8});
  const ir::Graph side_by_side =
      packed.Build({packed.Node("Conv", "y", {p, weight(&packed, 2)}, grouped)});
  EXPECT_EQ(PackedWeights(CompileInDram(side_by_side, given, MultiplyBy::kPacked)), 1);

  const ir::ValueId t = two.Input("x", {1, 8, 8, 8});
  const ir::ValueId w = weight(&two, 8);
  const ir::ValueId first = two.Node("Conv", "a", {t, w}, pads);
  const ir::Graph twice = two.Build({first, two.Node("Conv", "b", {first, w}, pads)});
  given.slicings.clear();
  const Result<Compiled> alike = CompileInDram(twice, given, MultiplyBy::kArray);
  ASSERT_EQ(PackedWeights(alike), 1);
  auto json = nlohmann::ordered_json::parse(scheduler::ScheduleJson(alike->schedule));
  json["groups"][1]["mapping"]["blocks"]["M"] = 3;
  json["groups"][1]["mapping"]["order"].push_back("M");
  const auto other = scheduler::ParseGivenSchedule(json.dump());
  ASSERT_TRUE(other.ok()) << other.status().message();
  EXPECT_EQ(PackedWeights(CompileInDram(twice, *other, MultiplyBy::kArray)), 2);
}

// Names that recur, as ONNX allows, do no harm.
TEST(Slices, NamesMayRecur) {
  std::mt19937 random(5);
  int chosen = 0;
  for (int i = 0; i < 120; ++i) {
    SCOPED_TRACE(i);
    RandomChain chain(&random);
    ir::Graph graph = chain.Make();
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      graph.nodes[n].name = Concat("n", n % (graph.nodes.size() - 1));
    }
    CompileOptions options = {.target = "edge32-ideal-unified",
                              .memories = {Concat("pool=", chain.Pick(1000, 4000))}};
    options.schedule.objective = scheduler::Objective::kTraffic;
    const Result<Compiled> compiled = CompileGraph(graph, options);
    if (!compiled.ok()) continue;  // too small for it
    chosen += compiled->schedule.slicings.empty() ? 0 : 1;
    ExpectComesBack(graph, options, compiled->schedule);
    ExpectRuns(*compiled, random());
    if (HasFailure()) return;
  }
  EXPECT_GT(chosen, 2);
}

// What cannot be cut is refused with the reason.
TEST(Slices, SayWhyNot) {
  ir::GraphBuilder builder;
  const ir::ValueId x = builder.Input("x", {1, 4, 8, 8});
  const ir::ValueId w = builder.Floats("w", {4, 4, 3, 3}, ir::Pattern(4 * 4 * 9));
  const ir::AttributeMap pads = {{"pads", ir::Shape{1, 1, 1, 1}}};
  const ir::ValueId a = builder.Node("Conv", "a", {x, w}, pads);
  const ir::ValueId b = builder.Node("Conv", "b", {a, w}, pads);
  const ir::ValueId c = builder.Node("Conv", "c", {a, w}, pads);
  const ir::Graph graph = builder.Build({b, c});
  const auto refusal = [&](scheduler::Slicing slicing) {
    scheduler::GivenSchedule given;
    given.slicings = {std::move(slicing)};
    CompileOptions options;
    options.schedule.given = &given;
    const Result<Compiled> compiled = CompileGraph(graph, options);
    return compiled.ok() ? "none" : compiled.status().message();
  };
  const auto expect = [&](const scheduler::Slicing& slicing, const char* why) {
    EXPECT_NE(refusal(slicing).find(why), std::string::npos) << refusal(slicing);
  };
  expect({{"a", "b"}, "E", 2}, "slices: 'a' is read by 'c', which is not behind 'a' in the chain");
  expect({{"a", "nothing"}, "E", 2}, "slices: there is no group 'nothing'");
  expect({{"b"}, "Q", 2}, "slices: the output of 'b' has no dimension 'Q'");
  expect({{"b"}, "E", 9}, "slices: 'E' of 'b' is 8 long: it can be cut into 2 to 8 slices, not 9");
  expect({{"b", "b"}, "E", 2}, "slices: group 'b' is listed twice");
  expect({{}, "E", 2}, "slices: no groups are named");
  EXPECT_EQ(refusal({{"b"}, "E", 4}), "none");
}

// Of a gathered operand the axes say nothing of where it lies (stride 0): it is not lines.
TEST(Slices, GatheredLinesAreNone) {
  scheduler::GroupGraph groups;
  for (const char* name : {"x", "a", "b"}) {
    const auto id = static_cast<ir::ValueId>(groups.graph.values.size());
    groups.graph.values.push_back(
        {.name = name, .shape = {4}, .storage = {.root = id, .strides = {1}}});
  }
  groups.graph.inputs = {0};
  groups.graph.outputs = {2};
  for (const ir::ValueId v : {0, 1}) {  // a reads x, b gathers from a
    const auto operand = [](ir::ValueId value, int64_t stride) {
      return ir::Operand{.value = value,
                         .axes = {{.terms = {{0, 1}}, .bound = 4, .stride = stride}}};
    };
    groups.graph.nodes.push_back({.name = v == 0 ? "a" : "b", .inputs = {v}, .outputs = {v + 1}});
    groups.nests.push_back(
        {.dimensions = {{"d0", 4}}, .operands = {operand(v, v == 0 ? 1 : 0), operand(v + 1, 1)}});
  }
  const auto sliced = scheduler::Slice(groups, {{"a", "b"}, "d0", 2});
  ASSERT_FALSE(sliced.ok());
  EXPECT_EQ(sliced.status().message(), "'b' does not take 'a' line by line along 'd0'");
  EXPECT_TRUE(scheduler::Slice(groups, {{"b"}, "d0", 2}).ok());
}

}  // namespace
}  // namespace dla::testing
