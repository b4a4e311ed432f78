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

// A nest's micro-program cut for the machine: `drain` runs as the array's results leave (only for
// contractions; the accumulator and output-stage operations), `vector` runs on the vector engine
// (empty: nothing left to do there). In the latter, kLoad of the nest's output operand reads back
// what the drain wrote; a tail of operations that the output stage does is marked `stage`.
struct EngineWork {
  MicroProgram drain;
  MicroProgram vector;
};
EngineWork SplitWork(const ir::Nest& nest, const machine::OutputStage& stage);

// Extents of the array instruction for these lengths of the nest's dimensions.
machine::ArrayExtents ExtentsOf(const ir::Nest& nest, std::span<const int64_t> lengths);

// Which values of the vector program are full, and the points of a step.
struct VectorShape {
  std::vector<bool> full;
  uint32_t full_dims = 0;     // dimensions whose lengths make up the full points
  uint32_t reduced_dims = 0;  // ... the reduced points
};
VectorShape ShapeOf(const ir::Nest& nest, const MicroProgram& vector_program);

// Product of the lengths of the dimensions in `dims`.
int64_t Points(uint32_t dims, std::span<const int64_t> lengths);

}  // namespace dla::scheduler
