#include "scheduler/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>
#include <sstream>
#include <string>

#include "tests/random_pick.h"

namespace dla::scheduler {
namespace {

TEST(Placement, RefusesOverlapInTimeAndSpace) {
  const PlacementProblem problem = {
      .capacity_bytes = 64,
      .buffers = {{.first = 0, .end = 4, .bytes = 32}, {.first = 3, .end = 6, .bytes = 32}}};
  EXPECT_EQ(Validate(problem, {.offsets = {0, 16}}), PlacementFault::kOverlap);
  EXPECT_EQ(Validate(problem, {.offsets = {0, 32}}), PlacementFault::kNone);
  EXPECT_EQ(Validate(problem, {.offsets = {0, 33}}), PlacementFault::kOutside);
  EXPECT_EQ(Validate(problem, {.offsets = {-1, 32}}), PlacementFault::kOutside);
}

TEST(Placement, RefusesMisalignedOffsets) {
  const PlacementProblem problem = {
      .capacity_bytes = 64, .buffers = {{.first = 0, .end = 1, .bytes = 8, .align_bytes = 16}}};
  EXPECT_EQ(Validate(problem, {.offsets = {8}}), PlacementFault::kMisaligned);
  EXPECT_EQ(Validate(problem, {.offsets = {16}}), PlacementFault::kNone);
}

TEST(Placement, ReusesSpaceOfTheDead) {
  const PlacementProblem problem = {
      .capacity_bytes = 32,
      .buffers = {{.first = 0, .end = 2, .bytes = 32}, {.first = 2, .end = 4, .bytes = 32}}};
  const auto solution = Place(problem, {}).solution;
  ASSERT_TRUE(solution.has_value());
  EXPECT_EQ(Height(problem, *solution), 32);
}

TEST(Placement, SaysSoWhenItCannot) {
  const PlacementProblem problem = {.capacity_bytes = 31,
                                    .buffers = {{.first = 0, .end = 2, .bytes = 32}}};
  const PlacementResult result = Place(problem, {});
  EXPECT_FALSE(result.solution.has_value());
  EXPECT_TRUE(result.complete);
}

// Residents that meet only their neighbours, tiles of one group each, filled to the last byte.
TEST(Placement, ChainsOfResidentsAlwaysFit) {
  const uint32_t seed = 5;
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const RandomPick pick(&random);
  for (int run = 0; run < 500; ++run) {
    const int64_t capacity = 1024;
    PlacementProblem problem = {.capacity_bytes = capacity};
    int64_t previous = 0;
    const int64_t groups = pick(2, 9);
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t resident = g + 1 == groups ? 0 : pick(1, capacity - previous - 1);
      if (resident > 0) problem.buffers.push_back({g, g + 2, resident, 1});
      int64_t left = capacity - previous - resident;
      while (left > 0) {
        const int64_t bytes = pick(1, left);
        problem.buffers.push_back({g, g + 1, bytes, 1});
        left -= bytes;
      }
      previous = resident;
    }
    ASSERT_EQ(LoadBound(problem), capacity);
    const auto solution = Place(problem, {.method = PlaceMethod::kBestFit}).solution;
    ASSERT_TRUE(solution.has_value()) << "run " << run;
    ASSERT_EQ(Validate(problem, *solution), PlacementFault::kNone);
  }
}

constexpr PlaceMethod kMethods[] = {PlaceMethod::kColor, PlaceMethod::kBestFit,
                                    PlaceMethod::kHillClimb, PlaceMethod::kExact};

// The least height: the best of all orders in which buffers are put at the lowest free offset
// (every solution can be pressed down into one of these).
int64_t LeastHeight(const PlacementProblem& problem) {
  const auto& buffers = problem.buffers;
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  int64_t least = INT64_MAX;
  do {
    std::vector<int64_t> at(buffers.size(), -1);
    int64_t height = 0;
    for (const size_t i : order) {
      const int64_t align = buffers[i].align_bytes;
      int64_t offset = 0;
      bool moved = true;
      while (moved) {
        moved = false;
        for (size_t j = 0; j < buffers.size(); ++j) {
          if (at[j] < 0 || buffers[j].first >= buffers[i].end || buffers[i].first >= buffers[j].end)
            continue;
          if (offset >= at[j] + buffers[j].bytes || at[j] >= offset + buffers[i].bytes) continue;
          offset = (at[j] + buffers[j].bytes + align - 1) / align * align;
          moved = true;
        }
      }
      at[i] = offset;
      height = std::max(height, offset + buffers[i].bytes);
    }
    least = std::min(least, height);
  } while (std::next_permutation(order.begin(), order.end()));
  return least;
}

TEST(Placement, ExactIsTheLeastHeightOfAllOrders) {
  const uint32_t seed = 11;
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const RandomPick pick(&random);
  for (int run = 0; run < 400; ++run) {
    PlacementProblem problem;
    const int64_t count = pick(1, 7);
    const bool aligned = pick(0, 1) == 1;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = pick(0, 6);
      const int64_t align = aligned ? int64_t{1} << pick(0, 3) : 1;
      problem.buffers.push_back({first, first + pick(1, 5), pick(1, 20), align});
    }
    const int64_t least = LeastHeight(problem);
    ASSERT_GE(least, LoadBound(problem));
    for (const PlaceMethod method : kMethods) {
      const PlacementSolution low = PlaceLow(problem, {.method = method});
      ASSERT_EQ(Validate(problem, low), PlacementFault::kNone) << "run " << run;
      ASSERT_GE(Height(problem, low), least);
      if (method == PlaceMethod::kExact) {
        ASSERT_EQ(Height(problem, low), least) << "run " << run;
      }
    }
    PlacementProblem question = problem;
    question.capacity_bytes = least;
    ASSERT_TRUE(Place(question, {}).solution.has_value()) << "run " << run;
    question.capacity_bytes = least - 1;
    const PlacementResult none = Place(question, {});
    ASSERT_FALSE(none.solution.has_value());
    ASSERT_TRUE(none.complete);
  }
}

