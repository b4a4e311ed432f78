// The models of tests/data/cases from file to values: import, all passes, evaluator and nests
// against what ONNX Runtime gave.
#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/import.h"
#include "ir/evaluate.h"
#include "ir/pass.h"
#include "ir/text.h"
#include "tests/frontend/stored_cases.h"
#include "tests/ir/nest_interpreter.h"

namespace dla::frontend {
namespace {

using dla::testing::ExpectClose;
using dla::testing::ReadTensors;
using dla::testing::StoredCasePath;
using dla::testing::StoredCases;
using dla::testing::Tensors;

class Models : public ::testing::TestWithParam<std::string> {};

TEST_P(Models, MatchOnnxRuntime) {
  Result<ir::Graph> graph = ImportOnnx(StoredCasePath(GetParam(), "model.onnx"), {});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  ir::PassOptions options;
  options.dump = [](std::string_view pass, const ir::Graph& now) {
    const auto parsed = ir::ParseGraph(ir::PrintGraph(now), ir::LargeConstants(now));
    ASSERT_TRUE(parsed.ok()) << pass << ": " << parsed.status().message();
    EXPECT_TRUE(ir::SameGraph(now, *parsed)) << pass;
  };
  ASSERT_TRUE(ir::RunPasses(&*graph, options).ok());
  const Tensors inputs = ReadTensors(StoredCasePath(GetParam(), "inputs.npz"));
  const Tensors wanted = ReadTensors(StoredCasePath(GetParam(), "expected.npz"));
  ASSERT_FALSE(wanted.empty());
  const auto outputs = ir::Evaluate(*graph, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  ExpectClose(wanted, *outputs, 1e-4f);
  std::vector<std::string> faults;
  const Tensors nests = ir::EvaluateNests(*graph, inputs, &faults);
  ASSERT_TRUE(faults.empty()) << faults[0];
  ExpectClose(*outputs, nests, 0);
}

std::string CaseName(const ::testing::TestParamInfo<std::string>& folder) {
  std::string name = folder.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Models, ::testing::ValuesIn(StoredCases()), CaseName);

}  // namespace
}  // namespace dla::frontend
