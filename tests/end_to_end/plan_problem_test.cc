// The residency problem of a model, planned as another compiler's would be, and read back as pins.
#include "scheduler/plan_problem.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "scheduler/pins.h"
#include "tests/end_to_end/compile_run.h"
#include "tests/ir/graph_builder.h"

namespace dla::testing {
namespace {

using Json = nlohmann::json;
using scheduler::Objective;
using scheduler::ResidencyPolicy;

Json PlanOf(const std::string& problem, ResidencyPolicy policy) {
  const auto parsed = scheduler::ParsePlanProblem(problem);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  const auto plan = scheduler::SolvePlan(*parsed, {.policy = policy}, {});
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return plan.ok() ? Json::parse(*plan) : Json();
}

// With nothing held the problem costs what the schedule costs; the pins of its exact plan make a
// schedule that costs no more than that plan and runs.
void PlanAndPin(const Bundled& model, const std::string& target, Objective objective) {
  SCOPED_TRACE(Concat(model.name, " on ", target));
  CompileOptions options = {.target = target};
  options.schedule.objective = objective;
  options.schedule.cascades = false;
  options.schedule.prefetch = false;
  options.schedule.order = scheduler::OrderRule::kGraph;
  options.schedule.residency = ResidencyPolicy::kNone;
  const Compiled none = MustCompile(model, options);
  const auto problem =
      scheduler::MakePlanProblem(none.graph, none.schedule.target, options.schedule);
  ASSERT_TRUE(problem.ok()) << problem.status().message();
  const auto parsed = scheduler::ParsePlanProblem(*problem);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(scheduler::PlanProblemJson(*parsed), *problem);
  EXPECT_EQ(parsed->steps.size(), none.schedule.groups.size());

  const Json nothing = PlanOf(*problem, ResidencyPolicy::kNone);
  EXPECT_NEAR(nothing["cost"], CostOf(none.schedule), 1e-6 * CostOf(none.schedule));
  const Json best = PlanOf(*problem, ResidencyPolicy::kBest);
  EXPECT_LE(best["bound"], best["cost"]);
  EXPECT_LT(best["cost"], nothing["cost"]);
  const Json exact = PlanOf(*problem, ResidencyPolicy::kExact);
  EXPECT_LE(exact["cost"], best["cost"]);
  EXPECT_LE(exact["bound"], exact["cost"]);
  EXPECT_GT(exact["stays"].size(), 5U);

  const auto pins = scheduler::ParsePins(exact.dump());
  ASSERT_TRUE(pins.ok()) << pins.status().message();
  EXPECT_EQ(pins->hold.size(), exact["stays"].size());
  options.schedule.residency = ResidencyPolicy::kBest;
  options.schedule.pins = &*pins;
  const Compiled pinned = MustCompile(model, options);
  EXPECT_LE(CostOf(pinned.schedule), exact["cost"].get<double>() * (1 + 1e-9));
  ExpectRuns(pinned, 3);
}

TEST(PlanProblem, PlansOfItAreReadBackAsPins) {
  for (const Bundled& model : BundledModels()) {
    PlanAndPin(model, "edge32-unified", Objective::kTraffic);
    PlanAndPin(model, "edge32-ideal", Objective::kTraffic);
    PlanAndPin(model, "edge32", Objective::kLatency);
    PlanAndPin(model, "onsram", Objective::kEnergy);
  }
}

// A batch normalisation that is not fused is two groups of one name.
TEST(PlanProblem, StepsHaveNamesOfTheirOwn) {
  ir::GraphBuilder builder;
  const ir::ValueId x = builder.Input("x", {1, 4, 6, 6});
  const auto channels = [&](const char* name) { return builder.Floats(name, {4}, ir::Pattern(4)); };
  const ir::ValueId y = builder.Node("BatchNormalization", "norm",
                                     {x, channels("scale"), channels("bias"), channels("mean"),
                                      builder.Floats("variance", {4}, {1, 2, 3, 4})});
  CompileOptions options = {.fuse = false};
  const auto compiled = CompileGraph(builder.Build({builder.Node("Relu", "relu", {y})}), options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  const auto problem =
      scheduler::MakePlanProblem(compiled->graph, compiled->schedule.target, options.schedule);
  ASSERT_TRUE(problem.ok()) << problem.status().message();
  EXPECT_NE(problem->find("\"norm#2\""), std::string::npos) << *problem;
  PlanOf(*problem, ResidencyPolicy::kExact);
}

// Where the sweep was complete, no plan of whole values costs less, whoever made it.
TEST(PlanProblem, CompleteSchedulesCostNoMoreThanExactPlans) {
  CompileOptions options = {.target = "edge32-unified"};
  options.schedule.objective = Objective::kTraffic;
  options.schedule.cascades = false;
  options.schedule.order = scheduler::OrderRule::kGraph;
  options.schedule.residency = ResidencyPolicy::kExact;
  const Compiled compiled = MustCompile(BundledModels()[1], options);
  EXPECT_TRUE(compiled.schedule.residency.complete);
  const auto problem =
      scheduler::MakePlanProblem(compiled.graph, compiled.schedule.target, options.schedule);
  ASSERT_TRUE(problem.ok()) << problem.status().message();
  const Json plan = PlanOf(*problem, ResidencyPolicy::kExact);
  EXPECT_TRUE(plan["complete"].get<bool>());
  EXPECT_LE(CostOf(compiled.schedule), plan["cost"].get<double>() * (1 + 1e-9));
  options.schedule.residency = ResidencyPolicy::kBest;
  EXPECT_FALSE(MustCompile(BundledModels()[1], options).schedule.residency.complete);
}

TEST(PlanProblem, NothingFits) {
  CompileOptions options = {.target = "edge32-unified"};
  const Compiled compiled = MustCompile(BundledModels()[0], options);
  machine::Target small = compiled.schedule.target;
  small.memories[0].bytes = 64;
  const auto problem = scheduler::MakePlanProblem(compiled.graph, small, options.schedule);
  ASSERT_FALSE(problem.ok());
  EXPECT_EQ(problem.status().code(), ErrorCode::kDoesNotFit);
}

TEST(PlanProblem, PinsOfAPlanNeedItsStays) {
  const auto pins = scheduler::ParsePins(R"({"format": "dla-plan", "stays": [{"tensor": "x"}]})");
  ASSERT_FALSE(pins.ok());
  EXPECT_NE(pins.status().message().find("needs 'tensor' and 'memory'"), std::string::npos);
  EXPECT_FALSE(scheduler::ParsePins(R"({"format": "dla-plan"})").ok());
}

}  // namespace
}  // namespace dla::testing
