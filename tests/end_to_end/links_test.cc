// A value that stays in a scratchpad that does not hold the class of its use: the move engine
// brings its tiles over a link.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/end_to_end/compile_run.h"

namespace dla::testing {
namespace {

Tensor RandomTensor(const std::string& name, std::vector<int64_t> shape, std::mt19937* random) {
  Tensor tensor = {name, ElementType::kF32, shape, {}};
  std::vector<float> values(static_cast<size_t>(*CountElements(shape)));
  // Multiples of 1/4: all sums are exact.
  for (float& value : values)
    value = static_cast<float>(static_cast<int>((*random)() % 17) - 8) / 4;
  tensor.bytes.resize(values.size() * sizeof(float));
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

std::vector<float> Floats(const Tensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

TEST(Links, TilesOfAResidentComeOverALink) {
  std::mt19937 random(41);
  const Tensor a = RandomTensor("a", {40, 48}, &random);
  const Tensor b0 = RandomTensor("b0", {48, 96}, &random);
  for (const char* weight_bytes : {"64K", "16K", "8K"}) {
    SCOPED_TRACE(weight_bytes);
    const Result<Compiled> compiled =
        CompileModel(DLA_SOURCE_DIR "/tests/data/models/linked_matmul.onnx",
                     {.memories = {std::string("weight=") + weight_bytes}});
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    ASSERT_EQ(compiled->schedule.residents.size(), 1U);
    const scheduler::OperandPlace& place = compiled->schedule.groups[1].mapping.operands[1];
    EXPECT_GE(place.source, 0);
    EXPECT_EQ(compiled->schedule.target.memories[static_cast<size_t>(place.memory)].name, "weight");
    for (const std::optional<uint64_t> jitter : {std::optional<uint64_t>(), {1}, {2}, {3}}) {
      const Result<Outcome> outcome =
          RunCompiled(*compiled, {a, b0}, {.check = true, .jitter = jitter});
      ASSERT_TRUE(outcome.ok()) << outcome.status().message();
      if (!jitter) ExpectAsPredicted(*compiled, outcome->result);
      EXPECT_GE(outcome->result.total.counters.move_bytes, 48 * 96 * 4);
      const std::vector<float> x = Floats(a), w = Floats(b0), y = Floats(outcome->outputs.at("y"));
      for (size_t i = 0; i < 40; ++i) {
        for (size_t j = 0; j < 96; ++j) {
          float sum = 0;
          for (size_t k = 0; k < 48; ++k) sum += x[i * 48 + k] * std::max(w[k * 96 + j], 0.0F);
          ASSERT_EQ(y[i * 96 + j], sum) << i << " " << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace dla::testing
