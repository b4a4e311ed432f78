// A contraction on the vector engine.
#pragma once

#include <optional>

#include "ir/nest.h"

namespace dla::ir {

// The nest of the same group without the array: the vector engine multiplies, sums over the
// dimensions that the output lacks, adds the bias and runs the fused operations. Where a group of a
// convolution has few channels the array has little to share, and a row of lanes does more. Nothing
// for other nests and where the array would round its operands (Operand::read_as).
std::optional<Nest> VectorForm(const Nest& contraction);

}  // namespace dla::ir
