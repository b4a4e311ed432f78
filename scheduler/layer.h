// Layers as plain numbers: the nests of convolutions and matrix products without a model.
//
// For lists of layer shapes (tests, tables of papers); a model's nests come from ir/op.h.
#pragma once

#include <cstdint>

#include "ir/nest.h"

namespace dla::scheduler {

// A convolution in the field's letters; M, C are channels of one group. Extents in elements.
struct Layer {
  int64_t N = 1, G = 1, M = 1, C = 1, E = 1, F = 1, R = 1, S = 1;
  int64_t stride = 1, dilation = 1, pad = 0;
  int64_t H = 1, W = 1;  // real input lines and columns
};

// Dimensions N G M C E F R S in this order; operands input, weight (constant), output, of `type`,
// dense in DRAM in the order N, G, channels, rows, columns. No bias, nothing fused.
ir::Nest NestOf(const Layer& layer, ElementType type);

}  // namespace dla::scheduler
