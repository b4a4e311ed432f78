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
// and these bytes are all that is left. Cycles of groups that do not overlap:
// scheduler/cycle_bound.h, and where that says nothing the same flow over groups that take their
// mapping's compute time or their bus time, the longer one. If groups may overlap (`overlap`): the
// compute time of all groups, or the time of the least bytes on the bus.
TrafficBound BoundTraffic(const Schedule& schedule, bool overlap);

// The byte bound if there were so many bytes more of scratchpad, and the share of a value that the
// relaxed optimum then holds all its life (0 if it moves through DRAM anyway). Not for schedules
// with cascades.
struct BoundWithMore {
  int64_t dram_bytes = 0;
  double held = 0;
};
BoundWithMore BoundTrafficWithMore(const Schedule& schedule, int64_t more_bytes, ir::ValueId value);

}  // namespace dla::scheduler
