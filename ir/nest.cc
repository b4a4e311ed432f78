#include "ir/nest.h"

namespace dla::ir {

bool Nest::DependsOn(int operand, int dimension) const {
  for (const Axis& axis : operands[static_cast<size_t>(operand)].axes) {
    for (const Term& term : axis.terms) {
      if (term.dimension == dimension) return true;
    }
  }
  return false;
}

uint32_t Nest::GatheredAxes(int operand) const {
  const Operand& gathered = operands[static_cast<size_t>(operand)];
  if (!gathered.gather) return 0;
  uint32_t mask = 0;
  for (size_t a = 0; a < gathered.axes.size(); ++a) {
    for (const Term& term : gathered.axes[a].terms) {
      if (DependsOn(gathered.gather->indices, term.dimension)) mask |= uint32_t{1} << a;
    }
  }
  return mask;
}

}  // namespace dla::ir
