// Memory that kernels reuse from call to call, so that tiles cost no allocation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dla::runtime {

// A buffer that only grows.
template <typename T>
class Reused {
 public:
  // At least `count` elements; what they held is not kept.
  T* Get(int64_t count) {
    if (static_cast<int64_t>(data_.size()) < count) data_.resize(static_cast<size_t>(count));
    return data_.data();
  }

 private:
  std::vector<T> data_;
};

}  // namespace dla::runtime
