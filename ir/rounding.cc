#include "ir/rounding.h"

#include <cmath>
#include <vector>

#include "support/half.h"

namespace dla::ir {
namespace {

float Nearest(float value, ElementType type) {
  return type == ElementType::kBF16 ? BFloat16ToFloat(FloatToBFloat16(value))
                                    : HalfToFloat(FloatToHalf(value));
}

// The neighbour of `near`, a number of `type`, on the side where `value` lies.
float Other(float near, float value, ElementType type) {
  const bool bf16 = type == ElementType::kBF16;
  const uint16_t bits = bf16 ? FloatToBFloat16(near) : FloatToHalf(near);
  // Patterns of one sign are in the order of their magnitudes.
  const bool grows = std::signbit(near) ? value < near : value > near;
  if (!grows && (bits & 0x7fffu) == 0) return near;
  const auto next = static_cast<uint16_t>(grows ? bits + 1 : bits - 1);
  return bf16 ? BFloat16ToFloat(next) : HalfToFloat(next);
}

}  // namespace

void RoundAlong(std::span<float> values, int64_t summed, int64_t inner, ElementType type) {
  std::vector<double> errors(static_cast<size_t>(inner), 0.0);
  float* at = values.data();
  for (int64_t k = 0; k < summed; ++k) {
    for (double& error : errors) {
      const float value = *at;
      float rounded = Nearest(value, type);
      if (std::isfinite(rounded) && rounded != value) {
        const float other = Other(rounded, value, type);
        const double here = error + (static_cast<double>(value) - rounded);
        const double there = error + (static_cast<double>(value) - other);
        if (std::isfinite(other) && std::abs(there) < std::abs(here)) rounded = other;
        error += static_cast<double>(value) - rounded;
      }
      *at++ = std::isfinite(rounded) ? rounded : value;
    }
  }
}

}  // namespace dla::ir
