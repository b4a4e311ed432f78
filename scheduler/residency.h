// Whole-graph residency: which values stay on chip from the group that makes them to the last one
// that reads them, and in which scratchpad.
//
// A value that stays costs no transfers and takes room from the tiles of every group of its life;
// each group is mapped anew for what is left. The choice is made by scheduler/residency_problem.h;
// this file writes the graph as such a problem and the answer as residents and mappings.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "scheduler/given_schedule.h"
#include "scheduler/pins.h"
#include "scheduler/residency_problem.h"
#include "scheduler/schedule.h"
#include "scheduler/searcher.h"
#include "support/status.h"

namespace dla::scheduler {

struct ResidencyPlan {
  std::vector<Resident> residents;            // without addresses
  std::vector<const SearchResult*> mappings;  // one a group
  std::vector<Cascade> cascades;              // in order
  bool complete = false;  // kExact without cascades: no values and parts of lives held cost less
};

// What limits the choice.
struct ResidencyRules {
  ResidencyOptions options;
  std::set<std::pair<ir::ValueId, int>> forbidden;  // root and memory
  bool cascades = true;                             // kBest, kExact and kInfinite may choose some
  bool parts = true;                     // of lives, and values that are loaded, may stay
  int cascade_slack = 0;                 // 64ths of a scratchpad that cascades leave free
  int64_t inferences = 1;                // in a row; with more, constants may stay for all of them
  const Pins* pins = nullptr;            // values that must stay, or null
  const GivenSchedule* given = nullptr;  // mappings and values that the user gives, or null
  // A given mapping is one of those to choose from: where another is cheaper, or it is illegal
  // here, the one that the search finds is taken.
  bool given_is_start = false;
};

// kDoesNotFit names the first group for which no mapping fits at all, kUsage what is wrong with a
// given mapping or value. `progress` (may be empty) is called before each group and at the end.
// The plan's mappings stay valid as long as the searcher.
Result<ResidencyPlan> PlanResidency(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                                    const ResidencyRules& rules, Searcher* searcher,
                                    const std::function<void(size_t, size_t)>& progress);

// The objective as one number that adds up over groups. `balanced` trades 5 % of the cycles that
// the bytes take on the bus.
double AdditiveCost(const machine::Counters& counters, const ir::Nest& nest,
                    const machine::Target& target, Objective objective);

}  // namespace dla::scheduler
