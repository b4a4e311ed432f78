// Reference meaning of the element-wise micro-operations, on plain arrays of f32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "support/micro_program.h"

namespace dla::ir {

// One operation that is neither load, constant nor reduction; `b` is ignored by unary ones.
// max and min give the other operand where one is not a number only if it is the second: they are
// a < b ? b : a and b < a ? b : a, as the machine's.
float ApplyMicroOp(const MicroInstruction& op, float a, float b);

// Runs a straight-line program over `count` points. kLoad k reads arguments[k][point]. Programs
// with reductions are not for this function.
void RunMicroProgram(const MicroProgram& program, std::span<const float* const> arguments,
                     int64_t count, float* result);

}  // namespace dla::ir
