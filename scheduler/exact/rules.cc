#include "scheduler/exact/rules.h"

#include <array>
#include <cstddef>

namespace dla::scheduler {
namespace {
constexpr std::array<std::string_view, kRuleCount> kNames = {
    "capacity", "classes", "compute", "bus", "fill", "credit", "serial", "orders"};
}  // namespace

std::string_view RuleName(Rule rule) { return kNames[static_cast<size_t>(rule)]; }

std::optional<Rule> ParseRule(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Rule>(i);
  }
  return std::nullopt;
}

}  // namespace dla::scheduler
