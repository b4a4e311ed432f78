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
  const int64_t shift = s * shape.dilation[2] - shape.pad[2];
  const int64_t first = shift >= 0 ? 0 : CeilDiv(-shift, shape.stride[2]);
  const int64_t room = shape.input[2] - shift;  // f * stride < room
  const int64_t end = room <= 0 ? 0 : std::min(shape.output[2], CeilDiv(room, shape.stride[2]));
  return {first, end};
}

void AccumulateLine(const ConvShape& shape, const float* line, const float* kernel, float* row) {
  for (int64_t s = 0; s < shape.kernel[2]; ++s) {
    const Columns columns = InsideColumns(shape, s);
    const int64_t shift = s * shape.dilation[2] - shape.pad[2];
    if (shape.stride[2] == 1) {
      for (int64_t f = columns.first; f < columns.end; ++f) row[f] += line[f + shift] * kernel[s];
    } else {
      for (int64_t f = columns.first; f < columns.end; ++f) {
        row[f] += line[f * shape.stride[2] + shift] * kernel[s];
      }
    }
  }
}

// Adds one input channel's contribution to one output row, at output index (d, e).
void AccumulateRow(const ConvShape& shape, const float* channel, const float* kernel, int64_t d,
                   int64_t e, float* row) {
  for (int64_t t = 0; t < shape.kernel[0]; ++t) {
    const int64_t z = d * shape.stride[0] + t * shape.dilation[0] - shape.pad[0];
    if (z < 0 || z >= shape.input[0]) continue;
    for (int64_t r = 0; r < shape.kernel[1]; ++r) {
      const int64_t y = e * shape.stride[1] + r * shape.dilation[1] - shape.pad[1];
      if (y < 0 || y >= shape.input[1]) continue;
      AccumulateLine(shape, channel + (z * shape.input[1] + y) * shape.input[2],
                     kernel + (t * shape.kernel[1] + r) * shape.kernel[2], row);
    }
  }
}

}  // namespace

void ConvKernel(const ConvShape& shape, const float* input, const float* weight, const float* bias,
                float* output) {
  const int64_t in_plane = ConvShape::Product(shape.input);
  const int64_t out_plane = ConvShape::Product(shape.output);
  const int64_t taps = ConvShape::Product(shape.kernel);
  for (int64_t n = 0; n < shape.n; ++n) {
    for (int64_t gm = 0; gm < shape.g * shape.m; ++gm) {
      const int64_t g = gm / shape.m;
      const float* channels = input + (n * shape.g + g) * shape.c * in_plane;
      const float* kernels = weight + gm * shape.c * taps;
      float* plane = output + (n * shape.g * shape.m + gm) * out_plane;
      std::fill_n(plane, out_plane, bias == nullptr ? 0.0f : bias[gm]);
      for (int64_t de = 0; de < shape.output[0] * shape.output[1]; ++de) {
        for (int64_t c = 0; c < shape.c; ++c) {
          AccumulateRow(shape, channels + c * in_plane, kernels + c * taps, de / shape.output[1],
                        de % shape.output[1], plane + de * shape.output[2]);
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
