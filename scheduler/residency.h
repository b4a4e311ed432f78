// One-step residency: a value that only the next group uses may stay on chip.
//
// Along the order of the groups a dynamic program chooses for each such value whether and in which
// scratchpad it stays; what a group costs depends on the choices before and after it, since
// residents take room from its tiles and save it transfers.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "scheduler/given_schedule.h"
#include "scheduler/searcher.h"
#include "support/status.h"

namespace dla::scheduler {

// For group g: the scratchpad in which its result stays for group g + 1, or -1.
struct ResidencyPlan {
  std::vector<int> result_in;
  std::vector<const SearchResult*> mappings;  // one a group
  std::vector<ir::ValueId> handed_over;       // the value that could stay (its root), or kNoValue
};

// What limits the choice.
struct ResidencyRules {
  std::set<int> forbidden;               // groups whose result may not stay
  const GivenSchedule* given = nullptr;  // mappings and values that the user gives, or null
};

// kDoesNotFit names the first group for which no mapping fits at all, kUsage what is wrong with a
// given mapping or value. `progress` (may be empty) is called before each group and at the end.
// The plan's mappings stay valid as long as the searcher.
Result<ResidencyPlan> PlanResidency(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                                    const ResidencyRules& rules, Searcher* searcher,
                                    const std::function<void(size_t, size_t)>& progress);

// Bytes of a root value's dense buffer.
int64_t RootBytes(const ir::Graph& graph, ir::ValueId root);

}  // namespace dla::scheduler
