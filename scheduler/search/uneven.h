// Uneven mapping: the operands of a layer are cut at different loops.
//
// Even mappings have one list of blocks, and every operand keeps the block of that list. Here the
// outer loops are a list in which a dimension may occur more than once (each time with smaller
// blocks), and each operand has its own depth: its tile in a scratchpad is what the loops outside
// that depth leave, so that one operand may keep what another one is loaded in parts of. Capacity
// is the sum of these different tiles. Every even mapping is one of this space. docs/MAPPING.md
// has the space, its rules and the bound. `dlac map` alone knows this space; programs do not.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/search/layer_optimum.h"

namespace dla::scheduler {

// Cuts dimension `dim` of what the loops outside leave into blocks of `block`, the last one
// shorter.
struct UnevenLoop {
  int dim = 0;
  int64_t block = 1;
};

struct UnevenMapping {
  std::vector<UnevenLoop> loops;  // outermost first
  std::array<int, 3> outside{};   // of input, weight, output: how many loops are outside its tile
  // kDimE, kDimF or -1: the dimension of the innermost loop outside the input's tile on which it
  // depends; from the second iteration on only the lines that the tile before had not are loaded.
  int rolling = -1;
};

struct UnevenOptimum {
  UnevenMapping mapping;
  int64_t bytes = 0;
  int64_t lower_bound = 0;  // no uneven mapping moves fewer bytes; `bytes` if proven
  int64_t points = 0;       // partial choices of blocks whose bound was computed
  bool proven = false;
};

// DRAM bytes of any uneven mapping, halos clipped to the real input.
int64_t UnevenBytes(const Layer& layer, const UnevenMapping& mapping);

// The least bytes over all uneven mappings, all integer blocks, rolling included; never more than
// LeastBytes(kS1). After `budget` points, and on axes of too many block pairs, what was found so
// far, which then is proven only if it meets the bound. Nothing if nothing fits.
std::optional<UnevenOptimum> LeastBytesUneven(const Layer& layer, const IdealMachine& machine,
                                              Buffers buffers, int64_t budget);

}  // namespace dla::scheduler
