// Reference convolution and matrix product in f32, in the order C, R, S, starting from the bias.
#pragma once

#include <array>
#include <cstdint>

namespace dla::ir {

struct ConvShape {
  int64_t n = 1, g = 1, m = 1, c = 1;  // m, c per group
  int64_t h = 1, w = 1, e = 1, f = 1, r = 1, s = 1;
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> dilation = {1, 1};
  std::array<int64_t, 2> pad = {0, 0};  // begin
};

// input [n, g*c, h, w], weight [g*m, c, r, s], bias [g*m] or null, output [n, g*m, e, f]; dense.
// Padding contributes nothing.
void ConvKernel(const ConvShape& shape, const float* input, const float* weight, const float* bias,
                float* output);

// output[e, m] = bias[m] + sum over c of a[e, c] * b[c, m], in the order of c; all dense.
void MatMulKernel(int64_t e, int64_t c, int64_t m, const float* a, const float* b,
                  const float* bias, float* output);

}  // namespace dla::ir
