// The tile of an operand in one step: which indices it covers and where it lies.
//
// The rules are those of machine/program.h ("Tile coordinates", "Generation", "On-chip layout",
// "DRAM side"). Everything that moves, computes, counts or checks takes its geometry from here.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "machine/program.h"
#include "runtime/cursor.h"

namespace dla::runtime {

using AxisArray = std::array<int64_t, machine::kMaxAxes>;

// Axis a covers the indices [first[a], first[a] + hull[a]) of which [begin[a], begin[a] +
// length[a]) exist. Strides and lengths are in elements.
struct Tile {
  int axes = 0;
  AxisArray first{}, hull{};
  AxisArray begin{}, length{};
  AxisArray local_begin{};  // the index that lies at the slot's start: begin, or 0 if resident
  int64_t elements = 0;     // product of lengths; 0: clipped to nothing
  int64_t generation = 0;
  int64_t address = 0;   // bytes: start of the ring slot
  bool clipped() const;  // some index of the hull does not exist
};

Tile TileOf(const machine::Group& group, const machine::OperandDesc& operand, const Step& step);

// What a load brings of it: where the operand rolls, only the lines that the tile of the block
// before did not have.
Tile LoadedTileOf(const machine::Group& group, const machine::OperandDesc& operand,
                  const Step& step);

// The tile in pieces that lie on chip without going round the end of a ring: itself, or two.
// Pieces are cut from what exists; their `first` and `hull` are those of the tile.
std::vector<Tile> PiecesOf(const machine::OperandDesc& operand, const Tile& tile);

// Elements from the slot's start to the tile's first existing element (kDense).
int64_t LocalOffset(const machine::OperandDesc& operand, const Tile& tile);

// Elements from the region's start to the tile's first existing element (kStrided), or to the
// tile's start (kPacked).
int64_t DramOffset(const machine::OperandDesc& operand, const Tile& tile);

// The axes (bits) of a gathered operand that have a dimension of its indices; 0 for others.
uint32_t GatheredAxes(const machine::Group& group, const machine::OperandDesc& operand);

// The maximal contiguous runs of a transfer of the tile: every run has `run_elements`.
struct Runs {
  int64_t run_elements = 0;
  int64_t count = 0;
};
Runs RunsOf(const machine::Group& group, const machine::OperandDesc& operand, const Tile& tile);

// Calls visit(operand) for all that are loaded in the first run only.
template <typename Visit>
void ForEachKept(const machine::Program& program, const Visit& visit) {
  for (const machine::Group& group : program.groups) {
    for (const machine::OperandDesc& operand : group.operands) {
      if (operand.once) visit(operand);
    }
  }
}

inline int64_t ElementBytes(const machine::OperandDesc& operand) {
  return TypeBytes(operand.type, 1);
}

}  // namespace dla::runtime
