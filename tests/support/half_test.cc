// f16 and bf16 over all 65,536 patterns, and rounding against exact neighbours.
#include "support/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace dla {
namespace {

// The value of an f16 pattern, from the definition of the format.
double HalfValue(int pattern) {
  const int exponent = (pattern >> 10) & 31, mantissa = pattern & 1023;
  const double sign = (pattern & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryPatternConvertsExactlyAndBack) {
  for (int pattern = 0; pattern < 65536; ++pattern) {
    const auto half = static_cast<uint16_t>(pattern);
    const float value = HalfToFloat(half);
    const int magnitude = pattern & 0x7fff;
    if (magnitude > 0x7c00) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_EQ(FloatToHalf(value), half | 0x200);
    } else {
      if (magnitude == 0x7c00) {
        EXPECT_EQ(value, (pattern & 0x8000) != 0 ? -INFINITY : INFINITY);
      } else {
        EXPECT_EQ(static_cast<double>(value), HalfValue(pattern));
      }
      EXPECT_EQ(FloatToHalf(value), half);
    }
  }
}

TEST(Half, RoundsToNearestEvenBetweenAllNeighbours) {
  for (int pattern = 0; pattern < 0x7bff; ++pattern) {
    const double low = HalfValue(pattern), high = HalfValue(pattern + 1);
    const auto middle = static_cast<float>((low + high) / 2);  // exact in f32
    const int even = pattern % 2 == 0 ? pattern : pattern + 1;
    EXPECT_EQ(FloatToHalf(middle), even) << pattern;
    EXPECT_EQ(FloatToHalf(-middle), even | 0x8000) << pattern;
    EXPECT_EQ(FloatToHalf(std::nextafter(middle, 0.0F)), pattern);
    EXPECT_EQ(FloatToHalf(std::nextafter(middle, INFINITY)), pattern + 1);
  }
  EXPECT_EQ(FloatToHalf(65519.996F), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0F), 0x7c00);
  EXPECT_EQ(FloatToHalf(1e30F), 0x7c00);
  EXPECT_EQ(FloatToHalf(-INFINITY), 0xfc00);
  EXPECT_EQ(FloatToHalf(1e-30F), 0);
}

TEST(BFloat16, EveryPatternConvertsExactlyAndRoundsToNearestEven) {
  for (int pattern = 0; pattern < 65536; ++pattern) {
    const auto value = static_cast<uint16_t>(pattern);
    const float wide = BFloat16ToFloat(value);
    if ((pattern & 0x7fff) > 0x7f80) {
      EXPECT_TRUE(std::isnan(wide));
      EXPECT_EQ(FloatToBFloat16(wide), value | 0x40);
      continue;
    }
    EXPECT_EQ(std::bit_cast<uint32_t>(wide), static_cast<uint32_t>(pattern) << 16);
    EXPECT_EQ(FloatToBFloat16(wide), value);
    if ((pattern & 0x7fff) == 0x7f80) continue;
    const uint32_t bits = static_cast<uint32_t>(pattern) << 16;
    const int up = pattern + 1;
    EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(bits | 0x7fff)), pattern);
    EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(bits | 0x8000)),
              pattern % 2 == 0 ? pattern : up);
    EXPECT_EQ(FloatToBFloat16(std::bit_cast<float>(bits | 0x8001)), up);
  }
}

TEST(Half, OverflowsAreFiniteNumbersThatBecomeInfinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float x : {0.0f, 1.0f, 65504.0f, 65519.99f, 65520.0f, 65536.0f, 1e10f, 3.38e38f,
                        3.3895e38f, 3.4e38f, infinity}) {
    for (const float value : {x, -x}) {
      const bool finite = x != infinity;
      EXPECT_EQ(OverflowsHalf(value), finite && HalfToFloat(FloatToHalf(x)) == infinity) << value;
      EXPECT_EQ(OverflowsBFloat16(value), finite && BFloat16ToFloat(FloatToBFloat16(x)) == infinity)
          << value;
    }
  }
  EXPECT_FALSE(OverflowsHalf(std::numeric_limits<float>::quiet_NaN()));
}

}  // namespace
}  // namespace dla
