// Misspelt names.
#include "support/suggest.h"

#include <gtest/gtest.h>

namespace dla {
namespace {

TEST(Suggest, FindsTheNearestName) {
  const std::vector<std::string> names = {"bytes", "bytes_per_cycle", "burst_bytes"};
  EXPECT_EQ(NearestName("byte_per_cycle", names), "bytes_per_cycle");
  EXPECT_EQ(NearestName("byts", names), "bytes");
  EXPECT_EQ(NearestName("colour", names), "");
  EXPECT_EQ(NearestName("", names), "");
  EXPECT_EQ(DidYouMean("burstbytes", names), "; did you mean 'burst_bytes'?");
  EXPECT_EQ(DidYouMean("zzz", names), "");
}

}  // namespace
}  // namespace dla
