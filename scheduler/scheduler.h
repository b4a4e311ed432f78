// From a graph of groups to a schedule.
#pragma once

#include <functional>
#include <vector>

#include "ir/graph.h"
#include "machine/target.h"
#include "scheduler/engine_choice.h"
#include "scheduler/given_schedule.h"
#include "scheduler/objective.h"
#include "scheduler/order.h"
#include "scheduler/pins.h"
#include "scheduler/placement.h"
#include "scheduler/residency_problem.h"
#include "scheduler/schedule.h"
#include "scheduler/search_options.h"
#include "support/status.h"

namespace dla::scheduler {

struct ScheduleOptions {
  Objective objective = Objective::kBalanced;
  SearchOptions search;
  MultiplyBy multiply = MultiplyBy::kBest;
  MappingCache* cache = nullptr;  // mappings of earlier compilations; may be null
  ResidencyPolicy residency = ResidencyPolicy::kBest;
  bool cascades = true;  // --cascades
  // How many inferences follow one another: with more than one, constants may stay on chip from the
  // first on, where the mean costs less.
  int64_t inferences = 1;
  // --slices: chains may be cut into slices (slices.h) where residency may choose cascades.
  bool slices = true;
  bool prefetch = true;  // groups may overlap (overlap.h)
  // --order: the graph's, or what is cheaper (order.h). A given schedule names its own.
  OrderRule order = OrderRule::kBest;
  PlacementOptions placement;
  // Values that the user wants on chip; the rest is planned. May be null.
  const Pins* pins = nullptr;
  // Mappings and residents that the user gives (whole or partial); may be null.
  const GivenSchedule* given = nullptr;
  // Schedules (of other targets, perhaps) whose order, cascades and residents are tried, too, each
  // group with its mapping there or the one found here, whichever is cheaper: the result costs no
  // more than any of these. Only without `given`.
  std::vector<const GivenSchedule*> starts;
  // Called before each group is mapped, and at the end with done == groups; may be empty.
  std::function<void(size_t done, size_t groups)> progress;
};

// Schedules the graph (after all passes of ir/pass.h) on the target. kUnsupported: a type or
// operation that the target lacks, all of them at once; kUsage: what is illegal in the given
// schedule; kDoesNotFit: the message names the smallest
// size of each scratchpad that would do and the least common scale.
Result<Schedule> MakeSchedule(const ir::Graph& graph, const machine::Target& target,
                              const ScheduleOptions& options);

// The residency problem of the graph in its own order as JSON (plan_problem.h). Errors as above.
Result<std::string> MakePlanProblem(const ir::Graph& graph, const machine::Target& target,
                                    const ScheduleOptions& options);

}  // namespace dla::scheduler
