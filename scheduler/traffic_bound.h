// The least that any residency can reach on given groups.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "scheduler/schedule.h"

namespace dla::scheduler {

// The flow bound (residency_problem.h) with every operand moved once where it is not held: segments
// from each use of a value to the next one, all scratchpads pooled, values dropped that fit in
// none. Never below the graph's compulsory bytes. Cycles: each group takes its compute time or its
// bus time, whichever is longer; the compute time is that of the schedule's mappings. A schedule
// with cascades holds parts of values: what is left of the bound are the compulsory bytes, and the
// compute and bus times as wholes.
TrafficBound BoundTraffic(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                          const Schedule& schedule);

}  // namespace dla::scheduler
