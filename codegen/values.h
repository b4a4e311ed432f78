// What became of the model's values, so that a run can show them.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "machine/program.h"
#include "scheduler/schedule.h"

namespace dla::codegen {

// For each value that the model's nodes compute (ir::ComputedValues of the graph as imported): the
// region or scratchpad where it can be read and after which group, or the group into which its node
// was fused. `graph` is the graph of the schedule, after all passes.
std::vector<machine::ValueDesc> DescribeValues(const std::vector<ir::ComputedValue>& computed,
                                               const scheduler::Schedule& schedule);

}  // namespace dla::codegen
