// The vector engine's arithmetic: a micro-program over the points of a tile.
//
// Points are the product of `kept` and `reduced` dimensions. They are evaluated chunk by chunk,
// operation by operation, so that intermediate values stay in the host's cache. Sums and products
// of floats over the reduced dimensions are collected in f64; the result is rounded once, where it
// is stored.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/kernels/workspace.h"
#include "support/element_type.h"
#include "support/micro_program.h"

namespace dla::runtime {

// Where an operand's elements lie; strides in elements, one for each kept dimension, then one for
// each reduced dimension.
struct VectorSource {
  ElementType type = ElementType::kF32;
  const uint8_t* data = nullptr;
  std::vector<int64_t> strides;
  int64_t start = 0;  // kIndex (without data): the index at the first point; strides are its steps
};

struct VectorJob {
  const MicroProgram* program = nullptr;
  std::vector<int64_t> kept, reduced;  // lengths, outermost first
  // For each operation of the program: is its value full, and what does it load (kLoad,
  // kAccumulator and kIndex; others leave it empty).
  std::vector<bool> full;
  std::vector<VectorSource> sources;
  ElementType type = ElementType::kF32;  // of the output
  uint8_t* output = nullptr;
  std::vector<int64_t> output_strides;  // as in VectorSource
};

struct VectorWorkspace {
  Reused<double> values;  // storage for values of any type
  Reused<double> sums;
};

// Gives how many results were finite and are infinities as they are stored.
int64_t RunVectorProgram(const VectorJob& job, VectorWorkspace* workspace);

}  // namespace dla::runtime
