// AttributeProto -> ir::Attribute, checked against the operator table.
#pragma once

#include "frontend/onnx_proto.h"
#include "frontend/tensors.h"
#include "ir/op.h"

namespace dla::frontend {

// The attributes of a node as its row declares them: unknown ones, wrong kinds and missing required
// ones are failures. `opset`: the node's.
Result<ir::AttributeMap> ReadAttributes(const onnx::NodeProto& node, const ir::OpDef& op, int opset,
                                        TensorReader* tensors);

// The value of a Constant node, in whichever attribute it is.
Result<ImportedTensor> ReadConstantNode(const onnx::NodeProto& node, TensorReader* tensors);

}  // namespace dla::frontend
