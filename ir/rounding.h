// Rounding of factors to half precision so that the errors of a sum cancel.
#pragma once

#include <cstdint>
#include <span>

#include "support/element_type.h"

namespace dla::ir {

// Makes every f32 of `values`, a dense tensor [summed][inner], one of the two numbers of
// `type` (f16 or bf16) next to it: along `summed`, whose products a contraction adds, the one that
// keeps the sum of the errors so far smaller (error diffusion). Rounding to nearest lets the errors
// add up where the other factors are alike, as the pixels of a picture are. Numbers of `type`, and
// what becomes infinite in it, stay as they are.
void RoundAlong(std::span<float> values, int64_t summed, int64_t inner, ElementType type);

}  // namespace dla::ir
