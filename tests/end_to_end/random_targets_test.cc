// Targets that nobody wrote: two, three and five scratchpads of random sizes and mixed classes,
// random links, arrays, bus and rates. What a user may describe must compile or be refused for its
// size, and what compiles runs as predicted and computes the same values.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "machine/target_file.h"
#include "tests/end_to_end/compile_run.h"

namespace dla::testing {
namespace {

class RandomTarget {
 public:
  explicit RandomTarget(uint64_t seed) : random_(seed) {}

  machine::Target Make(size_t memories) {
    auto loaded = machine::LoadTarget("edge32", {});
    EXPECT_TRUE(loaded.ok());
    machine::Target target = *loaded;
    target.name = "random";
    target.memories.clear();
    for (size_t m = 0; m < memories; ++m) target.memories.push_back(MakeMemory(m));
    // Each class lives somewhere, and some in several places.
    for (int c = 0; c < kOperandClassCount; ++c) {
      target.memories[Below(memories)].holds[static_cast<size_t>(c)] = true;
    }
    target.links.clear();
    for (int from = 0; from < static_cast<int>(memories); ++from) {
      for (int to = 0; to < static_cast<int>(memories); ++to) {
        if (from != to && Below(3) == 0) target.links.push_back({from, to, {Pick({8, 32}), 1}});
      }
    }
    target.array.rows = Pick({4, 8, 16, 32});
    target.array.cols = Pick({4, 8, 16, 32});
    target.array.dataflow = static_cast<machine::Dataflow>(Below(4));
    target.vector.lanes = Pick({1, 8, 32});
    target.dram.bytes_per_cycle = {Pick({4, 16, 64}), Pick({1, 3})};
    target.dram.burst_bytes = Pick({1, 32, 64});
    target.dram.latency_cycles = Pick({0, 20, 300});
    target.dma_startup_cycles = Pick({0, 16});
    return target;
  }

 private:
  machine::Memory MakeMemory(size_t number) {
    machine::Memory memory = {.name = Concat("m", number)};
    memory.bytes = Pick({24, 32, 50, 64, 96, 200}) * 1024;
    memory.align_bytes = Pick({1, 4, 16, 64});
    for (bool& holds : memory.holds) holds = Below(3) == 0;
    if (Below(4) == 0) memory.bytes_per_cycle = {Pick({16, 64, 200}), 1};
    memory.energy_pj_per_byte = 1;
    memory.energy_is_default = false;
    return memory;
  }
  uint64_t Below(uint64_t end) { return random_() % end; }
  int64_t Pick(std::initializer_list<int64_t> values) {
    return values.begin()[Below(values.size())];
  }

  std::mt19937_64 random_;
};

void RunOn(size_t memories, uint64_t first_seed) {
  const Bundled model = BundledModels()[1];
  const auto inputs = ReadNpz(BundledPath(model.name, "inputs.npz"));
  const auto expected = ReadNpz(BundledPath(model.name, "expected.npz"));
  ASSERT_TRUE(inputs.ok() && expected.ok());
  int ran = 0;
  for (uint64_t seed = first_seed; seed < first_seed + 8; ++seed) {
    const machine::Target target = RandomTarget(seed).Make(memories);
    SCOPED_TRACE(Concat("seed ", seed, "\n", machine::TargetJson(target)));
    CompileOptions options = {.import = model.import};
    options.machine = target;
    const auto compiled = CompileModel(BundledPath(model.name, "model.onnx"), options);
    if (!compiled.ok() && compiled.status().code() == ErrorCode::kDoesNotFit) continue;
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    const auto outcome = RunCompiled(*compiled, *inputs, {.check = true});
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    ExpectAsPredicted(*compiled, outcome->result);
    const auto jittered = RunCompiled(*compiled, *inputs, {.check = true, .jitter = seed});
    ASSERT_TRUE(jittered.ok()) << jittered.status().message();
    for (const Tensor& tensor : *expected) {
      EXPECT_LT(RelativeError(outcome->outputs.at(tensor.name), tensor), 1e-5);
      EXPECT_EQ(outcome->outputs.at(tensor.name).bytes, jittered->outputs.at(tensor.name).bytes);
    }
    ++ran;
  }
  EXPECT_GE(ran, 6);  // the others are too small
}

TEST(RandomTargets, TwoScratchpads) { RunOn(2, 200); }
TEST(RandomTargets, ThreeScratchpads) { RunOn(3, 300); }
TEST(RandomTargets, FiveScratchpads) { RunOn(5, 500); }

}  // namespace
}  // namespace dla::testing
