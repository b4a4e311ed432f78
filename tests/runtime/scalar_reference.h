// Micro-operations on single values, written plainly: what the kernels are compared with. Integers
// are computed in 128 bits and cut to 64.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "support/half.h"
#include "support/micro_program.h"

namespace dla::runtime::test {

__extension__ using Wide = __int128;

struct Scalar {
  ElementType type = ElementType::kF32;
  float f32 = 0;
  double f64 = 0;
  Wide whole = 0;  // i64, u64, bool
};

inline Scalar F32(float value) { return {.type = ElementType::kF32, .f32 = value}; }
inline Scalar F64(double value) { return {.type = ElementType::kF64, .f64 = value}; }
// Cut to the type's bits.
inline Scalar Whole(ElementType type, Wide value) {
  const auto low = static_cast<uint64_t>(value);
  if (type == ElementType::kI64) return {.type = type, .whole = static_cast<int64_t>(low)};
  return {.type = type, .whole = type == ElementType::kBool ? Wide{value != 0} : Wide{low}};
}
inline Scalar Bool(bool value) { return Whole(ElementType::kBool, value ? 1 : 0); }

inline std::string Text(const Scalar& s) {
  std::ostringstream out;
  out.precision(17);
  if (s.type == ElementType::kF32) {
    out << s.f32;
  } else if (s.type == ElementType::kF64) {
    out << s.f64;
  } else if (s.type == ElementType::kU64) {
    out << static_cast<uint64_t>(s.whole);
  } else {
    out << static_cast<int64_t>(s.whole);
  }
  return out.str() + ":" + std::string(TypeName(s.type));
}

// All NaN are the same.
inline bool Same(const Scalar& a, const Scalar& b) {
  if (a.type != b.type) return false;
  if (a.type == ElementType::kF32) {
    return (std::isnan(a.f32) && std::isnan(b.f32)) ||
           std::bit_cast<uint32_t>(a.f32) == std::bit_cast<uint32_t>(b.f32);
  }
  if (a.type == ElementType::kF64) {
    return (std::isnan(a.f64) && std::isnan(b.f64)) ||
           std::bit_cast<uint64_t>(a.f64) == std::bit_cast<uint64_t>(b.f64);
  }
  return a.whole == b.whole;
}

inline void AppendBytes(const Scalar& s, std::vector<uint8_t>* bytes) {
  uint8_t raw[8];
  const auto low = static_cast<uint64_t>(s.whole);
  size_t size = 8;
  if (s.type == ElementType::kF32) {
    std::memcpy(raw, &s.f32, size = 4);
  } else if (s.type == ElementType::kF64) {
    std::memcpy(raw, &s.f64, 8);
  } else {
    std::memcpy(raw, &low, size = s.type == ElementType::kBool ? 1 : 8);
  }
  bytes->insert(bytes->end(), raw, raw + size);
}

inline Scalar FromBytes(ElementType type, const uint8_t* bytes) {
  Scalar s{.type = type};
  uint64_t low = 0;
  if (type == ElementType::kF32) {
    std::memcpy(&s.f32, bytes, 4);
  } else if (type == ElementType::kF64) {
    std::memcpy(&s.f64, bytes, 8);
  } else {
    std::memcpy(&low, bytes, type == ElementType::kBool ? 1 : 8);
    s.whole = type == ElementType::kI64 ? Wide{static_cast<int64_t>(low)} : Wide{low};
  }
  return s;
}

std::vector<Scalar> SpecialValues(ElementType type);
Scalar RandomValue(ElementType type, std::mt19937_64* random);

// The operation's value for these arguments.
Scalar Reference(const MicroInstruction& op, const std::vector<Scalar>& arguments);
Scalar ReferenceReduction(MicroOp op, const std::vector<Scalar>& values);
// The value that is loaded after `value` was stored as `type`.
Scalar StoredAndLoaded(ElementType type, const Scalar& value);

}  // namespace dla::runtime::test
