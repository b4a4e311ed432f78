// Reference pooling on dense arrays.
#pragma once

#include <cstdint>

#include "ir/kernels/contraction.h"

namespace dla::ir {

// Pooling over windows (ConvShape with g == n == m == 1 and c planes), of float or double. Maximum:
// padding never wins, NaN does. Sum: in f64, padding counts as zero.
template <typename T>
void MaxPoolKernel(const ConvShape& shape, const T* input, T* output);
template <typename T>
void SumPoolKernel(const ConvShape& shape, const T* input, T* output);
// Where the maximum stands: its place in `input`, the first of several.
template <typename T>
void MaxPoolIndexKernel(const ConvShape& shape, const T* input, int64_t* output);

}  // namespace dla::ir
