// Exact placement: a systematic search for offsets within a capacity.
#pragma once

#include <cstdint>

#include "scheduler/placement.h"

namespace dla::scheduler {

// Depth-first search over canonical solutions (offsets never fall along the path, each buffer at
// its lowest offset over those placed before), after MiniMalloc (Moffitt, ASPLOS 2023): every
// solution can be pressed down into a canonical one, so nothing is lost. Pruned by the load that is
// still to come at each moment, by dominance (nothing is put above a gap that an unplaced buffer
// could fill) and by remembering failed states; parts of the timeline that no unplaced buffer
// joins are solved alone. Several orders of preference take turns with growing shares of
// `node_budget`.
PlacementResult PlaceExact(const PlacementProblem& problem, int64_t node_budget);

}  // namespace dla::scheduler
