// Picking entries of one axis by numbers that are known now: what slices with negative steps,
// padding by copies, tiling, gathering and scattering with constant indices come to.
#pragma once

#include <vector>

#include "ir/rewriter.h"

namespace dla::ir {

// Longest list of entries that is written down.
inline constexpr int64_t kMostPicked = int64_t{1} << 22;
// Fails if `count` entries are more than that.
Status CheckPicked(int64_t count);

// The value whose entry i along `axis` is entry indices[i] of `value`: strided slices, joined, or a
// Take where these are many. With an output, the last node computes that.
Result<ValueId> Pick(Rewriter* rewriter, ValueId value, size_t axis,
                     const std::vector<int64_t>& indices, ValueId output = kNoValue);

// The same with indices that are computed: entry i along `axis` is entry indices[i], for all
// elements of `indices` in order. The result is seen in `shape`.
Result<ValueId> TakeEntries(Rewriter* rewriter, ValueId value, size_t axis, ValueId indices,
                            const Shape& shape, ValueId output = kNoValue);

// A View of the value; with an output, that is the View's result.
Result<ValueId> Reshaped(Rewriter* rewriter, ValueId value, const Shape& shape,
                         ValueId output = kNoValue);

}  // namespace dla::ir
