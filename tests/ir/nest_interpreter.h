// Runs a nest point by point, straight from its definition in ir/nest.h: the twin of the evaluator.
//
// It knows no operator: only dimensions, axis maps and the micro-program. If a nest computes what
// the evaluator computes, its access maps, pad values and program are right.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "ir/tensor.h"

namespace dla::ir {

// The DRAM buffers of values by root, constants included on first use.
using NestBuffers = std::map<ValueId, std::vector<uint8_t>>;

// The broken invariants of a nest (ir/nest.h), one line each.
std::vector<std::string> NestFaults(const Graph& graph, const Nest& nest);

// Computes the output's elements in the buffers.
void RunNest(const Graph& graph, const Nest& nest, NestBuffers* buffers);

// Runs all nests of a graph after the layout pass, contractions in their vector form if
// `on_vector`; gives the outputs by name, as Evaluate does. `faults` gets what NestFaults finds,
// and nests that cannot be built.
std::map<std::string, Tensor> EvaluateNests(const Graph& graph,
                                            const std::map<std::string, Tensor>& inputs,
                                            std::vector<std::string>* faults,
                                            bool on_vector = false);

}  // namespace dla::ir
