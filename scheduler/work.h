// What the engines do in one step of a nest: the array's extents, the vector program's points.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/nest.h"
#include "machine/target.h"
#include "machine/timing.h"
#include "support/micro_program.h"

namespace dla::scheduler {

// What a vector program's points are: which values are full, and which dimensions' lengths make up
// the full and the reduced points of a step.
struct VectorShape {
  std::vector<bool> full;
  uint32_t full_dims = 0;
  uint32_t reduced_dims = 0;
};

// One vector instruction of a step: its program, the operand that it writes, and in which steps it
// runs (masks over dimensions as machine::Predicate has them).
struct VectorWork {
  MicroProgram program;
  int output = 0;
  uint32_t first = 0, last = 0, not_first = 0, not_last = 0;
  VectorShape shape;

  bool RunsIn(uint32_t at_first, uint32_t at_last) const;
};

// A nest's micro-program cut for the machine: `drain` runs as the array's results leave (only for
// contractions; the accumulator and output-stage operations), `vector` runs on the vector engine
// (empty: nothing left to do there). In the latter, kLoad of the nest's output operand reads back
// what the drain wrote; a tail of operations that the output stage does is marked `stage`.
struct EngineWork {
  MicroProgram drain;
  std::vector<VectorWork> vector;
};
EngineWork SplitWork(const ir::Nest& nest, const machine::OutputStage& stage);

// Extents of the array instruction for these lengths of the nest's dimensions.
machine::ArrayExtents ExtentsOf(const ir::Nest& nest, std::span<const int64_t> lengths);

// Product of the lengths of the dimensions in `dims`.
int64_t Points(uint32_t dims, std::span<const int64_t> lengths);

}  // namespace dla::scheduler
