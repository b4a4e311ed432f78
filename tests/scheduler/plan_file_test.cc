#include "scheduler/plan_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "scheduler/plan_problem.h"
#include "tests/random_pick.h"

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

// Options that save in any way, alone, together, in one memory only: the bound is one.
TEST(PlanFile, BoundIsBelowExactWhateverOptionsSave) {
  const uint32_t seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const RandomPick pick(&random);
  int saved = 0, tight = 0;
  for (int run = 0; run < 1500; ++run) {
    SCOPED_TRACE(Concat("seed ", seed, ", problem ", run));
    PlanProblem problem;
    for (int64_t m = pick(1, 2); m > 0; --m) {
      problem.memories.push_back({.name = Concat("m", m), .bytes = pick(20, 60)});
    }
    const auto steps = static_cast<int>(pick(3, 6));
    const auto memories = static_cast<int64_t>(problem.memories.size());
    for (int64_t t = pick(1, 4); t > 0; --t) {
      const auto producer = static_cast<int>(pick(0, steps - 2));
      PlanTensor tensor = {.name = Concat("t", t), .bytes = pick(5, 40), .producer = producer};
      tensor.store_cost = static_cast<double>(pick(0, 5));
      tensor.is_whole = pick(0, 1) == 0;
      for (int s = producer + 1; s < steps; ++s) {
        if (pick(0, 2) == 0 || (s + 1 == steps && tensor.uses.empty())) {
          tensor.uses.emplace_back(s, static_cast<double>(pick(0, 9)));
        }
      }
      for (int m = 0; m < memories; ++m) tensor.memories.push_back(m);
      problem.tensors.push_back(std::move(tensor));
    }
    const auto tensors = static_cast<int64_t>(problem.tensors.size());
    for (int s = 0; s < steps; ++s) {
      PlanStep step = {.name = Concat("s", s)};
      for (int64_t o = pick(0, 5); o >= 0; --o) {
        PlanOption option = {.cost = static_cast<double>(pick(1, 100))};
        for (int64_t m = 0; m < memories; ++m) option.work_bytes.push_back(pick(0, 20));
        for (int64_t h = o == 0 ? 0 : pick(1, 3); h > 0; --h) {
          const auto memory = static_cast<int>(pick(-1, memories - 1));
          option.held.push_back({static_cast<int>(pick(0, tensors - 1)), memory});
        }
        step.options.push_back(std::move(option));
      }
      problem.steps.push_back(std::move(step));
    }
    const auto parsed = ParsePlanProblem(PlanProblemJson(problem));
    ASSERT_TRUE(parsed.ok()) << parsed.status().message();
    const auto exact =
        nlohmann::json::parse(*SolvePlan(*parsed, {.policy = ResidencyPolicy::kExact}, {}));
    const auto best =
        nlohmann::json::parse(*SolvePlan(*parsed, {.policy = ResidencyPolicy::kBest}, {}));
    ASSERT_LE(exact["bound"].get<double>(), exact["cost"].get<double>() + 1e-9);
    if (exact["given_up"] == 0) {
      ASSERT_LE(exact["cost"], best["cost"]);
    }
    ASSERT_LE(best["cost"], best["cost_of_none"]);
    saved += exact["cost"] < exact["cost_of_none"];
    tight += exact["bound"].get<double>() > exact["cost"].get<double>() - 1e-9;
  }
  std::printf("%d of 1500 save something, the bound is the cost in %d\n", saved, tight);
  EXPECT_GT(saved, 300);
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
