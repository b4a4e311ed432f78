// Where everything lies in the scratchpads: residents and tile buffers.
#pragma once

#include "machine/target.h"
#include "scheduler/placement.h"
#include "scheduler/schedule.h"

namespace dla::scheduler {

// Lists the tile buffers of a group, without addresses.
void ListBuffers(const machine::Target& target, ScheduledGroup* group);

// Gives all residents and tile buffers addresses, scratchpad by scratchpad. -1, or the first
// scratchpad for which no placement was found.
int LayOutScratchpads(const PlacementOptions& options, Schedule* schedule);

// Of the residents in a scratchpad that could not be laid out, the one to give up: alive at the
// fullest moment, and of these the longest. Its index in schedule.residents, or -1 if there is
// none.
int LeastWorthwhile(const Schedule& schedule, int memory);

}  // namespace dla::scheduler
