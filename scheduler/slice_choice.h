// Which chains of a schedule's groups are worth cutting into slices.
#pragma once

#include <vector>

#include "scheduler/schedule.h"
#include "scheduler/slices.h"

namespace dla::scheduler {

// What is cut, and how a slice of it is thought to run.
enum class SlicedWay {
  kCascade,  // chains, each slice a cascade
  kHoped,    // the same, also where that seems to cost more: beside them all is decided anew
  kWhole,    // chains, with whole slices of what lies between the groups on chip
  kAlone,    // single groups in halves
};

struct ChosenSlicing {
  Slicing slicing;
  double saves = 0;  // in the objective's units (AdditiveCost), by the estimate
};

// What may cost less in slices, while the other groups stay as the schedule has them; that which
// saves most comes first. Of chains the best set, by dynamic programming over their ends; single
// groups, several axes of one, too, if they move what could stay or the same bytes again. The names
// are those of the schedule's groups. An estimate (but for kCascade an optimistic one): what
// stays on chip is taken from the schedule, and would be decided anew.
std::vector<ChosenSlicing> ChooseSlices(const Schedule& schedule, SlicedWay way);

}  // namespace dla::scheduler
