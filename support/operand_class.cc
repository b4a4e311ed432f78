#include "support/operand_class.h"

#include <array>
#include <cstddef>

namespace dla {
namespace {
constexpr std::array<std::string_view, kOperandClassCount> kNames = {"input", "weight", "partial",
                                                                     "output", "vector"};
}  // namespace

std::string_view ClassName(OperandClass cls) { return kNames[static_cast<size_t>(cls)]; }

std::optional<OperandClass> ParseOperandClass(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<OperandClass>(i);
  }
  return std::nullopt;
}

}  // namespace dla
