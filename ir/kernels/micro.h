// Reference meaning of micro-programs: typed arithmetic on columns of values, and programs run
// over iteration spaces of strided operands.
//
// Element-wise rows, reductions and fused chains are evaluated by RunMicroProgram, so that an
// operator's arithmetic is written once: as the program that it emits.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "support/micro_program.h"

namespace dla::ir {

// Values of one type, eight bytes apart from each other at most: `As<float>()` and the like.
class MicroColumn {
 public:
  MicroColumn() = default;
  MicroColumn(ElementType value_type, int64_t count)
      : type_(value_type), slots_(static_cast<size_t>(count)) {}

  ElementType type() const { return type_; }
  int64_t count() const { return static_cast<int64_t>(slots_.size()); }
  template <typename T>
  T* As() {
    return static_cast<T*>(static_cast<void*>(slots_.data()));
  }
  template <typename T>
  const T* As() const {
    return static_cast<const T*>(static_cast<const void*>(slots_.data()));
  }

 private:
  ElementType type_ = ElementType::kF32;
  std::vector<uint64_t> slots_;
};

// Elements `stride` apart (in elements) as values, and values as such elements.
void LoadColumn(ElementType stored, const uint8_t* from, int64_t stride, int64_t count,
                MicroColumn* column, int64_t at = 0);
void StoreColumn(const MicroColumn& column, int64_t at, int64_t count, ElementType stored,
                 uint8_t* to, int64_t stride);
// A stored number as a value of the column (for constants and padding).
void FillColumn(double number, MicroColumn* column);

// One operation on columns of one length; neither load, index nor accumulator. Reductions take the
// whole column and repeat their result in it: sums are in f64 (integers: exact, wrapping), rounded
// once.
void ApplyMicroOp(const MicroInstruction& op, std::span<const MicroColumn* const> arguments,
                  MicroColumn* result);

// An array whose element of a point lies at the sum of index times stride (in elements).
struct MicroArray {
  ElementType type = ElementType::kF32;
  Shape strides;
};

// Runs a program over all points of `shape`; axes with their bit in `reduced` are those that its
// reductions run over. kLoad k reads operands[k], kIndex d is the index of axis d. A result that is
// the same along the reduced axes may have strides of 0 there.
void RunMicroProgram(const MicroProgram& program, const Shape& shape, uint32_t reduced,
                     std::span<const MicroArray> operands, std::span<const uint8_t* const> sources,
                     const MicroArray& result, uint8_t* target);

}  // namespace dla::ir
