#include "tests/frontend/stored_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "support/tensor_file.h"

namespace dla::testing {
namespace {

std::string Root() { return std::string(DLA_SOURCE_DIR) + "/tests/data/cases"; }

}  // namespace

std::vector<std::string> StoredCases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(Root())) {
    if (entry.path().filename() == "model.onnx") {
      names.push_back(entry.path().parent_path().lexically_relative(Root()).string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string StoredCasePath(const std::string& name, const std::string& file) {
  return Root() + "/" + name + "/" + file;
}

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

}  // namespace dla::testing
