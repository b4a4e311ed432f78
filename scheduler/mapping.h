// A mapping: how one nest runs on one target.
//
// Block sizes and the order of the loops that are cut decide which tile each step uses; the
// operands' places decide where the tiles lie and how often they are buffered. A mapping says
// nothing about addresses (scheduler/placement.h) and nothing about costs (scheduler/predict.h).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/nest.h"

namespace dla::scheduler {

// Where an operand lives while its group runs.
struct OperandPlace {
  int memory = 0;  // index into Target::memories
  // Two buffers where the operand has more than one transfer, so that it moves while the engines
  // compute; else one, and its transfers wait for the step before.
  bool is_double = true;
  // The whole value stays on chip: no transfers, no tile buffer.
  bool resident = false;
  // The whole value stays in this scratchpad, which does not hold the operand's class: the move
  // engine brings tiles over a link to the (double) buffer in `memory`. -1: not so.
  int source = -1;

  bool operator==(const OperandPlace&) const = default;
};

struct Mapping {
  std::vector<int64_t> block;          // one a dimension of the nest, 1 <= block <= extent
  std::vector<int> order;              // dimensions with more than one block, outermost first
  std::vector<OperandPlace> operands;  // one an operand of the nest
  // Contractions: where the accumulators live. When the output is not resident and lies in the same
  // memory, the drain converts in place and the output has no buffer of its own.
  OperandPlace accumulator;
  // The input keeps the lines that neighbouring tiles share when this dimension steps; -1: none. It
  // has an effect only if this is the innermost cut loop on which the input depends.
  int rolling = -1;

  bool operator==(const Mapping&) const = default;
};

// No bytes of the operand cross the DRAM bus.
inline bool StaysOnChip(const OperandPlace& place) { return place.resident || place.source >= 0; }

// Blocks of dimension d.
int64_t BlockCount(const ir::Nest& nest, const Mapping& mapping, int d);

// The accumulators' buffer also receives the drained output.
bool DrainsInPlace(const ir::Nest& nest, const Mapping& mapping);

}  // namespace dla::scheduler
