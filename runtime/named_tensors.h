// Tensors by name against what a program wants: inputs matched, outputs compared.
#pragma once

#include <string>
#include <vector>

#include "machine/program.h"
#include "support/status.h"
#include "support/tensor.h"

namespace dla::runtime {

// "f32 1x3x224x224"; "f32 scalar" without axes.
std::string TypeAndShape(ElementType type, const std::vector<int64_t>& shape);

// The first eight elements as text; "..." if there are more.
std::string FirstElements(const Tensor& tensor);

// The tensors in the order of the program's inputs. kUsage, with all reasons at once, for a name
// that is no input or is given twice, a missing input, or another type or shape. A bf16 input may
// be given as u16 (its bits).
Result<std::vector<Tensor>> MatchInputs(const machine::Program& program,
                                        std::vector<Tensor> tensors);

struct Tolerance {
  double relative = 1e-3, absolute = 1e-5;
};

// How an output differs from what was expected.
struct Difference {
  int64_t elements = 0;
  int64_t differing = 0;
  std::string worst;  // where and how much; "" if nothing differs
};

// Compares element by element: floats may differ by absolute + relative * |expected| (NaN equals
// NaN, infinities must be equal), all other types must be equal. kUsage if type or shape differ,
// kUnsupported for types that cannot be compared.
Result<Difference> Compare(const Tensor& output, const Tensor& expected,
                           const Tolerance& tolerance);

}  // namespace dla::runtime
