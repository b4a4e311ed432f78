// Element types of tensors, shared by the IR, the instruction set and the file readers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dla {

enum class ElementType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kI4,
  kU4,
  kI8,
  kU8,
  kI16,
  kU16,
  kI32,
  kU32,
  kI64,
  kU64,
  kBool,
};
inline constexpr int kElementTypeCount = 15;

// "f32", "i8", "bool", ...: the names used in text forms and JSON.
std::string_view TypeName(ElementType type);
std::optional<ElementType> ParseElementType(std::string_view name);

// Bits of one element: 4 for i4 and u4, which are packed two to a byte, low half first.
int TypeBits(ElementType type);

// Bytes that `elements` of the type take, rounded up to whole bytes.
int64_t TypeBytes(ElementType type, int64_t elements);

bool IsFloat(ElementType type);

}  // namespace dla
