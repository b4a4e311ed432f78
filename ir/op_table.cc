// The operator table itself: the rows of ir/ops/, sorted by name.
#include <algorithm>
#include <vector>

#include "ir/op.h"
#include "ir/ops/ops.h"

namespace dla::ir {
namespace {

std::vector<const OpDef*> Sorted() {
  std::vector<const OpDef*> rows = {&kBatchNormalizationOp,
                                    &kConcatOp,
                                    &kConstantOfShapeOp,
                                    &kConvOp,
                                    &kCopyOp,
                                    &kDropoutOp,
                                    &kEinsumOp,
                                    &kFlattenOp,
                                    &kGatherOp,
                                    &kGemmOp,
                                    &kGridSampleOp,
                                    &kIdentityOp,
                                    &kMatMulOp,
                                    &kPadOp,
                                    &kReshapeOp,
                                    &kResizeOp,
                                    &kShapeOp,
                                    &kSizeOp,
                                    &kSliceOp,
                                    &kSplitOp,
                                    &kTakeOp,
                                    &kSqueezeOp,
                                    &kStridedSliceOp,
                                    &kTransposeOp,
                                    &kUnsqueezeOp,
                                    &kUpsampleOp,
                                    &kViewOp};
  for (const auto family : {ActivationRows, ArithmeticRows, BroadcastRows, ConstantRows,
                            ConvTransposeRows, LogicRows, LossRows, NormalizationRows, PoolRows,
                            ReductionRows, ScatterRows, SoftmaxRows, SpaceRows}) {
    for (const OpDef& row : family()) rows.push_back(&row);
  }
  std::sort(rows.begin(), rows.end(),
            [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
  return rows;
}

}  // namespace

std::span<const OpDef* const> OperatorTable() {
  static const std::vector<const OpDef*> kTable = Sorted();
  return kTable;
}

}  // namespace dla::ir
