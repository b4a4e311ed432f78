// Element types to and from f32, in which vector arithmetic runs.
#pragma once

#include <cstdint>

#include "support/element_type.h"

namespace dla::runtime {

// Can vector programs and pad values use this type?
bool ConvertsToF32(ElementType type);

// `count` elements from `bytes` on, which need no alignment.
void ToF32(ElementType type, const uint8_t* bytes, int64_t count, float* values);

// Floats round to nearest even; integers round to nearest even and saturate, NaN becomes 0; bool is
// "not zero".
void FromF32(ElementType type, const float* values, int64_t count, uint8_t* bytes);

}  // namespace dla::runtime
