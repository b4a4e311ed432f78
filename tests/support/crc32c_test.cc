// CRC32C against its published check values and a bit-by-bit twin.
#include "support/crc32c.h"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

namespace dla {
namespace {

uint32_t BitByBit(const std::vector<uint8_t>& data) {
  uint32_t crc = 0xffffffff;
  for (const uint8_t byte : data) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
  }
  return ~crc;
}

TEST(Crc32c, CheckValues) {
  const std::string_view digits = "123456789";
  EXPECT_EQ(Crc32c(std::vector<uint8_t>(digits.begin(), digits.end())), 0xe3069283);
  EXPECT_EQ(Crc32c(std::vector<uint8_t>(32, 0)), 0x8a9136aa);  // RFC 3720, B.4
  EXPECT_EQ(Crc32c(std::vector<uint8_t>(32, 255)), 0x62a8ab43);
  EXPECT_EQ(Crc32c({}), 0u);
}

TEST(Crc32c, EqualsTheBitByBitTwinInOneGoAndInPieces) {
  std::mt19937 random(1);
  for (size_t size = 0; size < 100; ++size) {
    std::vector<uint8_t> data(size);
    for (uint8_t& byte : data) byte = static_cast<uint8_t>(random());
    EXPECT_EQ(Crc32c(data), BitByBit(data)) << size;
    const std::span<const uint8_t> all(data);
    EXPECT_EQ(Crc32c(all.subspan(size / 3), Crc32c(all.first(size / 3))), BitByBit(data));
  }
}

}  // namespace
}  // namespace dla
