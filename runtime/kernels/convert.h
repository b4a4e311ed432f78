// Elements as they are stored to and from the values that vector arithmetic works on.
//
// A value is a float, double, int64_t, uint64_t or, for bool, a uint8_t of 0 or 1: the five types
// of support/micro_program.h (ValueType).
#pragma once

#include <cstdint>

#include "support/element_type.h"

namespace dla::runtime {

// Can vector programs and pad values use this type? (Not i4 and u4: no element has an address.)
bool HasValues(ElementType type);

// Bytes of one value of a value type.
int64_t ValueBytes(ElementType value_type);

// `count` elements from `bytes` on, which need no alignment, as values of ValueType(type). Exact.
void LoadValues(ElementType type, const uint8_t* bytes, int64_t count, void* values);

// Values of ValueType(type) as elements: floats round to nearest even, integers wrap.
void StoreValues(ElementType type, const void* values, int64_t count, uint8_t* bytes);

// How many of these values are finite, but infinities in the type: of f32 as f16 or bf16; of other
// types none.
int64_t CountOverflows(ElementType type, const void* values, int64_t count);

// One number as a value of the type: integers round to nearest even and saturate.
void ValueFromDouble(ElementType value_type, double number, void* value);

}  // namespace dla::runtime
