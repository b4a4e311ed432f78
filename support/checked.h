// Arithmetic on sizes: signed 64 bit, overflow is reported instead of wrapping.
//
// Extents, bytes, cycles and offsets are int64_t. What comes from a file goes through Checked*
// (std::nullopt on overflow); what is known to be sound uses CeilDiv and RoundUp directly.
#pragma once

#include <cstdint>
#include <optional>

namespace dla {

inline std::optional<int64_t> CheckedAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<int64_t> CheckedMul(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// ceil(a / b) for a >= 0, b > 0.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// The smallest multiple of `unit` that is >= a, for a >= 0, unit > 0.
constexpr int64_t RoundUp(int64_t a, int64_t unit) { return CeilDiv(a, unit) * unit; }

}  // namespace dla
