// The least that any residency can reach on given groups.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "scheduler/schedule.h"

namespace dla::scheduler {

// The flow bound (residency_problem.h) with every operand moved once where it is not held: segments
// from each use of a value to the next one, all scratchpads pooled, values dropped that fit in
// none. Never below the graph's compulsory bytes; a schedule with cascades holds parts of values,
// and these bytes are all that is left. Cycles: scheduler/cycle_bound.h, and where that says
// nothing the same flow over groups that take their mapping's compute time or their bus time, the
// longer one.
TrafficBound BoundTraffic(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                          const Schedule& schedule);

}  // namespace dla::scheduler
