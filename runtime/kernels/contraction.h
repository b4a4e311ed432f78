// The array's arithmetic: acc += sum over depth of input * weight, for any dimensions and strides.
//
// The roles of the dimensions (groups, pixels, channels, depth: machine/timing.h) come from the
// operands; no kernel knows a convolution. For each output element, runs of 32 products in the
// order of the depth dimensions are summed one product after the other, and each run's sum is added
// to the element: the result is the same on every host, and the error of a long sum grows with the
// length of a run and the number of runs, not with the length of the sum.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/kernels/workspace.h"

namespace dla::runtime {

// Strides in elements; an operand that does not depend on the dimension has stride 0.
struct ContractionDim {
  int64_t length = 1;
  int64_t input_stride = 0;
  int64_t weight_stride = 0;
  int64_t output_stride = 0;
};

// Block-diagonal weights: products count where a channel and a depth belong to the same block.
struct ContractionDiagonal {
  size_t channel_dim = 0, depth_dim = 0;       // positions in Contraction::channels and ::depth
  int64_t first_channel = 0, first_depth = 0;  // indices along them where the tile begins
  int64_t channels = 1, depths = 1;            // of a block
};

struct Contraction {
  std::vector<ContractionDim> groups, pixels, channels, depth;  // outermost first
  // First elements; no alignment is promised.
  const uint8_t* input = nullptr;
  const uint8_t* weight = nullptr;
  uint8_t* accumulator = nullptr;
  bool weight_panels = false;  // kPanels (weight strides are not used), else strided
  std::optional<ContractionDiagonal> diagonal;  // with panels only
};

// Pairs of a channel and a depth in [begin, begin + length) each that belong to the same block.
int64_t DiagonalPairs(const ContractionDiagonal& diagonal, int64_t channel_length,
                      int64_t depth_length);

struct ContractionWorkspace {
  Reused<int64_t> offsets;
  Reused<float> packed_weights, packed_input, block_weights;
};

// The instruction sets that hot loops are compiled for.
enum class Isa { kBaseline, kAvx2, kAvx512 };
bool HostHas(Isa isa);
Isa BestIsa();

// All of f32. `isa`, which the host has, changes the speed and not a bit of the result.
void ContractF32(const Contraction& contraction, ContractionWorkspace* workspace,
                 Isa isa = BestIsa());

}  // namespace dla::runtime
