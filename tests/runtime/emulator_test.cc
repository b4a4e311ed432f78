// Hand-made convolutions: values against plain loops, bytes and cycles against a walk of all steps.
#include "runtime/emulator.h"

#include <gtest/gtest.h>

#include "machine/verifier.h"
#include "tests/runtime/conv_program.h"

namespace dla::runtime::test {
namespace {

TEST(Emulator, RandomConvolutionsHaveTheValuesOfPlainLoops) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const ConvCase c = MakeConv(RandomConv(&random), &random);
    const auto result = runtime::Run(c.program, {}, c.inputs);
    ASSERT_TRUE(result.ok()) << result.status().message();
    ASSERT_EQ(result->outputs.size(), 1u);
    ASSERT_EQ(FloatsOf(result->outputs[0].bytes), c.expected);
  }
}

TEST(Emulator, HandMadeProgramsAreSoundToTheVerifier) {
  for (uint32_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const ConvCase c = MakeConv(RandomConv(&random), &random);
    const Status status = machine::VerifyProgram(c.program);
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

TEST(Emulator, RandomConvolutionsCostWhatAWalkOfAllStepsSays) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    ConvCase c = MakeConv(RandomConv(&random), &random);
    machine::Target& target = c.program.target;
    target.dram.latency_cycles = static_cast<int64_t>(random() % 3) * 50;
    target.dram.burst_bytes = random() % 2 == 0 ? 1 : 64;
    target.dma_startup_cycles = static_cast<int64_t>(random() % 2) * 16;
    target.array.rows = target.array.cols = 8;
    if (random() % 2 == 0) target.dram.bytes_per_cycle = {64, 3};
    const auto result = runtime::Run(c.program, {.mode = Mode::kTimed}, {});
    ASSERT_TRUE(result.ok()) << result.status().message();
    const WalkedCosts costs = WalkCosts(c.program, c.hand, ConvCycles);
    const machine::Counters& counters = result->total.counters;
    EXPECT_EQ(counters.cycles, costs.cycles);
    EXPECT_EQ(counters.dram_bytes(), costs.dram_bytes);
    EXPECT_EQ(counters.dram_bus_bytes(), costs.dram_bus_bytes);
    EXPECT_EQ(counters.descriptors, costs.descriptors);
    for (size_t e = 0; e < result->total.engines.size(); ++e) {
      int64_t sum = result->total.engines[e].busy;
      for (const int64_t stall : result->total.engines[e].stall) sum += stall;
      EXPECT_EQ(sum, counters.cycles) << machine::EngineName(static_cast<machine::Engine>(e));
    }
  }
}

TEST(Emulator, ArrayThenVectorTakesTheSumOfBothInEachStep) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    ConvSpec spec = RandomConv(&random);
    spec.relu = spec.drain_apart = false;
    ConvCase c = MakeConv(spec, &random);
    AddResidual(spec, &c, &random);
    machine::Target& target = c.program.target;
    target.dram.latency_cycles = static_cast<int64_t>(random() % 3) * 50;
    target.dma_startup_cycles = static_cast<int64_t>(random() % 2) * 16;
    target.vector.startup_cycles = 8;
    const auto result = runtime::Run(c.program, {.check = true}, c.inputs);
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(FloatsOf(result->outputs[0].bytes), c.expected);
    const WalkedCosts costs = WalkCosts(c.program, c.hand, ConvResidualCycles);
    EXPECT_EQ(result->total.counters.cycles, costs.cycles);
    EXPECT_EQ(result->total.counters.dram_bytes(), costs.dram_bytes);
    const Status status = machine::VerifyProgram(c.program);
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

}  // namespace
}  // namespace dla::runtime::test
