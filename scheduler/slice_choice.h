// Which chains of a schedule's groups are worth cutting into slices.
#pragma once

#include <vector>

#include "scheduler/schedule.h"
#include "scheduler/slices.h"

namespace dla::scheduler {

// Chains of groups that would cost less in slices, each slice a cascade, while the other groups
// stay as the schedule has them: the best set of such chains, by dynamic programming over their
// ends. The names are those of the schedule's groups. An estimate: what stays on chip between the
// groups is taken from the schedule, and would be decided anew.
std::vector<Slicing> ChooseSlices(const Schedule& schedule);

}  // namespace dla::scheduler
