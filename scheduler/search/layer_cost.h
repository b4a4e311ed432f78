// What blocks and orders of a layer cost in bytes: shared by the searches of this folder.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/search/axis_entries.h"
#include "scheduler/search/layer_optimum.h"
#include "support/checked.h"

namespace dla::scheduler {

constexpr int64_t kAccumulatorBytes = 4;
// A visit of an output tile that is not its last spills accumulators, and the next loads them back.
constexpr int64_t kSpillBytes = 2 * kAccumulatorBytes;

constexpr uint32_t Bit(int d) { return uint32_t{1} << d; }
constexpr uint32_t kWeightDims = Bit(kDimG) | Bit(kDimM) | Bit(kDimC) | Bit(kDimR) | Bit(kDimS);
constexpr uint32_t kInputDims = ~Bit(kDimM);
constexpr uint32_t kOutputDims = Bit(kDimN) | Bit(kDimG) | Bit(kDimM) | Bit(kDimE) | Bit(kDimF);

WindowAxis RowAxis(const Layer& layer);
WindowAxis ColumnAxis(const Layer& layer);

// The axis' entries, from rows to columns reused where both are alike.
struct AxisTables {
  std::vector<AxisEntry> rows, columns;
};
AxisTables ParetoTables(const Layer& layer, bool every_size);

// One buffer of each operand and how many it has.
struct Room {
  int64_t weight = 0, input = 0, output = 0;
};

inline bool Fits(const IdealMachine& machine, const Room& room) {
  if (machine.pool_bytes > 0) return room.weight + room.input + room.output <= machine.pool_bytes;
  return room.weight <= machine.weight_bytes && room.input <= machine.input_bytes &&
         room.output <= machine.output_bytes;
}

// The three order classes (docs/MAPPING.md): each keeps one operand's tiles until they are done.
struct ClassCost {
  int64_t bytes = 0;
  int stationary = 0;  // 0 weight, 1 input, 2 output
};
struct LayerTotals {
  int64_t weight = 0, output = 0;  // elements, all groups
};
LayerTotals TotalsOf(const Layer& layer);

// What the blocks make of the terms of a layer's bytes (docs/MAPPING.md).
struct ClassTerms {
  int64_t input = 0, input_rolled = 0;  // over all tiles; rolling needs weights or input to stay
  int64_t sigma = 1, m_count = 1, rho = 1;
};

inline int64_t BytesOfClass(const LayerTotals& t, const ClassTerms& c, int stationary) {
  if (stationary == 2) return t.weight * c.sigma + c.input * c.m_count + t.output;
  const int64_t spilled = t.output * (1 + kSpillBytes * (c.rho - 1));
  if (stationary == 0) return t.weight + c.input_rolled * c.m_count + spilled;
  return t.weight * c.sigma + c.input_rolled + spilled;
}

inline ClassCost LeastOfClasses(const LayerTotals& t, const ClassTerms& c) {
  ClassCost best{BytesOfClass(t, c, 0), 0};
  for (int stationary = 1; stationary < 3; ++stationary) {
    const int64_t bytes = BytesOfClass(t, c, stationary);
    if (bytes < best.bytes) best = {bytes, stationary};
  }
  return best;
}

// The dimensions of `block` that are cut.
uint32_t CutMask(const LayerSizes& extent, const LayerSizes& block);

// The order of a class: what the stationary operand depends on outside, the rolling dimension (or
// -1) innermost in its part.
std::vector<int> ClassOrder(uint32_t cut, int stationary, int rolling);

}  // namespace dla::scheduler
