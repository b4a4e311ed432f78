// Placement: addresses for buffers with known sizes and lifetimes.
//
// Plain data in, plain data out; the solver knows nothing of tensors, the validator nothing of the
// solver. Used for every scratchpad (times are groups) and for the temporaries in DRAM.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace dla::scheduler {

struct PlacedBuffer {
  int64_t first = 0;  // lives at times [first, end)
  int64_t end = 0;
  int64_t bytes = 0;
  int64_t align_bytes = 1;
};

struct PlacementProblem {
  int64_t capacity_bytes = INT64_MAX;
  std::vector<PlacedBuffer> buffers;
};

// Byte offsets, one a buffer.
struct PlacementSolution {
  std::vector<int64_t> offsets;
};

enum class PlacementFault { kNone, kOutside, kMisaligned, kOverlap };

// Checks a solution from first principles.
PlacementFault Validate(const PlacementProblem& problem, const PlacementSolution& solution);

// Largest offset + bytes.
int64_t Height(const PlacementProblem& problem, const PlacementSolution& solution);

// Largest sum of the bytes that live at one time: no solution is lower.
int64_t LoadBound(const PlacementProblem& problem);

// Tries greedy rules one after the other and returns the first solution within the capacity (or,
// without one, nothing): buffers by decreasing size at the lowest free offset; long-lived ones
// alternately at the two ends and the others between them, which never fails for chains of
// residents where each meets only its neighbours.
std::optional<PlacementSolution> Place(const PlacementProblem& problem);

}  // namespace dla::scheduler
