// Computing nodes whose operands are constants, at compile time.
#pragma once

#include "ir/graph.h"
#include "ir/rewriter.h"
#include "support/status.h"

namespace dla::ir {

// Whether a node (ONNX or canonical form) can be computed now: its operands are constant (or only
// their shapes matter), its arithmetic exists for their types, and it is not too much work.
bool IsFoldable(const Graph& graph, const Node& node);

// Computes a canonical or self-evaluating node; its outputs become constants.
Status FoldNode(Graph* graph, const Node& node);

// The same for an ONNX node: rewrites it into canonical ones first where that is needed. The
// rewriter is left without collected nodes.
Status FoldOnnxNode(Graph* graph, Rewriter* rewriter, const Node& node);

// Graph outputs that are constants, inputs, or listed twice get a Copy of their own, so that each
// output is a value that a node computes. An output keeps its name.
Status DetachOutputs(Graph* graph);

}  // namespace dla::ir
