// Groups that overlap (`--prefetch`): the first tiles of a group are loaded while the group before
// still computes, and the last stores of a group leave while the next one computes already.
#pragma once

#include <cstdint>
#include <functional>

#include "ir/graph.h"
#include "scheduler/schedule.h"

namespace dla::scheduler {

// Decides at each border between groups what overlaps (machine/program.h, "Groups that overlap"),
// border by border: of what there is room for, what makes the two groups fastest. So no schedule
// becomes slower. Sets `joined`, `prefetched` and the predicted cycles of the groups. `place` gives
// all buffers addresses, or returns false; where it does, less overlaps, and at last nothing, with
// the addresses that there were. Cascades do not overlap with what is around them.
void OverlapGroups(const std::function<bool(Schedule*)>& place, Schedule* schedule);

}  // namespace dla::scheduler
