// Which groups write and read each root value.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"

namespace dla::scheduler {

struct ValueFlow {
  std::vector<int> writers, readers;  // groups, in order, once each
  bool is_graph_output = false;       // the value, or a view of it
};

using ValueFlows = std::map<ir::ValueId, ValueFlow>;  // by root

ValueFlows FlowsOf(const ir::Graph& graph, const std::vector<ir::Nest>& nests);

// The root of the operand's value; kNoValue for one that exists only on chip.
ir::ValueId RootOf(const ir::Graph& graph, const ir::Operand& operand);

// Bytes of all indices of an operand, once each.
int64_t DenseBytes(const ir::Operand& operand);

}  // namespace dla::scheduler
