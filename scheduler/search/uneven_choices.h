// What the nested blocks of one dimension, or of an output axis with its kernel axis, contribute to
// an uneven mapping (uneven.h): every term of rooms and bytes is a product of these.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/search/axis_entries.h"
#include "scheduler/search/uneven.h"

namespace dla::scheduler {

enum UnevenOperand { kUnevenInput, kUnevenWeight, kUnevenOutput };

// Blocks (u, v) of a dimension: of the outer and of the inner one of the two operands that have it.
struct NestedBlocks {
  int64_t outer = 1, inner = 1;
};

struct UnevenChoice {
  std::array<int64_t, 3> room{1, 1, 1};   // elements of each operand's tile
  std::array<int64_t, 3> times{1, 1, 1};  // how often all of the operand's tiles are visited
  int64_t sum = 1, rolled = 1;            // input lines of all tiles, whole or rolling
  std::array<bool, 3> cut{};              // more than one tile
  std::array<NestedBlocks, 2> blocks{};   // the dimension's; of an axis: output, kernel
};

// A piece of a dimension; `restarts`: the first of what the innermost loop cuts.
struct Piece {
  int64_t begin = 0, size = 0;
  bool restarts = true;
};
// What the loops with these blocks, outermost first, make of [0, extent).
std::vector<Piece> PiecesOf(int64_t extent, const std::vector<int64_t>& blocks);

struct PieceLines {
  int64_t longest = 0, sum = 0, rolled = 0;
};
// Input lines over all pairs of an output and a kernel piece; rolled: without those that the output
// piece before had, except where the innermost loop restarts.
PieceLines LinesOf(const WindowAxis& axis, const std::vector<Piece>& outputs,
                   const std::vector<Piece>& taps);

// Position 0 to 2 of each operand: 0 has the outermost depth.
using UnevenOrder = std::array<int, 3>;

// No choice that is left out is better than one that is returned (in no term worse); false in
// `complete` if sizes were left out that could be. dims: the letters' numbers.
std::vector<UnevenChoice> DimensionChoices(int64_t extent, int dim, const UnevenOrder& order);
std::vector<UnevenChoice> GroupChoices(int64_t extent, const UnevenOrder& order);
std::vector<UnevenChoice> AxisChoices(const WindowAxis& axis, const UnevenOrder& order,
                                      bool* complete);

// The operand that does not have the dimension, -1 for groups.
int IrrelevantOperand(int dim);

}  // namespace dla::scheduler
