// Mappings without a search: of other layers of the same class, or by rule.
//
// For comparison (`--search reuse`, `--search none`): what is known of other sizes is adapted, and
// nothing is proven. docs/REUSE.md measures what that costs.
#pragma once

#include <optional>

#include "scheduler/mapping_cache.h"
#include "scheduler/search.h"

namespace dla::scheduler {

// The best of what the answers of the same kind become for these sizes: each, nearest sizes first
// and at most kMostDonors of them, in three readings of its blocks: as they are, as fractions of
// the extents, as multiples of the array's sides. Blocks that do not fit are halved, single buffers
// first. The mapping by rule is one more, so that the result is never worse. `points` counts the
// mappings evaluated; `use` how many were adapted and how many of these were not legal as they
// were.
inline constexpr int kMostDonors = 32;
std::optional<SearchResult> ReuseMapping(const SearchProblem& problem,
                                         const MappingCache::Answers& answers,
                                         MappingCache::Use* use);

// One mapping by rule: everything whole, output dimensions outside, halved until it fits.
std::optional<SearchResult> DefaultMapping(const SearchProblem& problem);

}  // namespace dla::scheduler
