// What a canonical node computes with: which types its arithmetic exists for, and the evaluation of
// one node whatever its types.
#pragma once

#include <span>

#include "ir/graph.h"
#include "ir/op.h"
#include "ir/tensor.h"

namespace dla::ir {

// Fails where the arithmetic of a canonical node (its own, not what is fused to it) does not exist
// for the types of its operands, or gives another type than its results have.
Status CheckTypes(const Graph& graph, const Node& node);

// Reference arithmetic of a bare node: contractions of half-precision types are computed in f32.
Status EvaluateNode(const Node& node, std::span<const TensorView> inputs,
                    std::span<Tensor> outputs);

}  // namespace dla::ir
