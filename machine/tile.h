// How large tiles get: the longest extent that an axis has over all steps, and the bytes that the
// longest tile takes on chip. Used by the verifier; placement and code generation may ask it too.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "machine/program.h"

namespace dla::machine {

// Block combinations of an axis that LongestExtent walks before it falls back to a bound.
inline constexpr int64_t kMaxBlockCombinations = 65536;

// The longest clipped extent of the axis over all block combinations of its terms (0: it is always
// clipped to nothing). Exact, except that an axis with more than kMaxBlockCombinations combinations
// of all but its longest loop gets the bound min(unclipped extent, axis bound). The sum of
// coefficient * extent and |offset| must stay below 2^60.
int64_t LongestExtent(const Group& group, const AxisDesc& axis);

// The lines of a resident operand's axis that lie on chip.
inline int64_t LinesOnChip(const AxisDesc& axis) { return axis.ring > 0 ? axis.ring : axis.bound; }

// Elements from the first to behind the last of the longest tile in its local layout (the whole
// value for a resident operand); nothing on overflow.
std::optional<int64_t> TileElements(const Group& group, const OperandDesc& operand);

// The mask of dimensions that the operand depends on.
uint16_t DimsOf(const OperandDesc& operand);

// Iterations of all loops; nothing if there are more than 2^40.
std::optional<int64_t> StepCount(const Group& group);
inline constexpr int64_t kMaxSteps = int64_t{1} << 40;

}  // namespace dla::machine
