// The mapping of one group: blocks, order, buffers and scratchpads.
//
// The exact search (exact/exact_search.h) finds the best and proves it. Where its budget of
// evaluations ends first, or where dimensions are so long that it leaves sizes out, a quick search
// looks too: all combinations of some sizes (block_candidates.h) are bounded under each operand's
// best order, those near the best bound are evaluated. The better of the two is the result, with
// the lower bound that the exact search reached. The same problem has the same result.
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
#include "scheduler/search_options.h"

namespace dla::scheduler {

// `balanced` takes the least bytes among mappings of at most this many times the least cycles.
inline constexpr double kBalance = 1.05;

struct SearchProblem {
  const ir::Nest* nest = nullptr;
  const machine::Target* target = nullptr;
  // Bytes of each scratchpad that tile buffers may use (what residents leave).
  std::vector<int64_t> free_bytes;
  // One an operand: the memory in which the whole value stays, or -1. Where that memory does not
  // hold the operand's class, tiles come over a link.
  std::vector<int> resident_in;
  Objective objective = Objective::kBalanced;
  SearchOptions options;
};

// Of a mapping, or lower bounds.
struct Cost {
  double bytes = 0;  // on the bus
  double cycles = 0;
  double energy = 0;  // pJ
};

// What an objective minimises: cycles, bus bytes (also of `balanced`), pJ, or pJ times cycles.
double MinimisedValue(Objective objective, const Cost& cost);
// What the objective prefers: a strictly to b. `balanced` drops what takes more than kBalance times
// the cycles of the other; equals are decided by cycles, of `latency` by bytes.
bool IsBetter(Objective objective, const Cost& a, const Cost& b);

// What is known of a mapping's distance from the best.
struct Certificate {
  bool proven = false;  // no mapping of the space is better
  bool all_sizes =
      false;  // the space has every integer block size; else long dimensions are thinned
  // Lower bound over the space of what the objective minimises. `balanced`: of bus bytes, among
  // mappings of at most kBalance times the least cycles that were found.
  double least = 0;
  double least_cycles = 0;  // balanced: lower bound of the cycles of any mapping
};

struct SearchResult {
  Mapping mapping;
  machine::Counters predicted;
  Certificate certificate;
  int64_t points = 0;     // mappings, boxes of them, and orders bounded
  int64_t evaluated = 0;  // mappings evaluated exactly
};

// Nothing if no mapping fits.
std::optional<SearchResult> SearchMapping(const SearchProblem& problem);

// Does any mapping fit? (Blocks of one element, single buffers.)
bool AnyMappingFits(const SearchProblem& problem);

}  // namespace dla::scheduler
