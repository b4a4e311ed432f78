// Any text: refused, or a problem that is solved or found not to fit, within the checks of both
// solvers.
#include "scheduler/plan_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto problem =
      dla::scheduler::ParsePlanProblem({reinterpret_cast<const char*>(data), size});
  if (!problem.ok() || problem->steps.size() > 64 || problem->tensors.size() > 64) return 0;
  (void)dla::scheduler::SolvePlan(*problem, {}, {.node_budget = 1000}).ok();
  return 0;
}
