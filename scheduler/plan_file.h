// `dlac plan`: residency and placement for other compilers, JSON in, JSON out.
//
// docs/PLAN.md describes both files and has a worked example.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/placement.h"
#include "scheduler/residency_problem.h"
#include "support/status.h"

namespace dla::scheduler {

struct PlanMemory {
  std::string name;
  int64_t bytes = 0;
  int64_t align_bytes = 1;
};

// A tensor that is held, in this memory or (-1) in any.
struct PlanHeld {
  int tensor = 0;
  int memory = -1;
};

// One way to run a step: it applies if all these tensors are held and its working set fits.
struct PlanOption {
  std::vector<PlanHeld> held;
  std::vector<int64_t> work_bytes;  // by memory
  double cost = 0;
};

struct PlanStep {
  std::string name;
  std::vector<PlanOption> options;
};

struct PlanTensor {
  std::string name;
  int64_t bytes = 0;
  int producer = -1;  // step that makes it; -1: it is in DRAM from the start
  double store_cost = 0;
  bool is_output = false;                    // it is stored in any case
  bool is_required = false;                  // it must be held from its producer to its last use
  bool is_whole = false;                     // it is held all of its life or not at all
  std::vector<std::pair<int, double>> uses;  // steps that read it, and what its load costs there
  std::vector<int> memories;
};

struct PlanProblem {
  std::vector<PlanMemory> memories;
  std::vector<PlanStep> steps;
  std::vector<PlanTensor> tensors;
};

// kMalformed with the place in the file.
Result<PlanProblem> ParsePlanProblem(std::string_view json);

// The plan as JSON. kDoesNotFit names a step that fits in no way, or a required tensor for which
// there is no room.
Result<std::string> SolvePlan(const PlanProblem& problem, const ResidencyOptions& residency,
                              const PlacementOptions& placement);

}  // namespace dla::scheduler
