#include "tests/ir/graph_builder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ir/evaluate.h"
#include "ir/pass.h"
#include "tests/ir/nest_interpreter.h"

namespace dla::ir {
namespace {

ValueId Append(Graph* graph, const std::string& name, TensorType type) {
  Value value;
  value.name = name;
  value.type = type.type;
  value.shape = std::move(type.shape);
  graph->values.push_back(std::move(value));
  return static_cast<ValueId>(graph->values.size() - 1);
}

using Outputs = std::map<std::string, Tensor>;

void ExpectSame(const Outputs& wanted, const Outputs& got, float tolerance,
                const std::string& what) {
  for (const auto& [name, tensor] : wanted) {
    ASSERT_TRUE(got.contains(name)) << what << ": no output " << name;
    const std::vector<float> x = tensor.ToFloats(), y = got.at(name).ToFloats();
    ASSERT_EQ(x.size(), y.size()) << what << ": " << name;
    float largest = 0;
    for (const float value : x) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(x[i], y[i], tolerance * largest) << what << ": " << name << " element " << i;
    }
  }
}

}  // namespace

ValueId GraphBuilder::Input(const std::string& name, const Shape& shape) {
  graph_.inputs.push_back(Append(&graph_, name, {ElementType::kF32, shape}));
  return graph_.inputs.back();
}

ValueId GraphBuilder::Floats(const std::string& name, const Shape& shape,
                             const std::vector<float>& values) {
  const ValueId id = Append(&graph_, name, {ElementType::kF32, shape});
  graph_.values[Idx(id)].constant = MakeConstant(Tensor::Floats(shape, values));
  return id;
}

ValueId GraphBuilder::Ints(const std::string& name, const std::vector<int64_t>& values) {
  const Shape shape = {static_cast<int64_t>(values.size())};
  const ValueId id = Append(&graph_, name, {ElementType::kI64, shape});
  graph_.values[Idx(id)].constant = MakeConstant(Tensor::Ints(shape, values));
  return id;
}

ValueId GraphBuilder::Node(const std::string& op, const std::string& name,
                           const std::vector<ValueId>& inputs, AttributeMap attributes,
                           int outputs) {
  ir::Node node;
  node.name = name;
  node.op = op;
  node.inputs = inputs;
  node.attributes = std::move(attributes);
  node.onnx_nodes = {name};
  node.opset = opset_;
  node.outputs.assign(Idx(outputs), 0);
  std::vector<TensorType> types;
  const Status status = FindOperator(op)->infer(graph_, node, &types);
  EXPECT_TRUE(status.ok()) << op << ": " << status.message();
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string result = i == 0 ? name : name + "." + std::to_string(i);
    node.outputs[i] = Append(&graph_, result, types.at(i));
  }
  graph_.nodes.push_back(node);
  return node.outputs[0];
}

Status GraphBuilder::TryNode(const std::string& op, const std::vector<ValueId>& inputs,
                             AttributeMap attributes, int outputs) const {
  ir::Node node;
  node.op = op;
  node.inputs = inputs;
  node.attributes = std::move(attributes);
  node.opset = opset_;
  node.outputs.assign(Idx(outputs), 0);
  std::vector<TensorType> types;
  return FindOperator(op)->infer(graph_, node, &types);
}

Graph GraphBuilder::Build(const std::vector<ValueId>& outputs) {
  graph_.outputs = outputs;
  return graph_;
}

std::vector<float> Pattern(int64_t count, int seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>((seed + 7 * i) % 23 - 11) / 16);
  }
  return values;
}

std::map<std::string, Tensor> PatternInputs(const Graph& graph) {
  std::map<std::string, Tensor> inputs;
  int seed = 1;
  for (const ValueId id : graph.inputs) {
    const Value& value = graph.values[Idx(id)];
    inputs[value.name] = Tensor::Floats(value.shape, Pattern(ElementCount(value.shape), seed++));
  }
  return inputs;
}

std::vector<float> Compute(Graph graph, const std::map<std::string, Tensor>& inputs) {
  PassOptions options;
  options.stop_after = "canonicalise";
  const Status status = RunPasses(&graph, options);
  EXPECT_TRUE(status.ok()) << status.message();
  const std::string name = graph.values[Idx(graph.outputs[0])].name;
  const auto outputs = Evaluate(graph, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status().message();
  return outputs.ok() ? outputs->at(name).ToFloats() : std::vector<float>();
}

void ExpectPassesKeepValues(const Graph& graph, float tolerance) {
  const auto inputs = PatternInputs(graph);
  Outputs wanted;
  Graph after = graph;
  PassOptions options;
  options.dump = [&](std::string_view pass, const Graph& now) {
    if (pass == "import") return;
    const auto outputs = Evaluate(now, inputs);
    ASSERT_TRUE(outputs.ok()) << pass << ": " << outputs.status().message();
    if (pass == "canonicalise") wanted = *outputs;
    ExpectSame(wanted, *outputs, tolerance, std::string(pass));
  };
  const Status status = RunPasses(&after, options);
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<std::string> faults;
  const Outputs nests = EvaluateNests(after, inputs, &faults);
  ASSERT_TRUE(faults.empty()) << faults[0];
  ASSERT_FALSE(wanted.empty());
  const auto outputs = Evaluate(after, inputs);
  // The nests do the same arithmetic in the same order: no difference is allowed.
  ExpectSame(*outputs, nests, 0, "nests");
  // There contractions sum in a wider type.
  const Outputs on_vector = EvaluateNests(after, inputs, &faults, true);
  ExpectSame(*outputs, on_vector, std::max(tolerance, 1e-4f), "nests on the vector engine");
}

}  // namespace dla::ir
