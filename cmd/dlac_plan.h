// `dlac plan`: residency and placement of a problem that another compiler wrote (docs/PLAN.md).
#pragma once

namespace dla {

// argv[0] is "plan". Returns the exit code.
int RunPlan(int argc, char** argv);

}  // namespace dla
