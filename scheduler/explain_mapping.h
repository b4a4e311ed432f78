// Why a group is mapped as it is: how far from the best, what else there is, what more room gives.
#pragma once

#include <cstddef>
#include <string>

#include "scheduler/schedule.h"

namespace dla::scheduler {

// The group's bus bytes, cycles or energy against the least that any mapping can have; nothing
// for a mapping that was given.
std::string CertificateText(const ScheduledGroup& group, const Schedule& schedule);

// Lines for `--explain`: the certificate; the best mappings by the other objectives with the same
// values on chip; each scratchpad's use, and what the group would gain by twice as much of it.
// Searches anew, so that it takes some ten mapping searches.
std::string ExplainMapping(const Schedule& schedule, size_t group);

}  // namespace dla::scheduler
