#include "scheduler/plan_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace dla::scheduler {
namespace {

std::string ReadExample() {
  std::ifstream file(std::string(DLA_SOURCE_DIR) + "/docs/examples/plan_problem.json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<std::string> Solve(const std::string& text, ResidencyPolicy policy) {
  Result<PlanProblem> problem = ParsePlanProblem(text);
  if (!problem.ok()) return problem.status();
  return SolvePlan(*problem, {.policy = policy}, {});
}

// docs/PLAN.md states these figures.
TEST(PlanFile, ExampleCostsWhatTheDocumentSays) {
  for (const ResidencyPolicy policy : {ResidencyPolicy::kBest, ResidencyPolicy::kExact}) {
    const Result<std::string> text = Solve(ReadExample(), policy);
    ASSERT_TRUE(text.ok()) << text.status().message();
    const auto plan = nlohmann::json::parse(*text);
    EXPECT_EQ(plan["cost"], 16884);
    EXPECT_EQ(plan["cost_of_none"], 33140);
    EXPECT_LE(plan["bound"], plan["cost"]);
    EXPECT_EQ(plan["steps"][1]["option"], 2);
    ASSERT_EQ(plan["stays"].size(), 3U);
    EXPECT_EQ(plan["moves"].size(), 4U);
  }
  const auto none = nlohmann::json::parse(*Solve(ReadExample(), ResidencyPolicy::kNone));
  EXPECT_EQ(none["cost"], 33140);
  EXPECT_TRUE(none["stays"].empty());
}

TEST(PlanFile, RequiredTensorsStayOrThePlanFails) {
  const auto text = [](int bytes) {
    return Concat(R"({"memories": [{"name": "a", "bytes": 10}, {"name": "b", "bytes": 4}],
                      "steps": [{"name": "s"}, {"name": "t"}],
                      "tensors": [
                        {"name": "x", "bytes": 6, "producer": "s", "required": true,
                         "memories": ["a"], "uses": [{"step": "t"}]},
                        {"name": "y", "bytes": )",
                  bytes, R"(, "producer": "s", "required": true, "uses": [{"step": "t"}]}]})");
  };
  EXPECT_TRUE(Solve(text(4), ResidencyPolicy::kBest).ok());
  const Result<std::string> failed = Solve(text(5), ResidencyPolicy::kBest);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), ErrorCode::kDoesNotFit);
}

TEST(PlanFile, SaysWhereAProblemIsMalformed) {
  const auto message = [](const std::string& text) {
    const Result<PlanProblem> problem = ParsePlanProblem(text);
    EXPECT_FALSE(problem.ok());
    return problem.status().message();
  };
  EXPECT_NE(message("[]").find("not a JSON object"), std::string::npos);
  EXPECT_NE(message("{}").find("memories"), std::string::npos);
  const std::string head = R"({"memories": [{"name": "a", "bytes": 1}], "steps": [{"name": "s"}],)";
  EXPECT_NE(message(head + R"("tensors": [{"name": "x", "bytes": -1, "uses": []}]})").find("bytes"),
            std::string::npos);
  EXPECT_NE(message(head + R"("tensors": [{"name": "x", "bytes": 1, "uses": [{"step": "q"}]}]})")
                .find("tensors[0]"),
            std::string::npos);
}

}  // namespace
}  // namespace dla::scheduler
