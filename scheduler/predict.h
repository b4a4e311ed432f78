// What a mapping costs, before any code exists.
//
// Bytes and counts are closed forms over the blocks of each axis; cycles are the tile-step
// recurrence of docs/MACHINE.md ("Steps"). The runtime counts the same quantities by executing the
// program, and tests walk the loop nest by brute force: the three must agree exactly.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/nest.h"
#include "machine/counters.h"
#include "machine/target.h"
#include "scheduler/mapping.h"

namespace dla::scheduler {

// Bytes of one tile of the operand (or of kAccumulator): its longest clipped extents, dense.
int64_t TileBytes(const ir::Nest& nest, const Mapping& mapping, const machine::Target& target,
                  int operand);

// Bytes that the operand's buffer takes in its scratchpad: the tile rounded up to the memory's
// alignment, times its ring slots; 0 for a resident operand, for an output that is drained in
// place, and for the output of a move (it shares the source's buffer).
int64_t BufferBytes(const ir::Nest& nest, const Mapping& mapping, const machine::Target& target,
                    int operand);

// Type of the accumulators of a contraction on this target.
ElementType AccumulatorType(const ir::Nest& nest, const machine::Target& target);

// Traffic and counts in closed form; `cycles` stays 0. The mapping is legal (CheckMapping).
machine::Counters PredictCounts(const ir::Nest& nest, const Mapping& mapping,
                                const machine::Target& target);

// Cycles from the group's start to its last engine's end.
int64_t PredictCycles(const ir::Nest& nest, const Mapping& mapping, const machine::Target& target);

// Both.
machine::Counters Predict(const ir::Nest& nest, const Mapping& mapping,
                          const machine::Target& target);

// Sum of the compute time of all steps: no order or buffering makes the group faster.
int64_t ComputeCycles(const ir::Nest& nest, const Mapping& mapping, const machine::Target& target);

// Bytes of the operands that are not resident, once each: no mapping moves less.
int64_t CompulsoryBytes(const ir::Nest& nest, const Mapping& mapping);

// Steps: the product of the loops' counts.
int64_t StepCount(const ir::Nest& nest, const Mapping& mapping);

// Energy in pJ of counts on a target: bus bytes, scratchpad bytes, MACs, vector operations.
double EnergyPj(const machine::Counters& counters, const machine::Target& target,
                ElementType mac_type);

}  // namespace dla::scheduler
