#include "runtime/kernels/convert.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "support/status.h"

namespace dla::runtime {
namespace {

template <typename T>
void Widen(const uint8_t* bytes, int64_t count, float* values) {
  for (int64_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    values[i] = static_cast<float>(x);
  }
}

template <typename T>
T Saturate(float value) {
  if (std::isnan(value)) return 0;
  const float rounded = std::nearbyint(value);
  // The limits as floats may round up to one past the largest T, hence >=.
  if (rounded >= static_cast<float>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  if (rounded <= static_cast<float>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  return static_cast<T>(rounded);
}

template <typename T>
void Narrow(const float* values, int64_t count, uint8_t* bytes) {
  for (int64_t i = 0; i < count; ++i) {
    const T x = Saturate<T>(values[i]);
    std::memcpy(bytes + i * static_cast<int64_t>(sizeof(T)), &x, sizeof(T));
  }
}

}  // namespace

bool ConvertsToF32(ElementType type) {
  switch (type) {
    case ElementType::kF32:
    case ElementType::kF64:
    case ElementType::kI8:
    case ElementType::kU8:
    case ElementType::kI16:
    case ElementType::kU16:
    case ElementType::kI32:
    case ElementType::kU32:
    case ElementType::kI64:
    case ElementType::kU64:
    case ElementType::kBool:
      return true;
    default:
      return false;
  }
}

void ToF32(ElementType type, const uint8_t* bytes, int64_t count, float* values) {
  switch (type) {
    case ElementType::kF32:
      std::memcpy(values, bytes, static_cast<size_t>(count) * sizeof(float));
      return;
    case ElementType::kF64:
      return Widen<double>(bytes, count, values);
    case ElementType::kI8:
      return Widen<int8_t>(bytes, count, values);
    case ElementType::kU8:
    case ElementType::kBool:
      return Widen<uint8_t>(bytes, count, values);
    case ElementType::kI16:
      return Widen<int16_t>(bytes, count, values);
    case ElementType::kU16:
      return Widen<uint16_t>(bytes, count, values);
    case ElementType::kI32:
      return Widen<int32_t>(bytes, count, values);
    case ElementType::kU32:
      return Widen<uint32_t>(bytes, count, values);
    case ElementType::kI64:
      return Widen<int64_t>(bytes, count, values);
    case ElementType::kU64:
      return Widen<uint64_t>(bytes, count, values);
    default:
      DLA_CHECK(false, TypeName(type));
  }
}

void FromF32(ElementType type, const float* values, int64_t count, uint8_t* bytes) {
  switch (type) {
    case ElementType::kF32:
      std::memcpy(bytes, values, static_cast<size_t>(count) * sizeof(float));
      return;
    case ElementType::kF64:
      for (int64_t i = 0; i < count; ++i) {
        const double x = static_cast<double>(values[i]);
        std::memcpy(bytes + i * 8, &x, sizeof(x));
      }
      return;
    case ElementType::kI8:
      return Narrow<int8_t>(values, count, bytes);
    case ElementType::kU8:
      return Narrow<uint8_t>(values, count, bytes);
    case ElementType::kBool:
      for (int64_t i = 0; i < count; ++i) bytes[i] = values[i] != 0 ? 1 : 0;
      return;
    case ElementType::kI16:
      return Narrow<int16_t>(values, count, bytes);
    case ElementType::kU16:
      return Narrow<uint16_t>(values, count, bytes);
    case ElementType::kI32:
      return Narrow<int32_t>(values, count, bytes);
    case ElementType::kU32:
      return Narrow<uint32_t>(values, count, bytes);
    case ElementType::kI64:
      return Narrow<int64_t>(values, count, bytes);
    case ElementType::kU64:
      return Narrow<uint64_t>(values, count, bytes);
    default:
      DLA_CHECK(false, TypeName(type));
  }
}

}  // namespace dla::runtime
