// Body of contract_f32_*.cc, compiled once for each instruction set in namespace DLA_ISA.
//
// Sixteen pixels lie side by side in a vector, a few channels are summed at a time: an element of
// a weight panel is multiplied with sixteen input elements. The input of sixteen pixels is packed
// first as [depth][16]. Runs of kSummedRun products are summed from zero, one product after the
// other and without fused multiply-add, and each run's sum is added to the output: the error of a
// long sum grows with the length of a run and the number of runs, not with their product.
//
// Everything here has internal linkage or lies in namespace DLA_ISA; no header of the library is
// used that could bring inline functions with it.

#include <stdint.h>
#include <string.h>

#include "runtime/kernels/contract_f32.h"

namespace dla::runtime::DLA_ISA {
namespace {

constexpr int64_t kLanes = 16;
typedef float Lanes __attribute__((vector_size(64)));

inline __attribute__((always_inline)) float LoadFloat(const uint8_t* from) {
  float value;
  memcpy(&value, from, sizeof(value));
  return value;
}

// Offsets of sixteen pixels; pixels behind the end repeat the first one.
struct PixelPanel {
  int64_t count;
  bool input_contiguous, output_contiguous;
  int64_t input[kLanes], output[kLanes];
};

void FillPanel(const F32Problem& p, int64_t first, PixelPanel* panel) {
  const int64_t left = p.pixel_count - first;
  panel->count = left < kLanes ? left : kLanes;
  panel->input_contiguous = panel->output_contiguous = panel->count == kLanes;
  for (int64_t l = 0; l < kLanes; ++l) {
    const int64_t pixel = l < panel->count ? first + l : first;
    panel->input[l] = p.pixel_input[pixel];
    panel->output[l] = p.pixel_output[pixel];
    if (panel->input[l] != panel->input[0] + l) panel->input_contiguous = false;
    if (panel->output[l] != panel->output[0] + l) panel->output_contiguous = false;
  }
}

void PackInput(const F32Problem& p, const uint8_t* input, const PixelPanel& panel) {
  float* to = p.packed;
  if (panel.input_contiguous) {
    const uint8_t* from = input + panel.input[0] * 4;
    for (int64_t k = 0; k < p.depth_count; ++k) {
      memcpy(to + k * kLanes, from + p.depth_input[k] * 4, sizeof(Lanes));
    }
    return;
  }
  for (int64_t k = 0; k < p.depth_count; ++k) {
    const uint8_t* from = input + p.depth_input[k] * 4;
    for (int64_t l = 0; l < kLanes; ++l) to[k * kLanes + l] = LoadFloat(from + panel.input[l] * 4);
  }
}

// Adds to kChannels rows of sixteen outputs. `weight` points to the first channel's element of
// depth 0; elements of the next depth lie `width` floats on.
template <uint64_t kChannels>
void SumChannels(const F32Problem& p, const PixelPanel& panel, const uint8_t* weight, int64_t width,
                 uint8_t* output, const int64_t* channel_output) {
  Lanes totals[kChannels];
  for (uint64_t j = 0; j < kChannels; ++j) {
    const uint8_t* from = output + channel_output[j] * 4;
    if (panel.output_contiguous) {
      memcpy(&totals[j], from + panel.output[0] * 4, sizeof(Lanes));
    } else {
      for (int64_t l = 0; l < kLanes; ++l) totals[j][l] = LoadFloat(from + panel.output[l] * 4);
    }
  }
  const float* x = p.packed;
  for (int64_t left = p.depth_count; left > 0; left -= kSummedRun) {
    Lanes sums[kChannels] = {};
    for (int64_t k = left < kSummedRun ? left : kSummedRun; k > 0; --k) {
      Lanes xs;
      memcpy(&xs, x, sizeof(xs));
      x += kLanes;
#pragma GCC unroll 16
      for (uint64_t j = 0; j < kChannels; ++j) sums[j] += xs * LoadFloat(weight + j * 4);
      weight += width * 4;
    }
    for (uint64_t j = 0; j < kChannels; ++j) totals[j] += sums[j];
  }
  for (uint64_t j = 0; j < kChannels; ++j) {
    uint8_t* to = output + channel_output[j] * 4;
    if (panel.output_contiguous) {
      memcpy(to + panel.output[0] * 4, &totals[j], sizeof(Lanes));
    } else {
      for (int64_t l = 0; l < panel.count; ++l) {
        const float value = totals[j][l];
        memcpy(to + panel.output[l] * 4, &value, sizeof(value));
      }
    }
  }
}

void SumPanel(const F32Problem& p, const PixelPanel& panel, const uint8_t* weight, int64_t width,
              uint8_t* output, const int64_t* channel_output) {
  int64_t m = 0;
  for (; m + DLA_BLOCK <= width; m += DLA_BLOCK) {
    SumChannels<DLA_BLOCK>(p, panel, weight + m * 4, width, output, channel_output + m);
  }
  for (; m + 2 <= width; m += 2) {
    SumChannels<2>(p, panel, weight + m * 4, width, output, channel_output + m);
  }
  if (m < width) SumChannels<1>(p, panel, weight + m * 4, width, output, channel_output + m);
}

}  // namespace

void Contract(const F32Problem& p) {
  for (int64_t g = 0; g < p.group_count; ++g) {
    const uint8_t* input = p.input + p.group_input[g] * 4;
    const uint8_t* weight = p.weight + g * p.channel_count * p.depth_count * 4;
    uint8_t* output = p.output + p.group_output[g] * 4;
    for (int64_t pixel = 0; pixel < p.pixel_count; pixel += kLanes) {
      PixelPanel panel;
      FillPanel(p, pixel, &panel);
      PackInput(p, input, panel);
      for (int64_t m = 0; m < p.channel_count; m += kLanes) {
        const int64_t left = p.channel_count - m;
        SumPanel(p, panel, weight + m * p.depth_count * 4, left < kLanes ? left : kLanes, output,
                 p.channel_output + m);
      }
    }
  }
}

}  // namespace dla::runtime::DLA_ISA
