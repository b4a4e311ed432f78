#include "scheduler/gain.h"

#include <algorithm>

#include "scheduler/predict.h"
#include "scheduler/residency.h"

namespace dla::scheduler {

double TransferGain(const ir::Nest& nest, const SearchResult& none, double bytes,
                    const machine::Target& target, Objective objective) {
  const machine::Rational rate = target.dram.bytes_per_cycle;
  const double bus =
      bytes * static_cast<double>(rate.denominator) / static_cast<double>(rate.numerator);
  const double idle =
      static_cast<double>(none.predicted.cycles - ComputeCycles(nest, none.mapping, target));
  switch (objective) {
    case Objective::kTraffic:
      return bytes;
    case Objective::kLatency:
      return std::min(bus, idle) + 1e-6 * bytes;
    case Objective::kEnergy:
    case Objective::kEdp:
      return bytes * target.dram.energy_pj_per_byte;
    case Objective::kBalanced:
      break;
  }
  return std::min(bus, idle) + 0.05 * bus;
}

double AdditiveCost(const machine::Counters& c, const ir::Nest& nest, const machine::Target& target,
                    Objective objective) {
  const double cycles = static_cast<double>(c.cycles);
  const double bytes = static_cast<double>(c.dram_bus_bytes());
  switch (objective) {
    case Objective::kLatency:
      return cycles + 1e-6 * bytes;
    case Objective::kTraffic:
      return bytes + 1e-6 * cycles;
    case Objective::kEnergy:
    case Objective::kEdp:
      return EnergyPj(c, target, nest.operands[0].ReadType()) + 1e-6 * cycles;
    case Objective::kBalanced:
      break;
  }
  const machine::Rational rate = target.dram.bytes_per_cycle;
  return cycles +
         0.05 * bytes * static_cast<double>(rate.denominator) / static_cast<double>(rate.numerator);
}

}  // namespace dla::scheduler
