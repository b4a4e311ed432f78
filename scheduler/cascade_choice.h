// Which groups run as cascades, while what stays whole is given.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "scheduler/cascade.h"
#include "scheduler/given_schedule.h"
#include "scheduler/residency_problem.h"
#include "scheduler/schedule.h"
#include "scheduler/value_flow.h"
#include "support/status.h"

namespace dla::scheduler {

// Groups that are decided about together: a cascade, or one group.
struct Segment {
  GroupSpan groups;
  int64_t lines = 0;  // of a cascade's stripes; 0: no cascade

  bool operator==(const Segment& other) const {
    return groups.first == other.groups.first && groups.end == other.groups.end &&
           lines == other.lines;
  }
};

// These cascades in order, and every other one of `groups` groups alone. kUsage: they overlap, or a
// span is none.
Result<std::vector<Segment>> SplitIntoSegments(std::vector<Segment> cascades, int groups);

// The cascades that the user gives; a span of -1 where the names are not those of groups that
// follow one another.
std::vector<Segment> GivenCascades(const ir::Graph& graph, const GivenSchedule* given);

// A value that is held whole, and the groups from its maker to its last reader.
struct HeldValue {
  ir::ValueId root = ir::kNoValue;
  GroupSpan groups;
};

struct CascadeChoice {
  const ir::Graph& graph;
  const std::vector<ir::Nest>& nests;
  const ValueFlows& flows;
  const CascadePlanner& planner;
  std::vector<HeldValue> items;         // by number of Held::item
  std::vector<std::vector<Held>> held;  // by group
  std::function<bool(int group)> may_be_member;
  std::function<double(int group, std::span<const Held>)> group_cost;
  std::function<double(const Segment&, std::span<const Held>)> cascade_cost;
  // Else only those that win something at one of their ends: a value that does not stay whole, or
  // one that their first group moves more than once.
  bool try_every_chain = false;
  // Does the group, alone, move something more than once?
  std::function<bool(int group, std::span<const Held>)> moves_again;
};

// Heights of stripes of the last group of a chain, the highest first: all of few lines, else those
// that part the lines evenly.
std::vector<int64_t> HeightsOf(const ir::Nest& last);

// The cascades of the partition into cascades and single groups that costs least while what is held
// stays as it is: dynamic programming over the ends of cascades. Values that are held only within a
// cascade are no longer.
std::vector<Segment> ChooseCascades(const CascadeChoice& choice);

}  // namespace dla::scheduler
