// Groups of a contraction side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/nest.h"

namespace dla::ir {

// The same contraction with `count` groups at a time as one product with block-diagonal weights
// (Operand::diagonal): G groups of M channels and C depths become G / count groups of count * M and
// count * C. What a group alone leaves idle of an array (columns without channels, the skew of a
// short reduction) is shared; in return the weights have zeros, which are stored, loaded and
// streamed, but not multiplied with: values stay as they are, also where an input is infinite.
//
// Nothing if the weights are not constant, there are no groups, `count` does not divide their
// number or is 1, or if some operand's groups do not lie one behind the other.
std::optional<Nest> PackGroups(const Nest& contraction, int64_t count);

// Groups that can be packed: the divisors of their number but 1, rising. Empty: none.
std::vector<int64_t> PackCounts(const Nest& contraction);

// How many elements of the operand's tiles there are for each that exists (Operand::diagonal); 1
// for other operands.
int64_t ZeroFactor(const Operand& operand, const Nest& nest);

}  // namespace dla::ir