TEST(Placement, FixedOffsetsStay) {
  PlacementProblem problem = {.capacity_bytes = 64,
                              .buffers = {{.first = 0, .end = 4, .bytes = 16, .fixed_offset = 24},
                                          {.first = 1, .end = 3, .bytes = 24},
                                          {.first = 1, .end = 3, .bytes = 24}}};
  for (const PlaceMethod method :
       {PlaceMethod::kBestFit, PlaceMethod::kHillClimb, PlaceMethod::kExact}) {
    const auto solution = Place(problem, {.method = method}).solution;
    ASSERT_TRUE(solution.has_value()) << PlaceMethodName(method);
    EXPECT_EQ(Validate(problem, *solution), PlacementFault::kNone);
    EXPECT_EQ(solution->offsets[0], 24);
  }
  EXPECT_EQ(Validate(problem, {.offsets = {0, 16, 40}}), PlacementFault::kMoved);
  problem.buffers[1].bytes = 25;
  const PlacementResult none = Place(problem, {});
  EXPECT_FALSE(none.solution.has_value());
  EXPECT_TRUE(none.complete);
}

// Instances whose packing must be perfect at the busiest moment, which no greedy rule finds.
TEST(Placement, ExactSolvesHardInstances) {
  for (const std::string name : {"C", "K"}) {
    std::ifstream file(std::string(DLA_SOURCE_DIR) + "/tests/data/placement/" + name +
                       ".1048576.csv");
    ASSERT_TRUE(file.good());
    PlacementProblem problem = {.capacity_bytes = 1 << 20};
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::replace(line.begin(), line.end(), ',', ' ');
      std::istringstream fields(line);
      int64_t id = 0;
      PlacedBuffer buffer;
      fields >> id >> buffer.first >> buffer.end >> buffer.bytes;
      problem.buffers.push_back(buffer);
    }
    EXPECT_FALSE(Place(problem, {.method = PlaceMethod::kBestFit}).solution.has_value());
    const PlacementResult result = Place(problem, {.node_budget = 200'000});
    ASSERT_TRUE(result.solution.has_value()) << name << " after " << result.nodes << " nodes";
    EXPECT_EQ(Validate(problem, *result.solution), PlacementFault::kNone);
  }
}

}  // namespace
}  // namespace dla::scheduler
