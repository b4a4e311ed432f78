#include "cmd/dlac_plan.h"

#include <CLI/CLI.hpp>
#include <string>

#include "cmd/command_line.h"
#include "scheduler/placement.h"
#include "scheduler/plan_file.h"
#include "support/file.h"

namespace dla {
namespace {

struct Options {
  std::string model, output;
  std::string residency = "best", place = "exact";
  int64_t place_nodes = scheduler::PlacementOptions().node_budget;
};

Status Plan(const Options& o) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  const auto residency = scheduler::ParseResidencyPolicy(o.residency);
  if (!residency || *residency == scheduler::ResidencyPolicy::kInfinite) {
    return Usage("--residency ", o.residency, ": none, one-step, onsram, best or exact expected");
  }
  const auto place = scheduler::ParsePlaceMethod(o.place);
  if (!place) {
    return Usage("--place ", o.place, ": color, best-fit, hill-climb or exact expected");
  }
  DLA_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(o.model, kMostBytes));
  const Result<scheduler::PlanProblem> problem = scheduler::ParsePlanProblem(text);
  if (!problem.ok()) return problem.status().At(o.model);
  const scheduler::PlacementOptions placement = {.method = *place, .node_budget = o.place_nodes};
  const Result<std::string> plan =
      scheduler::SolvePlan(*problem, {.policy = *residency}, placement);
  if (!plan.ok()) return plan.status().At(o.model);
  return WriteResult(o.output, *plan);
}

void DescribePlan(CLI::App* app, Options* o) {
  app->add_option("PROBLEM", o->model, "the problem (docs/PLAN.md)")
      ->type_name("FILE.json")
      ->required();
  app->add_option("-o,--output", o->output, "the plan to write (default: stdout)")
      ->type_name("FILE.json");
  app->add_option("--residency", o->residency, "none, one-step, onsram, best (default) or exact")
      ->type_name("POLICY");
  app->add_option("--place", o->place, "color, best-fit, hill-climb or exact (default)")
      ->type_name("METHOD");
  app->add_option("--place-nodes", o->place_nodes, "search nodes for each placement")
      ->check(CLI::PositiveNumber);
}

}  // namespace

int RunPlan(int argc, char** argv) {
  CLI::App app("Plans which tensors stay in which memory, and where.", "dlac plan");
  Options options;
  DescribePlan(&app, &options);
  return RunTool("dlac", &app, argc, argv, [&] { return Fail("dlac", Plan(options)); });
}

}  // namespace dla
