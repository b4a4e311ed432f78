// The geometry of a cascade: how the groups of a chain run in stripes, one after the other.
//
// Back from the last group, each producer's stripes follow from the windows of its consumers: with
// consumers in blocks of B lines of their output, reading the lines coefficient * e + offset to
// + reach, the producer makes blocks of coefficient * B lines and leads by what the window reaches
// beyond them (Mapping's Stripe). Lines that a later stripe needs again stay in a ring.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "scheduler/mapping.h"
#include "scheduler/schedule.h"
#include "scheduler/value_flow.h"

namespace dla::scheduler {

// How a member runs: `block` lines of its output a stripe, the first stripe `stripe.lead` more. A
// member whose first stripe has all lines has the whole extent as its block, and no lead.
struct MemberStripes {
  Stripe stripe;
  int64_t block = 0;
};

// A value of which only the lines in use stay on chip.
struct RingValue {
  ir::ValueId root = ir::kNoValue;
  Ring ring;
  int64_t bytes = 0;
  int filler = -1;      // member that loads its lines from DRAM; -1: a member makes it
  bool stored = false;  // it is also written to DRAM
};

struct StripeGeometry {
  int first_group = 0, end_group = 0;
  std::vector<MemberStripes> members;  // by group - first_group
  std::vector<RingValue> rings;
};

// Stripes of `lines` output lines of the last group for the groups [first, end); nothing if they
// are no such chain. Values of `whole` stay whole on chip (by root): they need no rings.
std::optional<StripeGeometry> PlanStripes(const ir::Graph& graph,
                                          const std::vector<ir::Nest>& nests,
                                          const ValueFlows& flows, GroupSpan groups, int64_t lines,
                                          const std::vector<bool>& whole);

}  // namespace dla::scheduler
