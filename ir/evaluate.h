// The reference evaluator: defines what a graph computes, before and after every pass.
//
// Arithmetic (docs/ARCHITECTURE.md): float contractions in f32, starting from the bias, in the
// order C, R, S; element-wise work in f32, one operation after the other; reductions and
// normalisation sums in f64, rounded to f32 once. Where values have storage, they are written to
// and read from the buffers of their roots through their strides, so that a wrong layout gives
// wrong results (buffers begin as NaN).
#pragma once

#include <map>
#include <string>

#include "ir/graph.h"
#include "ir/tensor.h"
#include "support/status.h"

namespace dla::ir {

struct EvaluateOptions {
  bool all_values = false;  // return every computed value, not just the graph's outputs
};

// The outputs by name. `inputs` holds every graph input by name, with its type and shape.
Result<std::map<std::string, Tensor>> Evaluate(const Graph& graph,
                                               const std::map<std::string, Tensor>& inputs,
                                               const EvaluateOptions& options = {});

}  // namespace dla::ir
