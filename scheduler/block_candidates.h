// Which block sizes a search looks at.
//
// Critical sizes: for each number of blocks n only the smallest block, ceil(extent / n), matters to
// bytes; about 2 * sqrt(extent) sizes. Fold counts add the multiples of the array's side for the
// dimensions that lie on it. Dimensions that a vector program reduces over stay whole.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/nest.h"
#include "machine/target.h"

namespace dla::scheduler {

// {ceil(extent / n) : n = 1..extent}, increasing.
std::vector<int64_t> CriticalSizes(int64_t extent);

// Candidate sizes of every dimension, increasing. `cut_kernel`: also cut the kernel's rows and
// columns (only worth it where nothing else fits).
std::vector<std::vector<int64_t>> BlockCandidates(const ir::Nest& nest,
                                                  const machine::Target& target, bool cut_kernel);

}  // namespace dla::scheduler
