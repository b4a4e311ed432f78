// A tensor as files hold it: type, shape and dense row-major little-endian bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/checked.h"
#include "support/element_type.h"

namespace dla {

struct Tensor {
  std::string name;  // "" where the file has none
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
  bool operator==(const Tensor&) const = default;
};

// Elements of a shape; nothing if an extent is negative or there are more than 2^48 of them.
inline std::optional<int64_t> CountElements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) empty = true;
    const auto product = CheckedMul(count, extent == 0 ? 1 : extent);
    if (!product || *product > (int64_t{1} << 48)) return std::nullopt;
    count = *product;
  }
  return empty ? 0 : count;
}

}  // namespace dla
