// The search against everything: small layers, all block sizes, all orders.
#include "scheduler/search.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "machine/target_file.h"
#include "scheduler/block_candidates.h"
#include "scheduler/layer.h"
#include "scheduler/predict.h"
#include "scheduler/transfers.h"

namespace dla::scheduler {
namespace {

SearchProblem ProblemOf(const ir::Nest& nest, const machine::Target& target) {
  SearchProblem problem = {.nest = &nest, .target = &target};
  for (const machine::Memory& memory : target.memories) problem.free_bytes.push_back(memory.bytes);
  problem.resident_in.assign(nest.operands.size(), -1);
  return problem;
}

TEST(CriticalSizes, AreTheDistinctCeilings) {
  EXPECT_EQ(CriticalSizes(1), std::vector<int64_t>({1}));
  EXPECT_EQ(CriticalSizes(7), std::vector<int64_t>({1, 2, 3, 4, 7}));
  for (int64_t extent = 1; extent < 200; ++extent) {
    std::vector<int64_t> expected;
    for (int64_t n = extent; n >= 1; --n) expected.push_back((extent + n - 1) / n);
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    EXPECT_EQ(CriticalSizes(extent), expected);
  }
}

TEST(Search, MappingFitsAndIsPredicted) {
  machine::Target target = *machine::LoadTarget("edge32", {});
  for (machine::Memory& memory : target.memories) memory.bytes = 4096;
  const ir::Nest nest =
      NestOf({.M = 40, .C = 24, .E = 14, .F = 14, .R = 3, .S = 3, .pad = 1, .H = 14, .W = 14},
             ElementType::kF32);
  const auto result = SearchMapping(ProblemOf(nest, target));
  ASSERT_TRUE(result.has_value());
  std::vector<int64_t> used(target.memories.size(), 0);
  for (int o = 0; o <= nest.output(); ++o) {
    used[static_cast<size_t>(result->mapping.operands[static_cast<size_t>(o)].memory)] +=
        BufferBytes(nest, result->mapping, target, o);
  }
  used[static_cast<size_t>(result->mapping.accumulator.memory)] +=
      BufferBytes(nest, result->mapping, target, kAccumulator);
  for (size_t m = 0; m < used.size(); ++m) EXPECT_LE(used[m], target.memories[m].bytes);
  EXPECT_TRUE(result->predicted == Predict(nest, result->mapping, target));
}

// Within the space that it enumerates (no cut kernels, buffers double where they fit) the least
// traffic is found: compared with all block vectors and all orders.
TEST(Search, LeastTrafficOfSmallLayers) {
  machine::Target target = *machine::LoadTarget("edge32-ideal", {});
  for (machine::Memory& memory : target.memories) memory.bytes = 256;
  const ir::Nest nest =
      NestOf({.M = 6, .C = 5, .E = 4, .F = 4, .R = 2, .S = 2, .H = 5, .W = 5}, ElementType::kF32);
  SearchProblem problem = ProblemOf(nest, target);
  problem.objective = Objective::kTraffic;
  const auto found = SearchMapping(problem);
  ASSERT_TRUE(found.has_value());
  int64_t least = INT64_MAX;
  Mapping mapping = found->mapping;
  const auto sizes = BlockCandidates(nest, target, false);
  for (const int64_t m : sizes[2])
    for (const int64_t c : sizes[3])
      for (const int64_t e : sizes[4])
        for (const int64_t f : sizes[5]) {
          mapping.block = {1, 1, m, c, e, f, 2, 2};
          mapping.order.clear();
          for (int d = 0; d < 8; ++d) {
            if (BlockCount(nest, mapping, d) > 1) mapping.order.push_back(d);
          }
          for (OperandPlace& place : mapping.operands) place.is_double = false;
          mapping.accumulator.is_double = false;
          bool fits = true;
          for (int o = kAccumulator; o < nest.output(); ++o) {
            fits = fits && BufferBytes(nest, mapping, target, o) <= 256;
          }
          if (!fits) continue;
          do {
            least = std::min(least, PredictCounts(nest, mapping, target).dram_bus_bytes());
          } while (std::next_permutation(mapping.order.begin(), mapping.order.end()));
        }
  // Buffers do not change the bytes of a block vector, and single ones are tried where two do not
  // fit: the least of all must be found.
  EXPECT_EQ(found->predicted.dram_bus_bytes(), least);
}

// Layers whose search ends with its budget: what it has found by then is near the bound. Walking
// the first mappings that come along used up the budget and left some at six times the least.
TEST(Search, LargeLayersEndNearTheirBounds) {
  for (const char* name : {"edge32", "edge32-ws", "edge32-is", "onsram"}) {
    const machine::Target target = *machine::LoadTarget(name, {});
    for (const auto& [m, c, size] : {std::tuple(64, 64, 224), {128, 128, 256}, {512, 512, 28}}) {
      const ir::Nest nest = NestOf(
          {.M = m, .C = c, .E = size, .F = size, .R = 3, .S = 3, .pad = 1, .H = size, .W = size},
          ElementType::kF32);
      SCOPED_TRACE(Concat(name, ", M = ", m, ", C = ", c, ", E = F = ", size));
      SearchProblem problem = ProblemOf(nest, target);
      problem.objective = Objective::kLatency;
      const auto fastest = SearchMapping(problem);
      ASSERT_TRUE(fastest.has_value());
      const auto cycles = static_cast<double>(fastest->predicted.cycles);
      EXPECT_LE(cycles, 1.15 * fastest->certificate.least);
      for (const BufferRule rule :
           {BufferRule::kSingle, BufferRule::kInputsDouble, BufferRule::kDouble}) {
        problem.options.buffers = rule;
        const auto narrow = SearchMapping(problem);
        EXPECT_TRUE(!narrow || narrow->predicted.cycles >= fastest->predicted.cycles)
            << narrow->predicted.cycles << " < " << fastest->predicted.cycles << " with rule "
            << static_cast<int>(rule);
      }
      problem.options.buffers = BufferRule::kBest;
      problem.objective = Objective::kBalanced;
      const auto balanced = SearchMapping(problem);
      ASSERT_TRUE(balanced.has_value());
      EXPECT_LE(static_cast<double>(balanced->predicted.cycles), 1.1 * cycles);
    }
  }
}

TEST(Search, NothingFitsInNothing) {
  machine::Target target = *machine::LoadTarget("edge32", {});
  for (machine::Memory& memory : target.memories) memory.bytes = 8;
  const ir::Nest nest = NestOf({.M = 4, .C = 4}, ElementType::kF32);
  EXPECT_FALSE(SearchMapping(ProblemOf(nest, target)).has_value());
  EXPECT_FALSE(AnyMappingFits(ProblemOf(nest, target)));
}

}  // namespace
}  // namespace dla::scheduler
