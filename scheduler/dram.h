// Where everything lies in DRAM: graph inputs and outputs, constants, packed weights, temporaries,
// room for spilled partial sums.
#pragma once

#include "ir/graph.h"
#include "scheduler/schedule.h"
#include "support/status.h"

namespace dla::scheduler {

// Regions start at multiples of this many bytes.
inline constexpr int64_t kRegionAlignBytes = 64;

// Fills in schedule->regions. Temporaries that never live together share addresses. kDoesNotFit if
// the target limits DRAM and the program needs more.
Status LayOutDram(Schedule* schedule);

// Bytes of DRAM that the program needs in all.
int64_t DramFootprint(const Schedule& schedule);

// The region of the group's packed weight; -1: none. Groups that pack the same weight in the same
// way (packed_weight.h) share one.
int FindPackedWeight(const Schedule& schedule, int group);

}  // namespace dla::scheduler
