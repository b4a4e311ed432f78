// What one transfer of an operand's tile moves: payload bytes and bus bytes.
//
// Bus bytes come from the maximal contiguous runs of a tile in DRAM (docs/MACHINE.md, "Bus"):
// packed tiles are one run; in a strided operand the axes longer than 1 are sorted by stride, and
// as long as each continues the run of the ones inside it they collapse into one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/nest.h"
#include "machine/target.h"
#include "scheduler/axis_lengths.h"

namespace dla::scheduler {

class Footprint {
 public:
  // `packed`: tiles lie one after the other in DRAM. `element_bytes`: of the moved form.
  // `gathered`: axes (bits) along which every index is a run of its own.
  Footprint(const ir::Operand& operand, int64_t element_bytes, bool packed,
            const machine::Dram& dram, uint32_t gathered = 0);

  // Bus bytes of one tile with these clipped lengths (one an axis, all positive).
  int64_t BusBytes(std::span<const int64_t> lengths) const;

  // Sum of BusBytes over all tiles, from how often each length occurs on each axis.
  int64_t TotalBusBytes(std::span<const AxisLengths* const> axes) const;

 private:
  int64_t SumFrom(std::span<const AxisLengths* const> axes, size_t position, int64_t run) const;
  int64_t PackedSum(std::span<const AxisLengths* const> axes, size_t axis, int64_t run) const;
  int64_t Rounded(int64_t run) const;

  int64_t element_bytes_;
  int64_t burst_bytes_;
  bool packed_;
  std::vector<size_t> by_stride_;  // axes, smallest stride first, gathered ones last
  std::vector<int64_t> strides_;   // of these axes, in that order; 0: never continues a run
};

}  // namespace dla::scheduler
