// When each operand moves: the transfers of a nest under a mapping.
//
// A tile moves in the steps in which it changes. With q the innermost cut loop that the operand
// depends on, that is whenever all loops inside q are at their first (loads) or last (stores)
// block; the conditions below are masks over dimensions (bit d: dimension d). Both the recurrence
// of the predicted cycles and code generation read this list.
//
// * A bias is loaded with each new tile of channels at the first block of all reduction loops.
// * An operand of the fused program is loaded in the step that drains the output tile.
// * Where a reduction loop lies outside the output's q, accumulators are spilled at the end of each
//   visit but the last, and loaded back at the beginning of each visit but the first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/nest.h"
#include "scheduler/mapping.h"
#include "support/operand_class.h"

namespace dla::scheduler {

inline constexpr int kAccumulator = -1;  // stands for the accumulators where an operand is named

struct Transfer {
  int operand = 0;  // of the nest, or kAccumulator (a spill or its return)
  bool is_store = false;
  bool is_move = false;   // over an on-chip link instead of the bus (then it always overlaps)
  bool overlaps = false;  // may move while the step before (loads) or after (stores) computes
  uint32_t first = 0, last = 0, not_first = 0, not_last = 0;  // as machine::Predicate
  int64_t times = 1;  // how often each tile of the operand moves
};

// All transfers, in program order: loads and moves by operand, gathered ones behind the others (the
// load engine reads their indices on chip), then spills, then the output.
std::vector<Transfer> TransfersOf(const ir::Nest& nest, const Mapping& mapping);

// The loops whose block indices number the successive tiles of an operand (or of kAccumulator).
uint32_t GenerationDims(const ir::Nest& nest, const Mapping& mapping, int operand);

// Ring slots of its tile buffer: 2 where it is double-buffered and has more than one tile.
int RingSlots(const ir::Nest& nest, const Mapping& mapping, int operand);

// Of a cascade's group: tiles of the operand stay from one stripe to the next.
bool CarriesOver(const ir::Nest& nest, const Mapping& mapping, int operand);

// Are some other operand's entries chosen by this one?
bool HoldsIndices(const ir::Nest& nest, int operand);

// What is wrong with the places of gathered operands and their indices; empty: nothing. The load
// engine reads the indices on chip in the step in which it loads what they choose: so they are not
// moved there by another engine, and not loaded later in the step.
std::string GatherFault(const ir::Nest& nest, const Mapping& mapping);

// Masks over dimensions.
uint32_t CutMask(const ir::Nest& nest, const Mapping& mapping);
uint32_t ReductionMask(const ir::Nest& nest);
uint32_t DependenceMask(const ir::Nest& nest, int operand);  // kAccumulator: as the output

// The dimension along which the operand rolls, or -1. Tiles share lines with the one before only
// where Mapping::rolling is the innermost cut loop on which the operand depends.
int RollingOf(const ir::Nest& nest, const Mapping& mapping, int operand);

// May operand (or kAccumulator) exchange its tile buffer only when a step has ended? See Transfer.
bool Overlaps(const ir::Nest& nest, const Mapping& mapping, int operand);

}  // namespace dla::scheduler
