// Copies of strided boxes between byte arrays: what DMA, moves and the engines' staging share.
#pragma once

#include <array>
#include <cstdint>

#include "machine/program.h"

namespace dla::runtime {

// One dimension of a box; strides in elements.
struct CopyDim {
  int64_t length = 1;
  int64_t to_stride = 0;
  int64_t from_stride = 0;
};

// At most kMaxAxes dimensions of a box, in any order.
class CopyBox {
 public:
  void Add(int64_t length, int64_t to_stride, int64_t from_stride);
  // Copies every element; `element_bytes` is 1, 2, 4 or 8. The two areas do not overlap.
  void Run(uint8_t* to, const uint8_t* from, int64_t element_bytes);

 private:
  // Sorts by the target's stride, longest first, and joins dimensions that continue each other.
  void Simplify();

  std::array<CopyDim, machine::kMaxAxes> dims_;
  size_t count_ = 0;
};

}  // namespace dla::runtime
