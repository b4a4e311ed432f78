// The residency problem of a model as `dlac plan` reads it (`dlac --plan-problem`).
//
// docs/PLAN.md ("The problem of a model") says what stands in it and what does not.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "scheduler/plan_file.h"
#include "scheduler/searcher.h"

namespace dla::scheduler {

// A step for each group, in the order of the graph's nodes, with an option for each set of values
// that it can find on chip (where each lies counts) and each eighth of room that is left for its
// tiles; costs are AdditiveCost. A tensor for each value that may stay all of its life. kDoesNotFit
// names a group for which no mapping fits.
Result<PlanProblem> PlanProblemOf(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                                  Searcher* searcher);

// The problem as JSON, which ParsePlanProblem reads.
std::string PlanProblemJson(const PlanProblem& problem);

}  // namespace dla::scheduler
