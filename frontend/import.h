// ONNX file -> ir::Graph with static types and shapes. The only folder that knows protobuf.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"
#include "support/status.h"

namespace dla::frontend {

struct ImportOptions {
  std::map<std::string, int64_t> dims;                 // --dim NAME=VALUE
  std::map<std::string, std::vector<int64_t>> shapes;  // --shape INPUT=1x3x224x224
  std::map<std::string, ir::Tensor> consts;            // --const INPUT=FILE
};

// Reads the file. All nodes that are unsupported or invalid are reported at once, one line each;
// every line names the file. kIo: cannot be read; kMalformed: not a valid model; kUnsupported: more
// than this version can do; kUsage: an option names a dimension or input that is not there.
// Weights stay in the parsed message (or the mapped external file), which the graph keeps alive.
Result<ir::Graph> ImportOnnx(const std::string& path, const ImportOptions& options);

}  // namespace dla::frontend
