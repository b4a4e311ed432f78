// Which values may stay on chip, and in which scratchpads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "machine/target.h"
#include "scheduler/schedule.h"
#include "scheduler/through.h"
#include "scheduler/value_flow.h"

namespace dla::scheduler {

// A value that may stay for all of its life, or for the part of it between two uses.
struct Candidate {
  ir::ValueId root = ir::kNoValue;
  int64_t bytes = 0;
  int64_t reserved_bytes = 0;  // of any of the memories: the coarsest alignment counts
  int first_group = 0;
  int end_group = 0;
  std::vector<int> memories;
  bool is_one_step = false;  // made by one group, read by the next one alone
  int over = -1;             // the candidate whose place it may take (see TakenOver)
  std::vector<int> touches;  // the groups that make or read it here, in order
  Through through;           // what else it has to do with DRAM

  // Made by a group and never in DRAM.
  bool is_whole() const { return through == Through(); }
  // The first group that reads it loads it.
  bool is_loaded() const { return through.loaded || through.kept; }
  // Does any of these groups make or read it?
  bool IsTouchedBy(GroupSpan groups) const {
    return std::any_of(touches.begin(), touches.end(),
                       [&](int g) { return groups.first <= g && g < groups.end; });
  }
};

// In order of their roots. Values that a scratchpad can hold together with at least one byte more,
// and that groups with engines make and read; nothing is held by a group that moves it or gathers
// from it. First, of each root, the whole life of what nothing outside makes or reads; then the
// parts between uses: from the making on, stored as well; between readers, loaded by the first of
// them. With `keeps`, constants may also stay for all groups, from inference to inference.
std::vector<Candidate> CandidatesOf(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                                    const ValueFlows& flows, const machine::Target& target,
                                    bool keeps);

// The root whose place the group's output may take where both stay on chip: the group reads it last
// and once, element by element, each right before it writes the one at the same place. kNoValue:
// there is none. With several, the first operand.
ir::ValueId TakenOver(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                      const ValueFlows& flows, int group);

// Bytes of a root value's dense buffer.
int64_t RootBytes(const ir::Graph& graph, ir::ValueId root);

}  // namespace dla::scheduler
