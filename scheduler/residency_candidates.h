// Which values may stay on chip, and in which scratchpads.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "machine/target.h"
#include "scheduler/value_flow.h"

namespace dla::scheduler {

// A value that may stay from the first group that writes it to the last one that reads it.
struct Candidate {
  ir::ValueId root = ir::kNoValue;
  int64_t bytes = 0;
  int64_t reserved_bytes = 0;  // of any of the memories: the coarsest alignment counts
  int first_group = 0;
  int end_group = 0;
  std::vector<int> memories;
  bool is_one_step = false;  // made by one group, read by the next one alone
  int over = -1;             // the candidate whose place it may take (see TakenOver)
};

// In order of their roots: values that groups with engines make and read, and nothing outside, that
// a scratchpad can hold together with at least one byte more. Nothing that is moved or gathered
// from.
std::vector<Candidate> CandidatesOf(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                                    const ValueFlows& flows, const machine::Target& target);

// The root whose place the group's output may take where both stay on chip: the group reads it last
// and once, element by element, each right before it writes the one at the same place. kNoValue:
// there is none. With several, the first operand.
ir::ValueId TakenOver(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                      const ValueFlows& flows, int group);

// Bytes of a root value's dense buffer.
int64_t RootBytes(const ir::Graph& graph, ir::ValueId root);

}  // namespace dla::scheduler
