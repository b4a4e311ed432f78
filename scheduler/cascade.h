// Mappings of a cascade's groups: a chain of groups as one loop over stripes.
//
// What lies between the groups stays in rings (scheduler/stripes.h) and never crosses the bus;
// constants are loaded in the first stripe and stay for all of them. Each group runs its stripe as
// any group runs its steps, so that bytes, cycles and code follow from nest and mapping as usual.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "machine/counters.h"
#include "machine/target.h"
#include "scheduler/mapping.h"
#include "scheduler/schedule.h"
#include "scheduler/stripes.h"
#include "scheduler/value_flow.h"

namespace dla::scheduler {

struct CascadePlan {
  Cascade cascade;
  std::vector<Mapping> mappings;             // one a member
  std::vector<machine::Counters> predicted;  // one a member
  std::vector<Resident> rings;               // without addresses
};

class CascadePlanner {
 public:
  CascadePlanner(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                 const ValueFlows& flows, const machine::Target& target)
      : graph_(graph), nests_(nests), flows_(flows), target_(target) {}

  // The groups in stripes of `lines` lines of the last one, beside `reserved_bytes` of each
  // scratchpad. `whole_in`: the memory in which a value (by root) stays whole, for those that do.
  // Nothing if the groups are no chain or do not fit.
  std::optional<CascadePlan> Plan(GroupSpan groups, int64_t lines,
                                  const std::map<ir::ValueId, int>& whole_in,
                                  const std::vector<int64_t>& reserved_bytes) const;

  // Is there any size of scratchpads at which they are a cascade?
  bool IsChain(GroupSpan groups) const;

 private:
  const ir::Graph& graph_;
  const std::vector<ir::Nest>& nests_;
  const ValueFlows& flows_;
  const machine::Target& target_;
};

}  // namespace dla::scheduler
