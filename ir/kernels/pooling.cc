#include "ir/kernels/pooling.h"

#include <limits>

#include "ir/kernels/micro_arithmetic.h"

namespace dla::ir {
namespace {

// Calls `visit` with the place in the plane of every entry of the window of output (d, e, f) that
// lies inside.
template <typename Visit>
void ForWindow(const ConvShape& shape, const ConvShape::PerAxis& at, Visit visit) {
  const auto place = [&](size_t a, int64_t k) {
    return at[a] * shape.stride[a] + k * shape.dilation[a] - shape.pad[a];
  };
  const auto inside = [&](size_t a, int64_t x) { return x >= 0 && x < shape.input[a]; };
  for (int64_t t = 0; t < shape.kernel[0]; ++t) {
    const int64_t z = place(0, t);
    if (!inside(0, z)) continue;
    for (int64_t r = 0; r < shape.kernel[1]; ++r) {
      const int64_t y = place(1, r);
      if (!inside(1, y)) continue;
      for (int64_t s = 0; s < shape.kernel[2]; ++s) {
        const int64_t x = place(2, s);
        if (inside(2, x)) visit((z * shape.input[1] + y) * shape.input[2] + x);
      }
    }
  }
}

// Calls `pool` with each output's number, its plane's first element and its place in it.
template <typename Pool>
void ForOutputs(const ConvShape& shape, Pool pool) {
  int64_t number = 0;
  for (int64_t c = 0; c < shape.c; ++c) {
    const int64_t plane = c * ConvShape::Product(shape.input);
    for (int64_t d = 0; d < shape.output[0]; ++d) {
      for (int64_t e = 0; e < shape.output[1]; ++e) {
        for (int64_t f = 0; f < shape.output[2]; ++f) pool(number++, plane, {d, e, f});
      }
    }
  }
}

}  // namespace

template <typename T>
void MaxPoolKernel(const ConvShape& shape, const T* input, T* output) {
  ForOutputs(shape, [&](int64_t number, int64_t plane, const ConvShape::PerAxis& at) {
    T high = -std::numeric_limits<T>::infinity();
    ForWindow(shape, at, [&](int64_t place) { high = Maximum(high, input[plane + place]); });
    output[number] = high;
  });
}

template <typename T>
void SumPoolKernel(const ConvShape& shape, const T* input, T* output) {
  ForOutputs(shape, [&](int64_t number, int64_t plane, const ConvShape::PerAxis& at) {
    double sum = 0;
    ForWindow(shape, at, [&](int64_t place) { sum += static_cast<double>(input[plane + place]); });
    output[number] = static_cast<T>(sum);
  });
}

template <typename T>
void MaxPoolIndexKernel(const ConvShape& shape, const T* input, int64_t* output) {
  ForOutputs(shape, [&](int64_t number, int64_t plane, const ConvShape::PerAxis& at) {
    int64_t best = -1;
    ForWindow(shape, at, [&](int64_t place) {
      if (best < 0 || input[plane + place] > input[best]) best = plane + place;
    });
    output[number] = best;
  });
}

template void MaxPoolKernel(const ConvShape&, const float*, float*);
template void MaxPoolKernel(const ConvShape&, const double*, double*);
template void SumPoolKernel(const ConvShape&, const float*, float*);
template void SumPoolKernel(const ConvShape&, const double*, double*);
template void MaxPoolIndexKernel(const ConvShape&, const float*, int64_t*);
template void MaxPoolIndexKernel(const ConvShape&, const double*, int64_t*);

}  // namespace dla::ir
