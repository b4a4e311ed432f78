// One operation of a vector micro-program on rows of floats.
#pragma once

#include <cstdint>

#include "support/micro_program.h"

namespace dla::runtime {

// to[i] = op(a[i], b[i]) for every operation that is neither a load nor a reduction; `a` and `b`
// are not read where the operation has fewer arguments. `to` may be `a` or `b`.
void ApplyOp(const MicroInstruction& op, const float* a, const float* b, int64_t count, float* to);

}  // namespace dla::runtime
