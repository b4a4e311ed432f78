// What the bytes of a scratchpad, or of a DRAM region, hold: the memory of `--check`.
//
// Every granule (the largest unit that all elements of the memory are made of) has a cell with the
// identity of the element there. An identity is a place in DRAM where a value has one, a place in
// an on-chip buffer where a value is resident, else an element of a named value; accumulators also
// know how many products they have summed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "machine/program.h"
#include "runtime/tile.h"

namespace dla::runtime {

struct Cell {
  static constexpr uint32_t kNothing = 0;
  uint32_t space = kNothing;  // number given by Spaces; 0: never written
  uint32_t partial = 0;       // accumulators: 1, other elements: 0
  int64_t element = 0;        // byte of a region or of a memory, or index in a named value
  int64_t products = 0;       // accumulators: how many were summed so far
  bool operator==(const Cell&) const = default;
};

// Numbers for what elements belong to: regions of DRAM, buffers of residents, and other values that
// never leave the chip.
class Spaces {
 public:
  explicit Spaces(const machine::Program& program) : program_(program) {}

  // The space of an operand of group `group`.
  uint32_t OfOperand(const machine::OperandDesc& operand, int32_t group);
  std::string Describe(const Cell& cell) const;

 private:
  uint32_t Named(const std::string& name);
  // The buffer that a resident lies in: the longest-lived that holds its address in this group.
  int64_t BufferOf(const machine::OperandDesc& operand, int32_t group) const;

  const machine::Program& program_;
  std::map<std::string, uint32_t> named_;
  std::vector<std::string> names_;
  static constexpr uint32_t kFirstBuffer = 1u << 30;
  static constexpr uint32_t kFirstName = 1u << 31;
};

// A row of elements with constant steps: `chip` in bytes from the memory's start.
struct ElementRow {
  int64_t chip = 0, chip_step = 0;
  int64_t element = 0, element_step = 0;  // as in Cell::element
  int64_t count = 0;
};
// The existing elements of a tile, in rows.
std::vector<ElementRow> RowsOf(const machine::OperandDesc& operand, const Tile& tile);

class CellArray {
 public:
  CellArray(int64_t bytes, int64_t granule)
      : granule_(granule), cells_(static_cast<size_t>(bytes / granule + 1)) {}

  // All cells of the element at byte `offset` that is `bytes` long.
  void Set(int64_t offset, int64_t bytes, const Cell& cell);
  // The first cell of the element that differs from `expected`, or null.
  const Cell* Differs(int64_t offset, int64_t bytes, const Cell& expected) const;
  // Forgets all elements.
  void Clear() { std::fill(cells_.begin(), cells_.end(), Cell()); }
  // Takes over from another array of this size what lies in [begin, end).
  void Take(const CellArray& from, int64_t begin, int64_t end);
  const Cell& At(int64_t offset) const { return cells_[static_cast<size_t>(offset / granule_)]; }

 private:
  int64_t granule_;
  std::vector<Cell> cells_;
};

}  // namespace dla::runtime
