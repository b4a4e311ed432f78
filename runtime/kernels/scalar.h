// Meaning of single operations on single values, where C++ leaves something undefined or C's
// functions mean something else than ONNX's.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace dla::runtime {

template <typename T>
void Put(void* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

// NaN in either argument gives NaN, as ONNX's Min and Max do.
template <typename T>
T Least(T x, T y) {
  return x < y || x != x ? x : y;
}
template <typename T>
T Greatest(T x, T y) {
  return x > y || x != x ? x : y;
}

// Towards zero; saturates, NaN becomes 0. T is int64_t or uint64_t, F a floating-point type.
template <typename T, typename F>
T Truncate(F x) {
  // The least value is exact in F, one more than the greatest is a power of two.
  constexpr F kLow = static_cast<F>(std::numeric_limits<T>::min());
  constexpr F kEnd = std::is_signed_v<T> ? F{0x1p63} : F{0x1p64};
  if (!(x >= kLow)) return x != x ? T{0} : std::numeric_limits<T>::min();
  return x >= kEnd ? std::numeric_limits<T>::max() : static_cast<T>(x);
}

// Integers wrap: T is int64_t or uint64_t, arithmetic is done without a sign.
template <typename T, typename F>
T Wrapping(T x, T y, F f) {
  return static_cast<T>(f(static_cast<uint64_t>(x), static_cast<uint64_t>(y)));
}

// Towards zero; by zero gives 0, the least by -1 wraps.
template <typename T>
T Quotient(T x, T y) {
  if (y == 0) return 0;
  if constexpr (std::is_signed_v<T>) {
    if (y == -1) return static_cast<T>(-static_cast<uint64_t>(x));
  }
  return x / y;
}

template <typename T>
T Remainder(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmod(x, y);
  } else {
    if (y == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (y == -1) return 0;
    }
    return x % y;
  }
}

// The remainder with the sign of `y`.
template <typename T>
T FlooredRemainder(T x, T y) {
  const T r = Remainder(x, y);
  if constexpr (std::is_floating_point_v<T>) {
    if (r == 0) return std::copysign(r, y);
  }
  return r != 0 && (r < 0) != (y < 0) ? static_cast<T>(r + y) : r;
}

// Powers of integers wrap. A negative exponent gives the truncated fraction: 0, or 1 and -1 for
// these bases.
template <typename T>
T IntegerPower(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return exponent % 2 == 0 ? 1 : -1;
      return 0;
    }
  }
  uint64_t power = 1;
  auto square = static_cast<uint64_t>(base);
  for (auto e = static_cast<uint64_t>(exponent); e != 0; e >>= 1) {
    if ((e & 1) != 0) power *= square;
    square *= square;
  }
  return static_cast<T>(power);
}

// Distances outside of [0, 64) shift everything out.
template <typename T>
T ShiftLeft(T x, T distance) {
  const auto by = static_cast<uint64_t>(distance);
  return by < 64 ? static_cast<T>(static_cast<uint64_t>(x) << by) : T{0};
}
template <typename T>
T ShiftRight(T x, T distance) {
  const auto by = static_cast<uint64_t>(distance);
  if (by < 64) return static_cast<T>(x >> by);
  return x < 0 ? static_cast<T>(~T{0}) : T{0};
}

// The low `bits` bits of a number, with or without sign.
inline int64_t Wrap(int64_t x, int bits, bool is_signed) {
  const auto raised = static_cast<uint64_t>(x) << (64 - bits);
  return is_signed ? static_cast<int64_t>(raised) >> (64 - bits)
                   : static_cast<int64_t>(raised >> (64 - bits));
}

template <typename T>
T Sign(T x) {
  if (x > 0) return T{1};
  if (x < 0) return static_cast<T>(-1);
  return x == 0 ? T{0} : x;  // NaN stays
}

}  // namespace dla::runtime
