#include "scheduler/objective.h"

#include <array>
#include <cstddef>

namespace dla::scheduler {
namespace {
constexpr std::array<std::string_view, 5> kNames = {"latency", "traffic", "energy", "edp",
                                                    "balanced"};
}  // namespace

std::string_view ObjectiveName(Objective objective) {
  return kNames[static_cast<size_t>(objective)];
}

std::optional<Objective> ParseObjective(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Objective>(i);
  }
  return std::nullopt;
}

}  // namespace dla::scheduler
