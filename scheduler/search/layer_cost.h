// What blocks and orders of a layer cost in bytes: shared by the searches of this folder.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/search/axis_entries.h"
#include "scheduler/search/layer_optimum.h"

namespace dla::scheduler {

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

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

inline ClassCost LeastOfClasses(const LayerTotals& t, int64_t input, int64_t input_rolled,
                                int64_t sigma, int64_t m_count, int64_t rho) {
  const int64_t spilled = t.output * (1 + kSpillBytes * (rho - 1));
  ClassCost best{t.weight + input_rolled * m_count + spilled, 0};
  const int64_t by_input = t.weight * sigma + input_rolled + spilled;
  if (by_input < best.bytes) best = {by_input, 1};
  const int64_t by_output = t.weight * sigma + input * m_count + t.output;
  if (by_output < best.bytes) best = {by_output, 2};
  return best;
}

// The dimensions of `block` that are cut.
uint32_t CutMask(const LayerSizes& extent, const LayerSizes& block);

}  // namespace dla::scheduler
