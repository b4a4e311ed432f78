// Builds small graphs in tests: one line a value or node.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/op.h"
#include "ir/tensor.h"

namespace dla::ir {

class GraphBuilder {
 public:
  explicit GraphBuilder(int opset = 17) : opset_(opset) { graph_.name = "test"; }

  ValueId Input(const std::string& name, const Shape& shape);
  ValueId Floats(const std::string& name, const Shape& shape, const std::vector<float>& values);
  ValueId Ints(const std::string& name, const std::vector<int64_t>& values);
  // A node in ONNX form; its results are called `name`, `name`.1, ... and have the inferred types.
  // Fails the test if inference fails.
  ValueId Node(const std::string& op, const std::string& name, const std::vector<ValueId>& inputs,
               AttributeMap attributes = {}, int outputs = 1);
  // The status of inference, for nodes that must be refused.
  Status TryNode(const std::string& op, const std::vector<ValueId>& inputs,
                 AttributeMap attributes = {}, int outputs = 1) const;

  // The graph with these outputs; the builder is left with it, too.
  Graph Build(const std::vector<ValueId>& outputs);

 private:
  int opset_;
  Graph graph_;
};

// Numbers that differ from each other: (seed + 7 i) mod 23 - 11, in sixteenths.
std::vector<float> Pattern(int64_t count, int seed = 0);

// The graph's inputs, filled with patterns.
std::map<std::string, Tensor> PatternInputs(const Graph& graph);

// Canonicalises a graph and evaluates it; the elements of its first output.
std::vector<float> Compute(Graph graph, const std::map<std::string, Tensor>& inputs);

// Runs all passes. Then: the evaluator before the passes (after canonicalise), the evaluator after
// each pass and the nests must all give the same outputs, within `tolerance` relative to the
// largest (0: exactly). Adds failures to the test.
void ExpectPassesKeepValues(const Graph& graph, float tolerance = 0);

}  // namespace dla::ir
