// The hot loops of ContractF32: plain data in, no templates of the library, because the file is
// compiled once for each instruction set and only one copy of an inline function would survive.
#pragma once

#include <cstdint>

namespace dla::runtime {

// Products that are summed before they are added to an accumulator (contraction.h).
constexpr int64_t kSummedRun = 32;

// Offsets are in elements from `input` or `output`.
struct F32Problem {
  int64_t group_count, pixel_count, channel_count, depth_count;
  const int64_t *group_input, *group_output;
  const int64_t *pixel_input, *pixel_output;
  const int64_t* channel_output;
  const int64_t* depth_input;
  const uint8_t* input;
  const uint8_t* weight;  // panels of 16 channels, group by group
  uint8_t* output;
  float* packed;  // room for 16 * depth_count
};

namespace baseline {
void Contract(const F32Problem& problem);
}
#if defined(__x86_64__)
namespace avx2 {
void Contract(const F32Problem& problem);
}
namespace avx512 {
void Contract(const F32Problem& problem);
}
#endif

}  // namespace dla::runtime
