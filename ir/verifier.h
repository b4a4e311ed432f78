// Checks that a graph is sound, after import and after every pass. Collects all faults.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "support/status.h"

namespace dla::ir {

// Everything that is wrong with the graph, one line a fault (at most 100), empty if it is sound:
//   indices exist; names are unique; shapes are not empty or negative; constants have their bytes;
//   every value is an input, a constant or the output of one node that stands before its users
//   (after layout: or a view of a root); operators exist, arity holds, inferred types and shapes
//   are those stored; fused operations are element-wise and refer to earlier results;
//   storages lie inside their dense root, roots are their own roots, graph inputs and outputs are
//   dense, no two values are written to the same elements.
std::vector<std::string> VerifyFaults(const Graph& graph);

// The same as a Status (kMalformed, one line a fault).
Status Verify(const Graph& graph);

}  // namespace dla::ir
