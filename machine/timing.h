// How long one instruction takes, and what it touches: the machine's own definition.
//
// docs/MACHINE.md states these rules; the scheduler's predictions and the runtime's engines both
// use them, and tests/machine steps a PE array cell by cell to show that the fold formulas are
// right. Everything that depends on several instructions (waiting, the bus, steps) is not here:
// the scheduler has a recurrence for it, the runtime has engines.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "machine/target.h"
#include "support/micro_program.h"

namespace dla::machine {

// The extents of one array instruction. Products over the tile's dimensions: `groups` over those
// that input, weight and output all depend on, `pixels` over those that input and output (not the
// weight) depend on, `channels` over weight and output (not the input), `depth` over input and
// weight (not the output).
struct ArrayExtents {
  int64_t groups = 1, pixels = 1, channels = 1, depth = 1;
};

// Cycles of that instruction on this array at `rate` MACs per PE and cycle: folds times cycles of a
// fold (ceil(streamed / rate) plus the skew), SCALE-Sim's formulas; groups one after the other.
int64_t ArrayCycles(const Array& array, Rational rate, const ArrayExtents& extents);

// Elements that the instruction moves between array and scratchpads.
struct ArrayAccesses {
  int64_t input_reads = 0, weight_reads = 0;
  int64_t partial_reads = 0, partial_writes = 0;  // partial_reads only when accumulating
};
// Output stationary: every fold reads rows_used * K + cols_used * K operand elements, writes its
// rows_used x cols_used sums once and, when `accumulate`, reads them first. Weight and input
// stationary and spatial: the stationary part is read once a fold, the other operand streams, and
// partial sums are read (except in the first fold of an instruction that does not accumulate) and
// written once for each streamed position and fold.
ArrayAccesses CountArrayAccesses(const Array& array, const ArrayExtents& extents, bool accumulate);

// Cycles of a vector instruction: startup, plus for each operation that is neither free nor done by
// the output stage ceil(points / lanes) * op_cycles, where points = `full_points` for full values
// and reductions and `reduced_points` for reduced ones; a reduction adds ceil(log2(lanes)).
int64_t VectorCycles(const Vector& vector, const MicroProgram& program,
                     const std::vector<bool>& full, int64_t full_points, int64_t reduced_points);

// Operations times points, counted the same way (output-stage operations are not counted).
int64_t VectorOps(const MicroProgram& program, const std::vector<bool>& full, int64_t full_points,
                  int64_t reduced_points);

// Multiplications that the program adds up: points of its kReduceDot operations.
int64_t VectorMacs(const MicroProgram& program, int64_t full_points);

// Cycles of the bus for one transfer with `descriptors` present ones: startups plus
// ceil(bus_bytes / bytes_per_cycle); 0 if there is none.
int64_t TransferCycles(const Target& target, int64_t descriptors, int64_t bus_bytes);

// Bus bytes of one descriptor that moves `bytes` in runs of `run_bytes` each.
int64_t BusBytes(const Dram& dram, int64_t run_bytes, int64_t runs);

// `cycles`, or more where a memory with a limited rate needs more for the bytes that an instruction
// or a transfer reads and writes there.
int64_t BoundByMemories(const Target& target, std::span<const int64_t> bytes, int64_t cycles);

}  // namespace dla::machine
