// The exact search: the least of an objective over all mappings of a group, with a proof.
//
// Best first branch and bound over boxes of block sizes (box_bound.h); boxes of one vector of sizes
// are tried in every order of their loops, with every set of single buffers and, where it matters,
// every assignment of buffers to scratchpads, and what may still be better is walked step by step.
// docs/SCHEDULER.md names the space and gives the arguments.
#pragma once

#include <cstdint>
#include <optional>

#include "scheduler/exact/box_bound.h"
#include "scheduler/mapping.h"
#include "scheduler/search.h"

namespace dla::scheduler {

struct ExactResult {
  Mapping mapping;
  Cost cost;                // of the mapping
  double least = 0;         // no mapping of the space has less of what is minimised
  double least_cycles = 0;  // balanced: of any mapping of the space
  bool proven = false;      // the mapping has no more than that
  bool all_sizes = true;    // the space has every integer size; else long dimensions are thinned
  int64_t points = 0;       // boxes and orders bounded
  int64_t walked = 0;       // mappings whose cycles were computed
};

// Minimises, at equal values, the second: latency: cycles, bytes. traffic: bytes, cycles. energy:
// pJ, cycles. edp: their product, cycles. balanced: bytes, cycles among mappings of at most
// kBalance times the least cycles found; `proven` then holds for both. Nothing if the budget ends
// before any mapping is found, or if none fits.
std::optional<ExactResult> ExactSearch(const SearchProblem& problem);

}  // namespace dla::scheduler
