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

}  // namespace dla::ir
