#include "support/element_type.h"

#include <array>
#include <cstddef>

namespace dla {
namespace {

struct TypeRow {
  std::string_view name;
  int bits;
  bool is_float;
};

// In the order of the enumerators.
constexpr std::array<TypeRow, kElementTypeCount> kTypes = {{
    {"f32", 32, true},
    {"f16", 16, true},
    {"bf16", 16, true},
    {"f64", 64, true},
    {"i4", 4, false},
    {"u4", 4, false},
    {"i8", 8, false},
    {"u8", 8, false},
    {"i16", 16, false},
    {"u16", 16, false},
    {"i32", 32, false},
    {"u32", 32, false},
    {"i64", 64, false},
    {"u64", 64, false},
    {"bool", 8, false},
}};

const TypeRow& Row(ElementType type) { return kTypes[static_cast<size_t>(type)]; }

}  // namespace

std::string_view TypeName(ElementType type) { return Row(type).name; }

std::optional<ElementType> ParseElementType(std::string_view name) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

int TypeBits(ElementType type) { return Row(type).bits; }

int64_t TypeBytes(ElementType type, int64_t elements) {
  return (elements * TypeBits(type) + 7) / 8;
}

bool IsFloat(ElementType type) { return Row(type).is_float; }

}  // namespace dla
