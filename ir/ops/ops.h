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

// The integers of a constant operand of indices; none of one that is computed, if it has the type
// of indices.
Result<std::vector<int64_t>> KnownIndices(const Graph& graph, const Node& node, int position);

// numpy's broadcast of two shapes; nothing if they do not fit.
std::optional<Shape> BroadcastShapes(const Shape& a, const Shape& b);

// A constant of one element of the type of `like`.
ValueId FloatLike(Rewriter* rewriter, ValueId like, double number, const std::string& name);
// |value|^p.
Result<ValueId> PowerOfAbs(Rewriter* rewriter, ValueId value, int64_t p);

// The bias in the type of accumulators, f32.
Result<ValueId> AccumulatorBias(Rewriter* rewriter, ValueId bias);

// Rows of a family, in the file of its name.
std::span<const OpDef> ActivationRows();
std::span<const OpDef> ArithmeticRows();
std::span<const OpDef> BroadcastRows();
std::span<const OpDef> ConstantRows();
std::span<const OpDef> ConvTransposeRows();
std::span<const OpDef> LogicRows();
std::span<const OpDef> LossRows();
std::span<const OpDef> NormalizationRows();
std::span<const OpDef> PoolRows();
std::span<const OpDef> ReductionRows();
std::span<const OpDef> ScatterRows();
std::span<const OpDef> SoftmaxRows();
std::span<const OpDef> SpaceRows();

extern const OpDef kBatchNormalizationOp, kConcatOp, kConstantOfShapeOp, kConvOp, kCopyOp,
    kDropoutOp, kEinsumOp, kFlattenOp, kGatherOp, kGemmOp, kGridSampleOp, kIdentityOp, kMatMulOp,
    kPadOp, kReshapeOp, kResizeOp, kShapeOp, kSizeOp, kSliceOp, kSplitOp, kSqueezeOp,
    kStridedSliceOp, kTakeOp, kTransposeOp, kUnsqueezeOp, kUpsampleOp, kViewOp;

}  // namespace dla::ir
