// What an operand of a nest is to the machine; scratchpads state which classes they hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dla {

enum class OperandClass : uint8_t { kInput, kWeight, kPartial, kOutput, kVector };
inline constexpr int kOperandClassCount = 5;

// "input", "weight", "partial", "output", "vector".
std::string_view ClassName(OperandClass cls);
std::optional<OperandClass> ParseOperandClass(std::string_view name);

}  // namespace dla
