// Scalar arithmetic of the micro-operations, for each value type.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace dla::ir {

inline constexpr int64_t kLongestColumn = 1024;

template <typename T>
inline constexpr bool kIsFloating = std::is_floating_point_v<T>;

// A number as a value of T: what kCast does to f64.
template <typename T>
T FromDouble(double number) {
  if constexpr (std::is_same_v<T, bool>) {
    return number != 0;
  } else if constexpr (kIsFloating<T>) {
    return static_cast<T>(number);
  } else {
    if (number != number) return 0;
    constexpr double kTop = std::is_signed_v<T> ? 0x1p63 : 0x1p64;
    if (number >= kTop) return std::numeric_limits<T>::max();
    if (number <= static_cast<double>(std::numeric_limits<T>::min())) {
      return std::numeric_limits<T>::min();
    }
    return static_cast<T>(number);
  }
}

template <typename To, typename From>
To CastValue(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From{};
  } else if constexpr (kIsFloating<From> && !kIsFloating<To>) {
    return FromDouble<To>(static_cast<double>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <typename T>
T Maximum(T a, T b) {
  if constexpr (kIsFloating<T>) {
    if (a != a) return a;
    if (b != b) return b;
  }
  return a < b ? b : a;
}

template <typename T>
T Minimum(T a, T b) {
  if constexpr (kIsFloating<T>) {
    if (a != a) return a;
    if (b != b) return b;
  }
  return b < a ? b : a;
}

// Integers wrap around: they are computed without sign.
template <typename T, typename F>
T Wrapping(T a, T b, F f) {
  if constexpr (kIsFloating<T>) {
    return f(a, b);
  } else {
    return static_cast<T>(f(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
  }
}

template <typename T>
T Quotient(T a, T b) {
  if constexpr (!kIsFloating<T>) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(0 - static_cast<uint64_t>(a));
    }
  }
  return a / b;
}

template <typename T>
T Remainder(T a, T b) {
  if constexpr (kIsFloating<T>) {
    return std::fmod(a, b);
  } else {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return a % b;
  }
}

// Like the remainder, but with the sign of the divisor.
template <typename T>
T Modulo(T a, T b) {
  const T rest = Remainder(a, b);
  if constexpr (kIsFloating<T> || std::is_signed_v<T>) {
    if (rest != 0 && (rest < 0) != (b < 0)) return rest + b;
  }
  return rest;
}

template <typename T>
T Sign(T x) {
  if (x != x) return x;
  if constexpr (std::is_signed_v<T> || kIsFloating<T>) {
    if (x < 0) return static_cast<T>(-1);
  }
  return static_cast<T>(x > 0 ? 1 : 0);
}

template <typename T>
T ShiftLeft(T x, T by) {
  return by < 0 || by >= 64 ? T{0} : static_cast<T>(static_cast<uint64_t>(x) << by);
}
template <typename T>
T ShiftRight(T x, T by) {
  if (by < 0 || by >= 64) return std::is_signed_v<T> && x < 0 ? static_cast<T>(-1) : T{0};
  return static_cast<T>(x >> by);
}

// Below this a logistic of f32 is 0, where the exact value is below 2e-8: ONNX Runtime gives 0 at
// -20, -60 and -80. Where exactly its tail begins is not known here.
inline constexpr float kLogisticTail = -18;

// Either form avoids the overflow of exp at its end.
template <typename T>
T Logistic(T x) {
  if (std::is_same_v<T, float> && x < static_cast<T>(kLogisticTail)) return 0;
  if (x >= 0) return T{1} / (T{1} + std::exp(-x));
  const T e = std::exp(x);
  return e / (T{1} + e);
}

}  // namespace dla::ir
