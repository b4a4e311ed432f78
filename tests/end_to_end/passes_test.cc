// Reductions over more than the scratchpads hold run in passes: values, checker, counts.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "codegen/emit.h"
#include "machine/target_file.h"
#include "machine/verifier.h"
#include "scheduler/scheduler.h"
#include "tests/end_to_end/compile_run.h"

namespace dla::testing {
namespace {

// A graph of one node on an input of this shape.
struct OneNode {
  std::string op;
  ir::Shape input, output;
  std::map<std::string, ir::Attribute> attributes;
};

ir::Graph GraphOf(const OneNode& node) {
  ir::Graph graph;
  for (const auto& [name, shape] : {std::pair("x", node.input), std::pair("y", node.output)}) {
    ir::Value value = {.name = name, .shape = shape};
    value.storage = {.root = static_cast<ir::ValueId>(graph.values.size()),
                     .strides = ir::DenseStrides(shape)};
    graph.values.push_back(value);
  }
  graph.nodes.push_back({.name = "node",
                         .op = node.op,
                         .inputs = {0},
                         .outputs = {1},
                         .attributes = node.attributes,
                         .onnx_nodes = {"node"}});
  graph.inputs = {0};
  graph.outputs = {1};
  return graph;
}

std::vector<float> RandomInput(int64_t elements, uint32_t seed) {
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-4, 4);
  std::vector<float> values(static_cast<size_t>(elements));
  for (float& value : values) value = uniform(random);
  return values;
}

// Compiles for a pool of `bytes`, expects `passes` (0: not cut), runs with --check.
std::vector<float> RunOn(const OneNode& node, int64_t bytes, int64_t passes,
                         const std::vector<float>& input) {
  Compiled compiled;
  compiled.graph = GraphOf(node);
  machine::Target target = *machine::LoadTarget("edge32-unified", {});
  target.memories[0].bytes = bytes;
  Result<scheduler::Schedule> schedule = scheduler::MakeSchedule(compiled.graph, target, {});
  EXPECT_TRUE(schedule.ok()) << schedule.status().message();
  if (!schedule.ok()) return {};
  compiled.schedule = *schedule;
  const ir::Nest& nest = compiled.schedule.groups[0].nest;
  EXPECT_EQ(nest.pass_dimension < 0 ? 0 : nest.dimensions.back().extent, passes);
  Result<machine::Program> program = codegen::Emit(compiled.schedule);
  EXPECT_TRUE(program.ok()) << program.status().message();
  compiled.program = *program;
  const Status verified = machine::VerifyProgram(compiled.program);
  EXPECT_TRUE(verified.ok()) << verified.message();
  Tensor tensor = {"x", ElementType::kF32, node.input, {}};
  tensor.bytes.resize(input.size() * sizeof(float));
  std::memcpy(tensor.bytes.data(), input.data(), tensor.bytes.size());
  const Result<Outcome> outcome = RunCompiled(compiled, {tensor}, {.check = true});
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  if (!outcome.ok()) return {};
  ExpectAsPredicted(compiled, outcome->result);
  const Tensor& y = outcome->outputs.at("y");
  std::vector<float> values(y.bytes.size() / sizeof(float));
  std::memcpy(values.data(), y.bytes.data(), y.bytes.size());
  return values;
}

TEST(Passes, SoftmaxOfALongRow) {
  const OneNode node = {"Softmax", {5, 3000}, {5, 3000}, {{"axes", std::vector<int64_t>{1}}}};
  const std::vector<float> x = RandomInput(15000, 31);
  for (const auto& [bytes, passes] : {std::pair<int64_t, int64_t>(65536, 0), {4096, 3}, {512, 3}}) {
    SCOPED_TRACE(bytes);
    const std::vector<float> y = RunOn(node, bytes, passes, x);
    ASSERT_EQ(y.size(), x.size());
    for (size_t row = 0; row < 5; ++row) {
      double sum = 0;
      for (size_t i = 0; i < 3000; ++i) sum += std::exp(static_cast<double>(x[row * 3000 + i]));
      for (size_t i = 0; i < 3000; ++i) {
        const double expected = std::exp(static_cast<double>(x[row * 3000 + i])) / sum;
        ASSERT_NEAR(y[row * 3000 + i], expected, 1e-5 * expected) << row << " " << i;
      }
    }
  }
}

TEST(Passes, SumOfALargeMap) {
  const OneNode node = {"ReduceSum",
                        {1, 3, 50, 60},
                        {1, 3, 1, 1},
                        {{"axes", std::vector<int64_t>{2, 3}}, {"keepdims", int64_t{1}}}};
  const std::vector<float> x = RandomInput(9000, 32);
  for (const auto& [bytes, passes] : {std::pair<int64_t, int64_t>(65536, 0), {4096, 1}, {256, 1}}) {
    SCOPED_TRACE(bytes);
    const std::vector<float> y = RunOn(node, bytes, passes, x);
    ASSERT_EQ(y.size(), 3U);
    for (size_t c = 0; c < 3; ++c) {
      double sum = 0;
      for (size_t i = 0; i < 3000; ++i) sum += static_cast<double>(x[c * 3000 + i]);
      EXPECT_NEAR(y[c], sum, 2e-2) << c;
    }
  }
}

}  // namespace
}  // namespace dla::testing
