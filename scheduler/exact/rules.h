// The rules by which the exact search leaves choices out; none of them changes an optimum.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace dla::scheduler {

enum class Rule : uint8_t {
  kCapacity,  // a box whose smallest tiles do not fit with single buffers
  kClasses,   // the innermost loop says which operands move as often as they can
  kCompute,   // the engines' time, with folds rounded up
  kBus,       // the bus serves one transfer after the other
  kFill,      // the first loads and the last store overlap with nothing
  kCredit,    // loads run ahead of the engines by one step at most
  kSerial,    // single buffers move while the engines wait
  kOrders,    // at one vector of blocks: bounds of each order before it is walked
};
inline constexpr int kRuleCount = 8;

// "capacity", "classes", ...
std::string_view RuleName(Rule rule);
std::optional<Rule> ParseRule(std::string_view name);

class Rules {
 public:
  bool Has(Rule rule) const { return (mask_ >> static_cast<int>(rule) & 1U) != 0; }
  void Disable(Rule rule) { mask_ &= ~(1U << static_cast<int>(rule)); }
  uint32_t mask() const { return mask_; }

 private:
  uint32_t mask_ = (1U << kRuleCount) - 1;
};

}  // namespace dla::scheduler
