// Reference convolution and matrix product in f32, in the order C, R, S, starting from the bias.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace dla::ir {

// Up to three spatial axes; fewer are the last ones (W is axis 2), the others have extent 1.
struct ConvShape {
  static constexpr size_t kSpatial = 3;
  using PerAxis = std::array<int64_t, kSpatial>;

  int64_t n = 1, g = 1, m = 1, c = 1;  // m, c per group
  PerAxis input = {1, 1, 1}, output = {1, 1, 1}, kernel = {1, 1, 1};
  PerAxis stride = {1, 1, 1}, dilation = {1, 1, 1};
  PerAxis pad = {0, 0, 0};  // begin

  static int64_t Product(const PerAxis& extents) { return extents[0] * extents[1] * extents[2]; }
};

// input [n, g*c, spatial], weight [g*m, c, kernel], bias [g*m] or null, output [n, g*m, spatial];
// dense. Padding contributes nothing.
void ConvKernel(const ConvShape& shape, const float* input, const float* weight, const float* bias,
                float* output);

// output[e, m] = bias[m] + sum over c of a[e, c] * b[c, m], in the order of c; all dense.
void MatMulKernel(int64_t e, int64_t c, int64_t m, const float* a, const float* b,
                  const float* bias, float* output);

}  // namespace dla::ir
