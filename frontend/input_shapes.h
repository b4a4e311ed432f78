// Static shapes for the graph's inputs, from the file and from --dim and --shape.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "frontend/import.h"
#include "frontend/onnx_proto.h"
#include "ir/graph.h"

namespace dla::frontend {

// The shape of each of these inputs, by name. A symbol that --shape gives a size holds for all
// inputs. kUsage: an option contradicts the file or another option, or names nothing; kUnsupported:
// a dimension is free, with the flags to type.
Result<std::map<std::string, ir::Shape>> ResolveInputShapes(
    const std::vector<const onnx::ValueInfoProto*>& inputs, const ImportOptions& options);

}  // namespace dla::frontend
