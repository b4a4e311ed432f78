// Proven optima of one layer on an ideal machine: least bytes, least cycles, least bytes near the
// least cycles.
//
// For convolutions and matrix products given as plain numbers. The machine has no bursts, start-ups
// or latency, elements of one byte, accumulators and spilled partial sums of four, an
// output-stationary array, and one scratchpad per operand class or one pool. In return the proof
// takes microseconds. docs/MAPPING.md names the spaces and gives the arguments of every rule.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/layer.h"

namespace dla::scheduler {

// Sizes in bytes. pool_bytes > 0: all buffers share one pool and the other three do not count.
struct IdealMachine {
  int64_t weight_bytes = 65536, input_bytes = 65536, output_bytes = 65536;
  int64_t pool_bytes = 0;
  int64_t bytes_per_cycle = 16;
  int64_t array_rows = 32, array_cols = 32;
};

enum class Space {
  kS0,       // block sizes ceil(D / n), no rolling
  kS0Folds,  // and multiples of the array's columns in M
  kS1,       // and every size of E, F, R, S; the input may keep the lines that neighbours share
  kAll,      // every size of every dimension, rolling
};

// Which operands have two buffers; an operand that is transferred once never needs the second.
enum class Buffers { kSingle, kInputsDouble, kDouble };

inline bool Rolls(Space space) { return space >= Space::kS1; }

enum LayerDim { kDimN, kDimG, kDimM, kDimC, kDimE, kDimF, kDimR, kDimS, kLayerDims };
using LayerSizes = std::array<int64_t, kLayerDims>;

LayerSizes ExtentsOf(const Layer& layer);

struct LayerMapping {
  LayerSizes block{};
  std::vector<int> order;  // the dimensions that are cut, outermost first
  int rolling = -1;        // kDimE, kDimF or -1
  bool output_single = false;
};

struct LayerOptimum {
  LayerMapping mapping;
  int64_t bytes = 0;
  int64_t cycles = 0;  // of LeastCycles; 0 from LeastBytes
  int64_t points = 0;  // block vectors whose cost (of all order classes) or bound was computed
  int64_t walked = 0;  // mappings whose steps were walked
};

// The least bytes over all orders and all blocks of the space; nothing if nothing fits. For bytes
// kS0Folds is no better than kS0, and kAll no better than kS1.
std::optional<LayerOptimum> LeastBytes(const Layer& layer, const IdealMachine& machine, Space space,
                                       Buffers buffers);

// W + O + every input line that some output uses, once.
int64_t CompulsoryBytes(const Layer& layer);

struct LatencyOptimum {
  LayerOptimum least_cycles;
  LayerOptimum least_bytes;  // among mappings of at most 1.05 times the least cycles
};

// Over all orders and all blocks of the space; nothing if nothing fits. Inputs and weights double;
// the output double, with rolling (kS1, kAll) single where two buffers do not fit.
std::optional<LatencyOptimum> LeastCycles(const Layer& layer, const IdealMachine& machine,
                                          Space space);

}  // namespace dla::scheduler
