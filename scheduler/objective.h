// What a compile optimises (`--optimize`).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dla::scheduler {

enum class Objective : uint8_t {
  kLatency,   // cycles, then bytes
  kTraffic,   // bus bytes, then cycles
  kEnergy,    // pJ, then cycles
  kEdp,       // energy times cycles
  kBalanced,  // least bus bytes among those within 5 % of the least cycles
};

inline constexpr int kObjectiveCount = 5;

std::string_view ObjectiveName(Objective objective);
std::optional<Objective> ParseObjective(std::string_view name);

}  // namespace dla::scheduler
