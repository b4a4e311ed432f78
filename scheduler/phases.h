// Reductions over more than a scratchpad holds: a vector program in passes over its data.
//
// A softmax whose row fits is one instruction a step. One whose row does not fit walks the row
// three times, block by block: the maximum, the sum of exponentials, the quotients; the maximum and
// the sum are running values that stay on chip. In general every reduction of the program gets such
// a value (an operand that is_local), its level is one more than that of the reductions it uses,
// and all reductions of a level share a pass. The output is computed in a pass of its own, or,
// where it is reduced itself, at the last block of the last pass.
#pragma once

#include <optional>

#include "ir/nest.h"

namespace dla::scheduler {

// Passes that predicates over first and last blocks can tell apart.
inline constexpr int kMaxPasses = 3;

// The nest with its reductions cut into phases: a dimension "pass" behind the others, local
// operands before the output, `phases` filled in. Nothing if it has no reductions on the vector
// engine or needs more than kMaxPasses passes.
std::optional<ir::Nest> CutReductions(const ir::Nest& nest);

}  // namespace dla::scheduler
