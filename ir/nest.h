// A nest: what a group is to the scheduler.
//
// Every group (convolution, matmul, pooling, reduction, element-wise chain, softmax, layout change)
// is one loop nest: dimensions with extents, operands whose indices are affine in the dimensions,
// an anchor that says which engine does the work, and a micro-program. Predicted bytes, predicted
// cycles, instructions and the brute-force walk of the tests are all derived from a nest and a
// mapping; none of them knows which operator it came from.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "support/micro_program.h"
#include "support/operand_class.h"

namespace dla::ir {

struct Dimension {
  std::string name;  // "N", "G", "M", "C", "E", "F", "R", "S", or "d0", "d1", ... where none fits
  int64_t extent = 1;
  // Its first indices are computed by another group, too: their MACs are not nominal. Only of
  // dimensions of the output that are not reduced.
  int64_t repeated = 0;
};

struct Term {
  int dimension = 0;
  int64_t coefficient = 1;  // > 0
};

// One axis of an operand: index = offset + sum of coefficient * dimension. Indices outside
// [0, bound) do not exist: they are clipped from transfers and read as the operand's pad value.
struct Axis {
  std::vector<Term> terms;  // may be empty (the index is `offset`)
  int64_t offset = 0;
  int64_t bound = 1;
  int64_t stride = 0;  // elements between neighbours, in the DRAM buffer of the value's root
};

// A gathered operand: its entries along one axis of the value are chosen by an operand of integers.
// The element of a point lies at base + index * stride + the operand's axes, index being what the
// operand `indices` holds there, or that plus `bound` where it is negative. Where the operand's
// axes name a dimension of the indices, they say with their stride 0 that nothing else moves along
// it. Every index is a run of its own in DRAM, whatever it is, so that bytes do not depend on data.
struct Gather {
  int indices = 0;     // an operand of the nest; each axis one whole dimension of this operand
  int64_t bound = 1;   // entries that the value has; -bound <= index < bound
  int64_t stride = 1;  // elements between them
};

// The weights of several groups of a contraction side by side (ir/packed_groups.h): they have an
// element where channel / channels == depth / depths, the indices along the two dimensions.
// Elsewhere a zero lies in memory, and the array does not multiply. The weight's axis along the
// depth counts modulo `depths` in the buffer of its root.
struct Diagonal {
  int channel_dimension = 0;  // of weight and output
  int depth_dimension = 0;    // of input and weight
  int64_t channels = 1;       // of one group
  int64_t depths = 1;
};

struct Operand {
  ValueId value = kNoValue;  // storage.root gives the DRAM buffer
  OperandClass cls = OperandClass::kVector;
  ElementType type = ElementType::kF32;
  // The type to which the array rounds an element of its input or weight before it multiplies,
  // where that is not `type`. Rates, accumulators and energy go by it.
  std::optional<ElementType> read_as;
  int64_t base = 0;        // elements, in the root's buffer: where index 0 of all axes lies
  std::vector<Axis> axes;  // outermost first; this is also the order of the tile on chip
  double pad_value = 0;    // what a clipped index reads as
  // Known at compile time; a contraction's weights are packed in tile order.
  bool is_constant = false;
  std::optional<Gather> gather;
  std::optional<Diagonal> diagonal;  // of a contraction's constant weights
  // Exists only on chip, for the time of the group: the running value of a reduction whose
  // dimensions are cut (scheduler/phases.h). It has no value and is never transferred.
  bool is_local = false;

  ElementType ReadType() const { return read_as.value_or(type); }
};

enum class Anchor : uint8_t {
  kContraction,  // array: output += input * weight over the dimensions that output lacks
  kVector,       // vector engine: the micro-program over all points; reductions where it has them
  kMove,         // no engine computes: one operand is loaded and stored with other strides
};

// One part of a vector program that was cut because its reductions do not fit in one step: it runs
// in the steps of one pass over the data and writes one operand.
struct Phase {
  enum class Kind : uint8_t {
    kBegin,       // sets a running value; at the first block of the reduced dimensions
    kAccumulate,  // adds a tile to it
    kFinish,      // computes the output; where it is reduced, at the last block only
  };
  Kind kind = Kind::kFinish;
  MicroProgram program;
  int output = 0;  // operand that it writes
  int pass = 0;
};

// Roles. Contraction: operands[kInput], operands[kWeight], then bias (if any), then the operands
// that the program loads; the output is always the last. Move: operands[0] is the source.
// A dimension is a reduction dimension if the output does not depend on it.
//
// Invariants: no dimension occurs twice in one operand; every dimension occurs in some operand;
// the output's axes are never clipped.
struct Nest {
  static constexpr int kInput = 0;
  static constexpr int kWeight = 1;

  std::vector<Dimension> dimensions;
  std::vector<Operand> operands;
  Anchor anchor = Anchor::kVector;
  int bias = -1;  // operand that the accumulators start from (depends only on G and M), or -1
  // Contraction: begins with kAccumulator; just that where nothing is fused. Vector: begins with
  // loads. Move: empty. kLoad's `operand` counts in `operands`.
  MicroProgram program;
  // Dimensions that the program's reductions run over (bit d: dimension d); 0: those that the
  // output lacks. Softmax needs it: its output has the dimension that its sums run over. `full`
  // values (support/micro_program.h) are those that depend on a dimension of the mask.
  uint32_t reduce_mask = 0;
  // Vector anchors whose reductions are cut: the program in phases (`program` as a whole is then
  // only for people), and the dimension that counts the passes. Empty and -1 otherwise.
  std::vector<Phase> phases;
  int pass_dimension = -1;

  int output() const { return static_cast<int>(operands.size()) - 1; }
  bool DependsOn(int operand, int dimension) const;
  bool IsReduction(int dimension) const { return !DependsOn(output(), dimension); }
  // Bit a: axis a of a gathered operand has a dimension of its indices; 0 for others.
  uint32_t GatheredAxes(int operand) const;
};

}  // namespace dla::ir
