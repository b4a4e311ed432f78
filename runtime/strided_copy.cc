#include "runtime/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "support/status.h"

namespace dla::runtime {
namespace {

template <typename T>
void CopyRow(uint8_t* to, const uint8_t* from, const CopyDim& dim) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(T));
  for (int64_t i = 0; i < dim.length; ++i) {
    std::memcpy(to + i * dim.to_stride * kBytes, from + i * dim.from_stride * kBytes, sizeof(T));
  }
}

void CopyRowOf(uint8_t* to, const uint8_t* from, const CopyDim& dim, int64_t element_bytes) {
  if (dim.to_stride == 1 && dim.from_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(dim.length * element_bytes));
    return;
  }
  switch (element_bytes) {
    case 1:
      return CopyRow<uint8_t>(to, from, dim);
    case 2:
      return CopyRow<uint16_t>(to, from, dim);
    case 4:
      return CopyRow<uint32_t>(to, from, dim);
    default:
      return CopyRow<uint64_t>(to, from, dim);
  }
}

void CopyDims(uint8_t* to, const uint8_t* from, const CopyDim* dims, size_t count,
              int64_t element_bytes) {
  if (count == 1) return CopyRowOf(to, from, dims[0], element_bytes);
  for (int64_t i = 0; i < dims[0].length; ++i) {
    CopyDims(to + i * dims[0].to_stride * element_bytes,
             from + i * dims[0].from_stride * element_bytes, dims + 1, count - 1, element_bytes);
  }
}

}  // namespace

void CopyBox::Add(int64_t length, int64_t to_stride, int64_t from_stride) {
  DLA_CHECK(count_ < dims_.size(), "too many dimensions");
  if (length != 1) dims_[count_++] = {length, to_stride, from_stride};
}

void CopyBox::Simplify() {
  std::sort(dims_.begin(), dims_.begin() + static_cast<std::ptrdiff_t>(count_),
            [](const CopyDim& a, const CopyDim& b) { return a.to_stride > b.to_stride; });
  size_t kept = 0;
  for (size_t i = 1; i < count_; ++i) {
    CopyDim& outer = dims_[kept];
    const CopyDim& inner = dims_[i];
    if (outer.to_stride == inner.length * inner.to_stride &&
        outer.from_stride == inner.length * inner.from_stride) {
      outer = {outer.length * inner.length, inner.to_stride, inner.from_stride};
    } else {
      dims_[++kept] = inner;
    }
  }
  if (count_ > 0) count_ = kept + 1;
  if (count_ == 0) dims_[count_++] = {1, 1, 1};
}

void CopyBox::Run(uint8_t* to, const uint8_t* from, int64_t element_bytes) {
  DLA_CHECK(element_bytes == 1 || element_bytes == 2 || element_bytes == 4 || element_bytes == 8,
            element_bytes);
  Simplify();
  CopyDims(to, from, dims_.data(), count_, element_bytes);
}

}  // namespace dla::runtime
