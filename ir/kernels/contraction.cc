#include "ir/kernels/contraction.h"

#include <algorithm>

#include "support/checked.h"

namespace dla::ir {
namespace {

// The output columns [first, end) whose input column for kernel column s lies inside the input.
struct Columns {
  int64_t first = 0;
  int64_t end = 0;
};

Columns InsideColumns(const ConvShape& shape, int64_t s) {
  const int64_t shift = s * shape.dilation[1] - shape.pad[1];
  const int64_t first = shift >= 0 ? 0 : CeilDiv(-shift, shape.stride[1]);
  const int64_t room = shape.w - shift;  // f * stride < room
  const int64_t end = room <= 0 ? 0 : std::min(shape.f, CeilDiv(room, shape.stride[1]));
  return {first, end};
}

// Adds one input channel's contribution to one output row.
void AccumulateRow(const ConvShape& shape, const float* channel, const float* kernel, int64_t e,
                   float* row) {
  for (int64_t r = 0; r < shape.r; ++r) {
    const int64_t y = e * shape.stride[0] + r * shape.dilation[0] - shape.pad[0];
    if (y < 0 || y >= shape.h) continue;
    const float* line = channel + y * shape.w;
    for (int64_t s = 0; s < shape.s; ++s) {
      const float weight = kernel[r * shape.s + s];
      const Columns columns = InsideColumns(shape, s);
      const int64_t shift = s * shape.dilation[1] - shape.pad[1];
      if (shape.stride[1] == 1) {
        for (int64_t f = columns.first; f < columns.end; ++f) row[f] += line[f + shift] * weight;
      } else {
        for (int64_t f = columns.first; f < columns.end; ++f) {
          row[f] += line[f * shape.stride[1] + shift] * weight;
        }
      }
    }
  }
}

}  // namespace

void ConvKernel(const ConvShape& shape, const float* input, const float* weight, const float* bias,
                float* output) {
  for (int64_t n = 0; n < shape.n; ++n) {
    for (int64_t gm = 0; gm < shape.g * shape.m; ++gm) {
      const int64_t g = gm / shape.m;
      const float* channels = input + (n * shape.g + g) * shape.c * shape.h * shape.w;
      const float* kernels = weight + gm * shape.c * shape.r * shape.s;
      float* plane = output + (n * shape.g * shape.m + gm) * shape.e * shape.f;
      std::fill_n(plane, shape.e * shape.f, bias == nullptr ? 0.0f : bias[gm]);
      for (int64_t e = 0; e < shape.e; ++e) {
        for (int64_t c = 0; c < shape.c; ++c) {
          AccumulateRow(shape, channels + c * shape.h * shape.w, kernels + c * shape.r * shape.s, e,
                        plane + e * shape.f);
        }
      }
    }
  }
}

void MatMulKernel(int64_t e, int64_t c, int64_t m, const float* a, const float* b,
                  const float* bias, float* output) {
  for (int64_t i = 0; i < e; ++i) {
    float* row = output + i * m;
    if (bias == nullptr) {
      std::fill_n(row, m, 0.0f);
    } else {
      std::copy_n(bias, m, row);
    }
    for (int64_t k = 0; k < c; ++k) {
      const float x = a[i * c + k];
      const float* line = b + k * m;
      for (int64_t j = 0; j < m; ++j) row[j] += x * line[j];
    }
  }
}

}  // namespace dla::ir
