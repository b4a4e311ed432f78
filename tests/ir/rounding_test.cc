// Error diffusion: neighbours only, what is exact stays, sums are kept.
#include "ir/rounding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "support/half.h"

namespace dla::ir {
namespace {

TEST(RoundAlong, TakesNeighboursAndKeepsSums) {
  constexpr uint32_t kSeed = 5;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  std::normal_distribution<float> weights(0, 0.05f);
  double error = 0, nearest_error = 0;
  for (int run = 0; run < 500; ++run) {
    const int64_t summed = 1 + static_cast<int64_t>(random() % 600),
                  inner = 1 + static_cast<int64_t>(random() % 4);
    std::vector<float> before(static_cast<size_t>(summed * inner));
    for (float& value : before) {
      value = weights(random);
      if (random() % 8 == 0) value = HalfToFloat(FloatToHalf(value));
    }
    std::vector<float> after = before;
    RoundAlong(after, summed, inner, ElementType::kF16);
    std::vector<double> lost(static_cast<size_t>(inner)), nearest(static_cast<size_t>(inner));
    for (size_t i = 0; i < before.size(); ++i) {
      const float near = HalfToFloat(FloatToHalf(before[i]));
      ASSERT_EQ(HalfToFloat(FloatToHalf(after[i])), after[i]);
      if (near == before[i]) {
        ASSERT_EQ(after[i], before[i]);
      }
      // No number of the type lies between.
      const float middle = HalfToFloat(FloatToHalf((before[i] + after[i]) / 2));
      ASSERT_TRUE(middle == after[i] || middle == near) << before[i] << " became " << after[i];
      lost[i % lost.size()] += static_cast<double>(before[i]) - after[i];
      nearest[i % lost.size()] += static_cast<double>(before[i]) - near;
    }
    for (size_t j = 0; j < lost.size(); ++j) {
      EXPECT_LE(std::abs(lost[j]), 0x1p-12);  // half a unit in the last place of 0.25 to 0.5
      error += lost[j] * lost[j];
      nearest_error += nearest[j] * nearest[j];
    }
  }
  EXPECT_LT(error, nearest_error / 4);
}

TEST(RoundAlong, LeavesWhatTheTypeCannotHold) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values = {1e6f, 1 + 0x1p-12f, infinity, 65519, -65519, nan, 0, -0.0f, 1e-9f};
  const std::vector<float> before = values;
  RoundAlong(values, static_cast<int64_t>(values.size()), 1, ElementType::kF16);
  for (const size_t kept : {0U, 2U, 6U, 7U}) EXPECT_EQ(values[kept], before[kept]);
  EXPECT_TRUE(std::isnan(values[5]));
  EXPECT_EQ(values[3], 65504);  // the neighbour above would be infinite
  EXPECT_EQ(values[4], -65504);
  std::vector<float> wide = {1 + 0x1p-9f, 1 + 0x1p-9f};
  RoundAlong(wide, 2, 1, ElementType::kBF16);
  EXPECT_EQ(wide[0], 1);
  EXPECT_EQ(wide[1], 1);
  wide = {1 + 0x1p-8f + 0x1p-10f, 1 + 0x1p-8f};
  RoundAlong(wide, 2, 1, ElementType::kBF16);
  EXPECT_EQ(wide[0], 1 + 0x1p-7f);
  EXPECT_EQ(wide[1], 1);  // makes up for the first
}

}  // namespace
}  // namespace dla::ir
