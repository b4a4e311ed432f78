// The small models of tests/data/cases, with the inputs and the outputs that ONNX Runtime gave.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/tensor.h"

namespace dla::testing {

using Tensors = std::map<std::string, ir::Tensor>;

// Every case as kind/name, sorted.
std::vector<std::string> StoredCases();
// The path of model.onnx, inputs.npz or expected.npz of a case.
std::string StoredCasePath(const std::string& name, const std::string& file);
// A case's tensors by name; a failure of the test where they cannot be read.
Tensors ReadTensors(const std::string& path);

// Failures of the test where a wanted tensor is missing or is another one: rtol 1e-4 is what the
// cases ask; the absolute part is a tenth of it, relative to the largest element.
void ExpectClose(const Tensors& wanted, const Tensors& got, float rtol);

}  // namespace dla::testing
