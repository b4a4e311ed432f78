// The passes, one file each. ir/pass.h has their order.
#pragma once

#include "ir/graph.h"
#include "ir/pass.h"
#include "support/status.h"

namespace dla::ir {

Status Canonicalise(Graph* graph, const PassOptions& options);
Status Fold(Graph* graph, const PassOptions& options);
Status Simplify(Graph* graph, const PassOptions& options);
Status Fuse(Graph* graph, const PassOptions& options);
Status Layout(Graph* graph, const PassOptions& options);
Status Precision(Graph* graph, const PassOptions& options);
Status Names(Graph* graph, const PassOptions& options);

}  // namespace dla::ir
