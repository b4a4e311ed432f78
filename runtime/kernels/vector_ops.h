// The operations of micro-programs on plain arrays, one value type at a time.
#pragma once

#include <cstdint>

#include "support/micro_program.h"

namespace dla::runtime {

// Arguments of one operation; those that it does not have are not read. Arrays of values
// (kernels/convert.h) of `argument_type`, the type of argument 0; the others follow from the
// operation.
struct VectorArguments {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;
  ElementType argument_type = ElementType::kF32;
};

// to[i] = op(a[i], b[i], c[i]) for count values of type op.type; `to` may be one of the arguments.
// Not for kLoad, kAccumulator, kIndex and reductions.
void ApplyOp(const MicroInstruction& op, const VectorArguments& arguments, int64_t count, void* to);

// Parts of ApplyOp; false if the operation is none of theirs. T: float or double.
template <typename T>
bool ApplyFloatOp(const MicroInstruction& op, const T* a, const T* b, int64_t count, T* to);
// T: int64_t or uint64_t.
template <typename T>
bool ApplyIntegerOp(const MicroInstruction& op, const T* a, const T* b, int64_t count, T* to);
// Comparisons, tests, logic: the result is bool.
bool ApplyBoolOp(const MicroInstruction& op, const VectorArguments& arguments, int64_t count,
                 uint8_t* to);
void ApplyCast(ElementType from_type, const void* from, ElementType to_type, int64_t count,
               void* to);

}  // namespace dla::runtime
