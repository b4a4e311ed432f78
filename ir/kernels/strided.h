// Copies between strided arrays: what views, layouts, broadcasts, slices and transposes come to.
#pragma once

#include <cstdint>

#include "ir/graph.h"

namespace dla::ir {

// For every index of `shape`: element `to` + index . to_strides = element `from` + index .
// from_strides. Strides are in elements of `element_bytes` bytes; they may be 0 or negative.
void CopyStrided(const Shape& shape, int64_t element_bytes, const uint8_t* from,
                 const Shape& from_strides, uint8_t* to, const Shape& to_strides);

// Strides of a tensor of shape `from`, seen as one of shape `to` by numpy's broadcasting (0 where
// it is repeated). `strides` are those of `from`; from must be broadcastable.
Shape BroadcastStrides(const Shape& from, const Shape& strides, const Shape& to);

}  // namespace dla::ir
