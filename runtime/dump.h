// Values inside a program, for `dlarun --dump`.
#pragma once

#include <string>
#include <vector>

#include "machine/program.h"
#include "runtime/storage.h"
#include "support/status.h"
#include "support/tensor.h"

namespace dla::runtime {

// Positions in Program::values of the named ones; "all" stands for each that lies somewhere.
// kUsage, for every name that cannot be shown, with the reason: unknown, an input, computed by the
// compiler, or fused into a group that never stores it.
Result<std::vector<size_t>> FindValues(const machine::Program& program,
                                       const std::vector<std::string>& names);

// Of the values that the model's nodes compute, how many lie nowhere.
int64_t CountFusedAway(const machine::Program& program);

// The elements of a value that lies somewhere, right after its group; dense, in ONNX order.
Tensor ReadValue(const machine::ValueDesc& value, Storage* storage);

}  // namespace dla::runtime
