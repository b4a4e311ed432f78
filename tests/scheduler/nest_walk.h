// The brute-force walk of a nest: visits every step, enumerates every index that a tile uses, and
// moves what is not there yet. It shares only data types with the scheduler.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/nest.h"
#include "machine/target.h"
#include "scheduler/mapping.h"

namespace dla::testing {

struct Walk {
  struct PerOperand {
    int64_t load_bytes = 0, store_bytes = 0;
    int64_t load_bus_bytes = 0, store_bus_bytes = 0;
    int64_t descriptors = 0;
    int64_t largest_tile = 0;  // elements
  };
  std::vector<PerOperand> operands;  // the accumulators last
  int64_t cycles = 0;
  int64_t steps = 0;
  int64_t macs = 0;
};

// No rolling. Event-driven: engines, a bus in program order, one entry a transfer.
Walk WalkNest(const ir::Nest& nest, const scheduler::Mapping& mapping,
              const machine::Target& target);

}  // namespace dla::testing
