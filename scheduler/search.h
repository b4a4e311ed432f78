// The mapping of one group: blocks, order, buffers and scratchpads, found by enumeration.
//
// All combinations of the candidate block sizes (block_candidates.h) that fit are bounded in closed
// form under each operand's best order; those near the best bound are evaluated exactly. The
// result is the best of what was evaluated, by the objective; ties go to fewer bytes, then fewer
// steps, then the smaller block vector, so that the same input gives the same mapping.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/nest.h"
#include "machine/counters.h"
#include "machine/target.h"
#include "scheduler/mapping.h"
#include "scheduler/objective.h"

namespace dla::scheduler {

struct SearchProblem {
  const ir::Nest* nest = nullptr;
  const machine::Target* target = nullptr;
  // Bytes of each scratchpad that tile buffers may use (what residents leave).
  std::vector<int64_t> free_bytes;
  // One an operand: the memory in which the whole value stays, or -1. Where that memory does not
  // hold the operand's class, tiles come over a link.
  std::vector<int> resident_in;
  Objective objective = Objective::kBalanced;
};

struct SearchResult {
  Mapping mapping;
  machine::Counters predicted;
  int64_t points = 0;     // mappings bounded
  int64_t evaluated = 0;  // mappings evaluated exactly
};

// Nothing if no mapping fits.
std::optional<SearchResult> SearchMapping(const SearchProblem& problem);

// Does any mapping fit? (Blocks of one element, single buffers.)
bool AnyMappingFits(const SearchProblem& problem);

}  // namespace dla::scheduler
