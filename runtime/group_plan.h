// What does not change from step to step: the roles of a group's dimensions for each array and
// vector instruction, worked out once before the group runs.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "machine/program.h"
#include "machine/target.h"
#include "support/status.h"

namespace dla::runtime {

// An array instruction: dimensions by role (machine/timing.h, ArrayExtents), outermost first;
// channels and depth in the order of the weight's axes, pixels in the order of the accumulator's.
struct ArrayPlan {
  std::vector<uint8_t> groups, pixels, channels, depth;
  uint16_t reduction_mask = 0;  // dimensions that the accumulator does not depend on
  bool drain_in_place = false;  // the drained tile lies exactly where the accumulators lie
  machine::Rational rate;
  double energy_pj_per_mac = 0;
};

// A vector instruction, or the drain of an array instruction.
struct VectorPlan {
  std::vector<uint8_t> kept, reduced;  // dimensions of the iteration space, outermost first
  std::vector<bool> full;              // by operation of the program
  double energy_pj_per_mac = 0;        // of its multiplications
};

struct GroupPlan {
  std::vector<uint16_t> dims_of;  // by operand
  // By position of the instruction in memory; instructions of the group's three code pieces.
  std::map<const machine::Instruction*, ArrayPlan> arrays;
  std::map<const machine::Instruction*, VectorPlan> vectors;
};

// Fails (kMalformed, kUnsupported) on roles that no engine can execute.
Result<GroupPlan> PlanGroup(const machine::Group& group, const machine::Target& target);

}  // namespace dla::runtime
