#include "scheduler/placement.h"

#include <gtest/gtest.h>

#include <random>

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
  const auto solution = Place(problem);
  ASSERT_TRUE(solution.has_value());
  EXPECT_EQ(Height(problem, *solution), 32);
}

TEST(Placement, SaysSoWhenItCannot) {
  const PlacementProblem problem = {.capacity_bytes = 31,
                                    .buffers = {{.first = 0, .end = 2, .bytes = 32}}};
  EXPECT_FALSE(Place(problem).has_value());
}

// Residents that meet only their neighbours, tiles of one group each, filled to the last byte.
TEST(Placement, ChainsOfResidentsAlwaysFit) {
  const uint32_t seed = 5;
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
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
    const auto solution = Place(problem);
    ASSERT_TRUE(solution.has_value()) << "run " << run;
    ASSERT_EQ(Validate(problem, *solution), PlacementFault::kNone);
  }
}

}  // namespace
}  // namespace dla::scheduler
