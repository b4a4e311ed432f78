// The models of tests/data/cases from file to values: import, all passes, evaluator and nests
// against what ONNX Runtime gave.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "frontend/import.h"
#include "ir/evaluate.h"
#include "ir/pass.h"
#include "ir/text.h"
#include "support/tensor_file.h"
#include "tests/ir/nest_interpreter.h"

namespace dla::frontend {
namespace {

using Tensors = std::map<std::string, ir::Tensor>;

Tensors ReadTensors(const std::string& path) {
  Tensors tensors;
  const auto read = ReadNpz(path);
  EXPECT_TRUE(read.ok()) << read.status().message();
  if (!read.ok()) return tensors;
  for (const Tensor& tensor : *read) {
    tensors[tensor.name] = {tensor.type, tensor.shape, tensor.bytes};
  }
  return tensors;
}

std::vector<std::string> CaseFolders() {
  std::vector<std::string> folders;
  const std::filesystem::path root = std::string(DLA_SOURCE_DIR) + "/tests/data/cases";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().filename() == "model.onnx") {
      folders.push_back(entry.path().parent_path().lexically_relative(root).string());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

// rtol 1e-4 as the cases ask; the absolute part is relative to the largest element.
void ExpectClose(const Tensors& wanted, const Tensors& got, float rtol) {
  for (const auto& [name, tensor] : wanted) {
    ASSERT_TRUE(got.contains(name)) << name;
    ASSERT_EQ(tensor.shape, got.at(name).shape) << name;
    ASSERT_EQ(tensor.type, got.at(name).type) << name;
    const std::vector<float> x = tensor.ToFloats(), y = got.at(name).ToFloats();
    float largest = 0;
    for (const float value : x) {
      if (std::isfinite(value)) largest = std::max(largest, std::fabs(value));
    }
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i]) && std::isnan(y[i])) continue;
      if (x[i] == y[i]) continue;  // infinities, too
      ASSERT_NEAR(x[i], y[i], rtol * std::fabs(x[i]) + 0.1f * rtol * largest)
          << name << " element " << i;
    }
  }
}

class Models : public testing::TestWithParam<std::string> {};

TEST_P(Models, MatchOnnxRuntime) {
  const std::string folder = std::string(DLA_SOURCE_DIR) + "/tests/data/cases/" + GetParam();
  Result<ir::Graph> graph = ImportOnnx(folder + "/model.onnx", {});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  ir::PassOptions options;
  options.dump = [](std::string_view pass, const ir::Graph& now) {
    const auto parsed = ir::ParseGraph(ir::PrintGraph(now), ir::LargeConstants(now));
    ASSERT_TRUE(parsed.ok()) << pass << ": " << parsed.status().message();
    EXPECT_TRUE(ir::SameGraph(now, *parsed)) << pass;
  };
  ASSERT_TRUE(ir::RunPasses(&*graph, options).ok());
  const Tensors inputs = ReadTensors(folder + "/inputs.npz");
  const Tensors wanted = ReadTensors(folder + "/expected.npz");
  ASSERT_FALSE(wanted.empty());
  const auto outputs = ir::Evaluate(*graph, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status().message();
  ExpectClose(wanted, *outputs, 1e-4f);
  std::vector<std::string> faults;
  const Tensors nests = ir::EvaluateNests(*graph, inputs, &faults);
  ASSERT_TRUE(faults.empty()) << faults[0];
  ExpectClose(*outputs, nests, 0);
}

std::string CaseName(const testing::TestParamInfo<std::string>& folder) {
  std::string name = folder.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Models, testing::ValuesIn(CaseFolders()), CaseName);

}  // namespace
}  // namespace dla::frontend
