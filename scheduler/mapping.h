// A mapping: how one nest runs on one target.
//
// Block sizes and the order of the loops that are cut decide which tile each step uses; the
// operands' places decide where the tiles lie and how often they are buffered. A mapping says
// nothing about addresses (scheduler/placement.h) and nothing about costs (scheduler/predict.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/nest.h"

namespace dla::scheduler {

// Where an operand lives while its group runs.
struct OperandPlace {
  int memory = 0;  // index into Target::memories
  // Two buffers where the operand has more than one transfer, so that it moves while the engines
  // compute; else one, and its transfers wait for the step before.
  bool is_double = true;
  // The whole value (or, in a cascade, as many of its lines as are in use) stays on chip: no
  // transfers, no tile buffer.
  bool resident = false;
  // With `resident`: DRAM has the value, too. An input is loaded: in a cascade as it is first used,
  // each element once, elsewhere whole in the first step (`fill_bytes`). An output is stored as
  // well.
  bool through_dram = false;
  // Of a resident input that is loaded whole: bytes of its root's buffer; else 0.
  int64_t fill_bytes = 0;
  // Such a load happens in the first inference only: the value stays for all later ones.
  bool once = false;
  // One buffer for each of its tiles: all stay until the group ends, each is loaded once.
  bool kept = false;
  // The whole value stays in this scratchpad, which does not hold the operand's class: the move
  // engine brings tiles over a link to the (double) buffer in `memory`. -1: not so.
  int source = -1;

  bool operator==(const OperandPlace&) const = default;
};

// A group of a cascade runs stripe by stripe (machine/program.h, "Stripes"): the blocks of one
// dimension, which is the outermost loop where there are several. The first block is longer by
// `lead`, so that producers stay ahead by what the windows of their consumers reach.
struct Stripe {
  int dimension = -1;  // -1: the group is not part of a cascade
  int64_t lead = 0;

  bool operator==(const Stripe&) const = default;
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
  Stripe stripe;

  bool operator==(const Mapping&) const = default;
};

// No bytes of the operand cross the DRAM bus.
inline bool StaysOnChip(const OperandPlace& place) {
  return (place.resident && !place.through_dram) || place.source >= 0;
}

// The mapping as later inferences run it: what is loaded once is there.
Mapping SteadyMapping(Mapping mapping);

// Is anything loaded in the first inference only?
bool LoadsOnce(const Mapping& mapping);

// The blocks of all dimensions: sizes, and what is longer about the first stripe.
struct Blocks {
  std::span<const int64_t> size;
  Stripe stripe;

  Blocks(std::span<const int64_t> sizes) : size(sizes) {}                          // NOLINT
  Blocks(const std::vector<int64_t>& sizes) : size(sizes) {}                       // NOLINT
  Blocks(const Mapping& mapping) : size(mapping.block), stripe(mapping.stripe) {}  // NOLINT

  int64_t Lead(int d) const { return d == stripe.dimension ? stripe.lead : 0; }
  int64_t Start(int d, int64_t index) const {
    return index == 0 ? 0 : index * size[static_cast<size_t>(d)] + Lead(d);
  }
  int64_t Length(const ir::Nest& nest, int d, int64_t index) const;
  int64_t Count(const ir::Nest& nest, int d) const;
};

// Blocks of dimension d.
int64_t BlockCount(const ir::Nest& nest, const Mapping& mapping, int d);

// The accumulators' buffer also receives the drained output.
bool DrainsInPlace(const ir::Nest& nest, const Mapping& mapping);

}  // namespace dla::scheduler
