// CRC32C (Castagnoli), eight bytes at a time by tables. Check value: "123456789" -> 0xe3069283.
#pragma once

#include <cstdint>
#include <span>

namespace dla {

// The CRC of `data`; give the CRC of what came before as `crc` to continue it.
uint32_t Crc32c(std::span<const uint8_t> data, uint32_t crc = 0);

}  // namespace dla
