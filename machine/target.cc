#include "machine/target.h"

#include "support/checked.h"

namespace dla::machine {

int64_t CyclesAtRate(int64_t amount, Rational rate) {
  // Split, so that amount * denominator cannot overflow: amount = whole * numerator + rest.
  const int64_t whole = amount / rate.numerator;
  const int64_t rest = amount % rate.numerator;
  return whole * rate.denominator + CeilDiv(rest * rate.denominator, rate.numerator);
}

bool OutputStage::Does(MicroOp op) const {
  switch (op) {
    case MicroOp::kRelu:
      return relu;
    case MicroOp::kLeakyRelu:
      return leaky_relu;
    case MicroOp::kClamp:
      return clamp;
    default:
      return false;
  }
}

int Target::MemoryIndex(const std::string& memory_name) const {
  for (size_t i = 0; i < memories.size(); ++i) {
    if (memories[i].name == memory_name) return static_cast<int>(i);
  }
  return -1;
}

const Link* Target::FindLink(int from, int to) const {
  for (const Link& link : links) {
    if (link.from == from && link.to == to) return &link;
  }
  return nullptr;
}

}  // namespace dla::machine
