// What transfers cost a group by the objective.
#pragma once

#include "ir/nest.h"
#include "machine/target.h"
#include "scheduler/objective.h"
#include "scheduler/search.h"

namespace dla::scheduler {

// What moving so many bytes costs the group, in the objective's units, where the bus is what it
// waits for. `none`: its mapping with nothing on chip.
double TransferGain(const ir::Nest& nest, const SearchResult& none, double bytes,
                    const machine::Target& target, Objective objective);

}  // namespace dla::scheduler
