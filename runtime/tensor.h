// A tensor as it enters and leaves the emulator.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/element_type.h"

namespace dla::runtime {

// Dense, in ONNX order; little-endian.
struct Tensor {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

}  // namespace dla::runtime
