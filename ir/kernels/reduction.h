// Reference pooling, reductions and softmax on dense f32 arrays.
#pragma once

#include <cstdint>

#include "ir/kernels/contraction.h"

namespace dla::ir {

// Pooling over windows of r x s (ConvShape with g == n == m == 1 and c planes). Maximum: padding
// never wins. Sum: in f64, padding counts as zero.
void MaxPoolKernel(const ConvShape& shape, const float* input, float* output);
void SumPoolKernel(const ConvShape& shape, const float* input, float* output);

enum class Reduction : uint8_t { kSum, kMax, kMin };
// input [outer, axis, inner] -> output [outer, inner]. Sums in f64.
void ReduceKernel(Reduction reduction, int64_t outer, int64_t axis, int64_t inner,
                  const float* input, float* output);

// exp(x - max) / sum over the middle axis; exp and the quotient in f32, the sum in f64.
void SoftmaxKernel(int64_t outer, int64_t axis, int64_t inner, const float* input, float* output);

}  // namespace dla::ir
