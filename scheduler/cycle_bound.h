// The least cycles that any residency can reach on given groups.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "scheduler/schedule.h"

namespace dla::scheduler {

// The sum over the groups of proven least cycles (exact/exact_search.h), less the most that values
// on chip can save of it.
//
// L[g][S] is a lower bound of the cycles of group g in whole scratchpads with the set S of its
// values on chip; it saves L[g][{}] - L[g][S]. For any prices s[g][v] >= 0 all groups together save
// at most
//
//   sum over g of max over S of (L[g][{}] - L[g][S] - sum over v in S of s[g][v])
//   + what holding values between their uses gains at most if each use is worth s[g][v],
//
// and the second is the flow bound of residency_problem.h. The prices are improved by subgradient
// steps (Lagrangian relaxation of S being what is held).
//
// Cascades hold a few lines of values: for a schedule that has some, what is on chip takes no room,
// and a group in stripes is taken to cost no less than with all of its values on chip. Where the
// search looks at some block sizes only, so does the bound.
//
// Nothing on targets whose scratchpads are not alike, or where a group cannot be searched.
std::optional<int64_t> BoundCycles(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                                   const Schedule& schedule);

}  // namespace dla::scheduler
