#include "runtime/kernels/convert.h"

#include <cmath>
#include <cstring>

#include "runtime/kernels/scalar.h"
#include "support/half.h"
#include "support/micro_program.h"
#include "support/status.h"

namespace dla::runtime {
namespace {

template <typename Stored, typename Value>
void Load(const uint8_t* bytes, int64_t count, void* values) {
  auto* to = static_cast<Value*>(values);
  if constexpr (std::is_same_v<Stored, Value>) {
    std::memcpy(to, bytes, static_cast<size_t>(count) * sizeof(Stored));
  } else {
    for (int64_t i = 0; i < count; ++i) {
      Stored x;
      std::memcpy(&x, bytes + i * static_cast<int64_t>(sizeof(Stored)), sizeof(Stored));
      to[i] = static_cast<Value>(x);
    }
  }
}

template <typename Stored, typename Value>
void Store(const void* values, int64_t count, uint8_t* bytes) {
  const auto* from = static_cast<const Value*>(values);
  if constexpr (std::is_same_v<Stored, Value>) {
    std::memcpy(bytes, from, static_cast<size_t>(count) * sizeof(Stored));
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const auto x = static_cast<Stored>(from[i]);
      std::memcpy(bytes + i * static_cast<int64_t>(sizeof(Stored)), &x, sizeof(Stored));
    }
  }
}

template <float (*kConvert)(uint16_t)>
void LoadHalf(const uint8_t* bytes, int64_t count, void* values) {
  auto* to = static_cast<float*>(values);
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes + i * 2, sizeof(bits));
    to[i] = kConvert(bits);
  }
}

template <uint16_t (*kConvert)(float)>
void StoreHalf(const void* values, int64_t count, uint8_t* bytes) {
  const auto* from = static_cast<const float*>(values);
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t bits = kConvert(from[i]);
    std::memcpy(bytes + i * 2, &bits, sizeof(bits));
  }
}

void LoadBools(const uint8_t* bytes, int64_t count, void* values) {
  auto* to = static_cast<uint8_t*>(values);
  for (int64_t i = 0; i < count; ++i) to[i] = bytes[i] != 0 ? 1 : 0;
}

// The two functions of each stored type.
struct Conversion {
  void (*load)(const uint8_t* bytes, int64_t count, void* values) = nullptr;
  void (*store)(const void* values, int64_t count, uint8_t* bytes) = nullptr;
};

template <typename Stored, typename Value>
constexpr Conversion Plain() {
  return {Load<Stored, Value>, Store<Stored, Value>};
}

Conversion ConversionOf(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return Plain<float, float>();
    case ElementType::kF16:
      return {LoadHalf<HalfToFloat>, StoreHalf<FloatToHalf>};
    case ElementType::kBF16:
      return {LoadHalf<BFloat16ToFloat>, StoreHalf<FloatToBFloat16>};
    case ElementType::kF64:
      return Plain<double, double>();
    case ElementType::kI8:
      return Plain<int8_t, int64_t>();
    case ElementType::kU8:
      return Plain<uint8_t, int64_t>();
    case ElementType::kI16:
      return Plain<int16_t, int64_t>();
    case ElementType::kU16:
      return Plain<uint16_t, int64_t>();
    case ElementType::kI32:
      return Plain<int32_t, int64_t>();
    case ElementType::kU32:
      return Plain<uint32_t, int64_t>();
    case ElementType::kI64:
      return Plain<int64_t, int64_t>();
    case ElementType::kU64:
      return Plain<uint64_t, uint64_t>();
    case ElementType::kBool:
      return {LoadBools, Store<uint8_t, uint8_t>};
    default:
      return {};
  }
}

}  // namespace

bool HasValues(ElementType type) { return ConversionOf(type).load != nullptr; }

int64_t ValueBytes(ElementType value_type) { return TypeBytes(value_type, 1); }

void LoadValues(ElementType type, const uint8_t* bytes, int64_t count, void* values) {
  const Conversion conversion = ConversionOf(type);
  DLA_CHECK(conversion.load != nullptr, TypeName(type));
  conversion.load(bytes, count, values);
}

void StoreValues(ElementType type, const void* values, int64_t count, uint8_t* bytes) {
  const Conversion conversion = ConversionOf(type);
  DLA_CHECK(conversion.store != nullptr, TypeName(type));
  conversion.store(values, count, bytes);
}

int64_t CountOverflows(ElementType type, const void* values, int64_t count) {
  const auto* from = static_cast<const float*>(values);
  int64_t overflows = 0;
  if (type == ElementType::kF16) {
    for (int64_t i = 0; i < count; ++i) overflows += OverflowsHalf(from[i]) ? 1 : 0;
  } else if (type == ElementType::kBF16) {
    for (int64_t i = 0; i < count; ++i) overflows += OverflowsBFloat16(from[i]) ? 1 : 0;
  }
  return overflows;
}

void ValueFromDouble(ElementType value_type, double number, void* value) {
  switch (value_type) {
    case ElementType::kF32:
      return Put(value, static_cast<float>(number));
    case ElementType::kF64:
      return Put(value, number);
    case ElementType::kI64:
      return Put(value, Truncate<int64_t>(std::nearbyint(number)));
    case ElementType::kU64:
      return Put(value, Truncate<uint64_t>(std::nearbyint(number)));
    default:
      return Put(value, static_cast<uint8_t>(number != 0 ? 1 : 0));
  }
}

}  // namespace dla::runtime
