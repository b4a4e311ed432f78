#include "ir/kernels/reduction.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dla::ir {
namespace {

// Calls `visit` with every element of the window of output (e, f) that lies inside the plane.
template <typename Visit>
void ForWindow(const ConvShape& shape, const float* plane, int64_t e, int64_t f, Visit visit) {
  for (int64_t r = 0; r < shape.r; ++r) {
    const int64_t y = e * shape.stride[0] + r * shape.dilation[0] - shape.pad[0];
    if (y < 0 || y >= shape.h) continue;
    for (int64_t s = 0; s < shape.s; ++s) {
      const int64_t x = f * shape.stride[1] + s * shape.dilation[1] - shape.pad[1];
      if (x >= 0 && x < shape.w) visit(plane[y * shape.w + x]);
    }
  }
}

template <typename Start, typename Combine>
void Pool(const ConvShape& shape, const float* input, float* output, Start start, Combine combine) {
  for (int64_t c = 0; c < shape.c; ++c) {
    const float* plane = input + c * shape.h * shape.w;
    for (int64_t e = 0; e < shape.e; ++e) {
      for (int64_t f = 0; f < shape.f; ++f) {
        auto result = start;
        ForWindow(shape, plane, e, f, [&](float x) { result = combine(result, x); });
        output[(c * shape.e + e) * shape.f + f] = static_cast<float>(result);
      }
    }
  }
}

float Max(float a, float b) { return a < b ? b : a; }

}  // namespace

void MaxPoolKernel(const ConvShape& shape, const float* input, float* output) {
  Pool(shape, input, output, -std::numeric_limits<float>::infinity(), Max);
}

void SumPoolKernel(const ConvShape& shape, const float* input, float* output) {
  Pool(shape, input, output, 0.0, [](double sum, float x) { return sum + static_cast<double>(x); });
}

void ReduceKernel(Reduction reduction, int64_t outer, int64_t axis, int64_t inner,
                  const float* input, float* output) {
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const float* line = input + o * axis * inner + i;
      double sum = 0;
      float high = -std::numeric_limits<float>::infinity();
      float low = std::numeric_limits<float>::infinity();
      for (int64_t a = 0; a < axis; ++a) {
        const float x = line[a * inner];
        sum += static_cast<double>(x);
        high = Max(high, x);
        low = x < low ? x : low;
      }
      output[o * inner + i] = reduction == Reduction::kSum   ? static_cast<float>(sum)
                              : reduction == Reduction::kMax ? high
                                                             : low;
    }
  }
}

void SoftmaxKernel(int64_t outer, int64_t axis, int64_t inner, const float* input, float* output) {
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const float* line = input + o * axis * inner + i;
      float* result = output + o * axis * inner + i;
      float high = -std::numeric_limits<float>::infinity();
      for (int64_t a = 0; a < axis; ++a) high = Max(high, line[a * inner]);
      double sum = 0;
      for (int64_t a = 0; a < axis; ++a) {
        const float x = std::exp(line[a * inner] - high);
        result[a * inner] = x;
        sum += static_cast<double>(x);
      }
      const float total = static_cast<float>(sum);
      for (int64_t a = 0; a < axis; ++a) result[a * inner] /= total;
    }
  }
}

}  // namespace dla::ir
