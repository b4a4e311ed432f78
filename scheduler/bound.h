// A quick bound of a mapping's cost from its block sizes alone, for one order class.
//
// For each operand X there is an order that loads X once (all loops that X does not depend on
// innermost) and every other operand as often as its irrelevant loops have iterations; some such
// order has the least bytes of all orders (docs/SCHEDULER.md). Tables of axis lengths are built
// once a nest, so that bounding one vector of block sizes takes well under a microsecond.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/nest.h"
#include "machine/target.h"
#include "scheduler/axis_lengths.h"
#include "scheduler/footprint.h"
#include "scheduler/memory_assignment.h"
#include "scheduler/work.h"

namespace dla::scheduler {

class BoundTables {
 public:
  // `resident[o]`: operand o has no transfers.
  BoundTables(const ir::Nest& nest, const machine::Target& target,
              std::vector<std::vector<int64_t>> candidates, std::vector<bool> resident);

  const std::vector<std::vector<int64_t>>& candidates() const { return candidates_; }

  // Fixes the block sizes: choice[d] indexes candidates()[d].
  void Choose(std::span<const int> choice);

  // Bytes of one tile of each operand, the accumulators last.
  std::span<const BufferNeed> Needs() const { return needs_; }

  struct Bound {
    int64_t cycles = 0;     // no schedule of this order class with these buffers is faster
    int64_t bus_bytes = 0;  // of this order class, exact
  };
  // `stationary`: the operand that is loaded once. Bit o of `single`: operand o (the accumulators:
  // the output's bit) has one buffer.
  Bound BoundOf(int stationary, uint32_t single) const;

  int64_t steps() const { return steps_; }
  int64_t compute_cycles() const { return compute_cycles_; }

 private:
  struct AxisTable {
    std::vector<std::pair<size_t, size_t>> terms;  // dimension, stride in entries
    std::vector<AxisLengths> entries;              // by the choices of these dimensions
  };
  struct OperandTable {
    std::vector<AxisTable> axes;
    Footprint footprint;
    Footprint spill_footprint;  // of the accumulators (output only)
    uint32_t dims = 0;
  };
  struct Chosen {  // what the chosen blocks make of an operand
    int64_t bus_bytes = 0, tiles = 0;
    int64_t spill_bus_bytes = 0;
  };

  void BuildAxis(const ir::Axis& axis, AxisTable* table) const;
  int64_t ComputeCycles() const;
  int64_t ArraySum() const;
  int64_t VectorSum() const;
  int64_t ProductOfCounts(uint32_t dims) const;

  const ir::Nest& nest_;
  const machine::Target& target_;
  std::vector<std::vector<int64_t>> candidates_;
  std::vector<bool> resident_;
  std::vector<OperandTable> operands_;
  EngineWork work_;
  uint32_t reductions_ = 0;

  std::vector<int64_t> block_, count_;
  uint32_t cut_ = 0;
  std::vector<BufferNeed> needs_;
  std::vector<Chosen> chosen_;
  int64_t steps_ = 1;
  int64_t compute_cycles_ = 0;
};

}  // namespace dla::scheduler
