#include "ir/kernels/strided.h"

#include <cstring>

namespace dla::ir {
namespace {

struct Copy {
  const Shape& shape;
  int64_t element_bytes;
  const Shape& from_strides;
  const Shape& to_strides;
};

void CopyAxis(const Copy& copy, size_t axis, const uint8_t* from, uint8_t* to) {
  const size_t bytes = static_cast<size_t>(copy.element_bytes);
  if (axis == copy.shape.size()) {
    std::memcpy(to, from, bytes);
    return;
  }
  const int64_t from_step = copy.from_strides[axis] * copy.element_bytes;
  const int64_t to_step = copy.to_strides[axis] * copy.element_bytes;
  if (axis + 1 < copy.shape.size()) {
    for (int64_t i = 0; i < copy.shape[axis]; ++i) {
      CopyAxis(copy, axis + 1, from + i * from_step, to + i * to_step);
    }
    return;
  }
  if (from_step == copy.element_bytes && to_step == copy.element_bytes) {
    std::memcpy(to, from, static_cast<size_t>(copy.shape[axis]) * bytes);
    return;
  }
  for (int64_t i = 0; i < copy.shape[axis]; ++i) {
    std::memcpy(to + i * to_step, from + i * from_step, bytes);
  }
}

}  // namespace

void CopyStrided(const Shape& shape, int64_t element_bytes, const uint8_t* from,
                 const Shape& from_strides, uint8_t* to, const Shape& to_strides) {
  if (ElementCount(shape) == 0) return;
  CopyAxis({shape, element_bytes, from_strides, to_strides}, 0, from, to);
}

Shape BroadcastStrides(const Shape& from, const Shape& strides, const Shape& to) {
  Shape result(to.size(), 0);
  const size_t lead = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[lead + i]) result[lead + i] = strides[i];
    if (from[i] == 1) result[lead + i] = 0;
  }
  return result;
}

}  // namespace dla::ir
