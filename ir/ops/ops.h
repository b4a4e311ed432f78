// The rows of the operator table, each defined in the file of its family.
#pragma once

#include "ir/op.h"

namespace dla::ir {

// Unless named otherwise: kernels of inference shared by several families.

// Fails unless input `position` is present; gives its value otherwise.
const Value& InputValue(const Graph& graph, const Node& node, int position);
bool HasInput(const Node& node, int position);

// An axis attribute or element in [-rank, rank), as one in [0, rank).
Result<int64_t> NormalizeAxis(int64_t axis, int64_t rank);
// Distinct axes in ascending order.
Result<std::vector<int64_t>> NormalizeAxes(const std::vector<int64_t>& axes, int64_t rank);

// The integers of a constant operand, or a failure that says that it must be constant.
Result<std::vector<int64_t>> RequireInts(const Graph& graph, const Node& node, int position,
                                         std::string_view what);

// Appends an operation to a program, returns the number of its value.
int AppendMicro(MicroProgram* program, MicroOp op, int a = 0, int b = 0, float immediate0 = 0,
                float immediate1 = 0);

// numpy's broadcast of two shapes; nothing if they do not fit.
std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b);

// The table of element-wise rows.
std::span<const OpDef> MapRows();

extern const OpDef kAveragePoolOp, kBatchNormalizationOp, kCastOp, kConcatOp, kConstantOfShapeOp,
    kConvOp, kCopyOp, kDropoutOp, kFlattenOp, kGatherOp, kGemmOp, kGlobalAveragePoolOp,
    kGlobalMaxPoolOp, kIdentityOp, kMatMulOp, kMaxPoolOp, kPadOp, kReduceMaxOp, kReduceMeanOp,
    kReduceMinOp, kReduceSumOp, kReshapeOp, kResizeOp, kShapeOp, kSizeOp, kSliceOp, kSoftmaxOp,
    kSplitOp, kSqueezeOp, kStridedSliceOp, kSumPoolOp, kTransposeOp, kUnsqueezeOp, kUpsampleOp,
    kViewOp;

}  // namespace dla::ir
