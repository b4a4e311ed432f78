// Cycles of mappings of one nest: the tile-step recurrence of docs/MACHINE.md, walked fast.
//
// Steps are alike where each dimension's block is of the same kind: first, last, or in between,
// with the same lengths on every axis that the dimension is part of. Durations are computed once a
// kind, and a run of equal steps ends as soon as the recurrence repeats itself.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "ir/nest.h"
#include "machine/target.h"
#include "scheduler/footprint.h"
#include "scheduler/mapping.h"
#include "scheduler/step_work.h"
#include "scheduler/transfers.h"

namespace dla::scheduler {

// What the groups before left to do when a group begins, in cycles from then on.
struct Carried {
  int64_t bus = 0;   // until their transfers have left the bus
  int64_t data = 0;  // until what was prefetched for this group is usable

  bool operator==(const Carried&) const = default;
};

// How a group overlaps with its neighbours (machine/program.h, "Groups that overlap").
struct Neighbours {
  Carried before;
  uint32_t prefetched = 0;      // operands whose first tiles are loaded before the group begins
  int64_t next_prefetch = 0;    // cycles on the bus of what the next group prefetches
  bool next_is_joined = false;  // the next group begins while this one still stores
};

// The cycles between a group's start and that of the next one.
struct GroupTime {
  int64_t cycles = 0;
  Carried after;
};

class CycleModel {
 public:
  // Keeps references to both.
  CycleModel(const ir::Nest& nest, const machine::Target& target);
  CycleModel(const CycleModel&) = delete;
  CycleModel& operator=(const CycleModel&) = delete;

  // Cycles from the group's start to its last engine's end. Returns early, with some value of at
  // least `limit`, once that many are certain; `least_compute` is a lower bound of the compute time
  // of all steps together.
  int64_t Cycles(const Mapping& mapping, int64_t limit = std::numeric_limits<int64_t>::max(),
                 int64_t least_compute = 0);

  // The same between neighbours; the group is not part of a cascade.
  GroupTime CyclesBetween(const Mapping& mapping, const Neighbours& neighbours);

  // Cycles on the bus of the first tiles of these operands as one transfer; 0 if they are empty.
  int64_t PrefetchCycles(const Mapping& mapping, uint32_t operands);

  // Recurrences evaluated so far.
  int64_t steps_walked() const { return steps_walked_; }

 private:
  struct Kind {
    int64_t length = 0;
    bool first = false, last = false;
    int64_t index = 0;  // a block of this kind
  };
  struct Run {
    int kind = 0;
    int64_t index = 0, blocks = 0;  // consecutive blocks of this kind
  };
  struct Dim {
    int64_t count = 1;
    std::vector<int> kind_of;  // by block
    std::vector<Kind> kinds;
    std::vector<Run> runs;
  };
  // Clipped lengths of an axis for all combinations of its blocks.
  struct AxisTable {
    std::vector<std::pair<size_t, int64_t>> terms;  // dimension, stride in `lengths`
    std::vector<int64_t> lengths;
  };
  struct OperandTable {
    std::vector<AxisTable> axes;
    Footprint footprint;
    int64_t element_bytes = 1;
  };
  // Cycles on the bus in one step: loads and stores, overlapping (D) and not (S); of moves; of the
  // engines.
  struct Step {
    int64_t load_d = 0, load_s = 0, store_d = 0, store_s = 0;
    int64_t move = 0, compute = 0;
    uint64_t mapping_number = 0;  // of the mapping for which it was computed
  };
  struct Recurrence;
  // Of several descriptors.
  struct OpenTransfer {
    int64_t bus_bytes = 0, descriptors = 0;
    std::array<int64_t, machine::kMaxMemories> bytes{};  // by memory
  };

  void Prepare(const Mapping& mapping);
  int64_t Walk(int64_t limit, int64_t least_compute, const Neighbours& neighbours,
               GroupTime* between);
  GroupTime EndBetween(const Neighbours& neighbours, Recurrence* recurrence) const;
  void AddTransfer(const Transfer& transfer, OpenTransfer* open);
  int64_t CyclesOf(const OpenTransfer& transfer) const;
  void SetBlocks(const Mapping& mapping, int rolling);
  void FillAxis(const ir::Axis& axis, int rolling, AxisTable* table) const;
  void FindKinds(size_t d);
  bool SameKind(size_t d, int64_t a, int64_t b) const;
  const Step& StepAt(int64_t id);
  // The step of the kinds of blocks that index_ has, without the loads of some operands.
  Step ComputeHere(uint32_t without);
  Step Compute(uint32_t first, uint32_t last, uint32_t without);
  void AddIndices(int operand, std::array<int64_t, machine::kMaxMemories>* bytes) const;
  int64_t BusBytes(const OperandTable& table, int64_t* bytes);
  void Repeat(const Step& step, int64_t times, Recurrence* recurrence);

  const ir::Nest& nest_;
  const machine::Target& target_;
  Mapping mapping_;
  StepWork work_;
  std::vector<OperandTable> operands_;  // the accumulators last
  int rolling_ = -1;
  std::vector<Dim> dims_;
  std::vector<int64_t> radix_;  // of each dimension's kind in the number of a step
  std::vector<Transfer> transfers_;
  std::vector<Step> steps_;  // by number
  Step scratch_;
  std::vector<int64_t> index_, lengths_, axis_lengths_;
  uint64_t mapping_number_ = 0;
  int64_t steps_walked_ = 0;
};

}  // namespace dla::scheduler
