// The operator table itself: the rows of ir/ops/, sorted by name.
#include <algorithm>
#include <vector>

#include "ir/op.h"
#include "ir/ops/ops.h"

namespace dla::ir {
namespace {

std::vector<const OpDef*> Sorted() {
  std::vector<const OpDef*> rows = {&kAveragePoolOp,
                                    &kBatchNormalizationOp,
                                    &kCastOp,
                                    &kConcatOp,
                                    &kConstantOfShapeOp,
                                    &kConvOp,
                                    &kCopyOp,
                                    &kDropoutOp,
                                    &kFlattenOp,
                                    &kGatherOp,
                                    &kGemmOp,
                                    &kGlobalAveragePoolOp,
                                    &kGlobalMaxPoolOp,
                                    &kIdentityOp,
                                    &kMatMulOp,
                                    &kMaxPoolOp,
                                    &kPadOp,
                                    &kReduceMaxOp,
                                    &kReduceMeanOp,
                                    &kReduceMinOp,
                                    &kReduceSumOp,
                                    &kReshapeOp,
                                    &kResizeOp,
                                    &kShapeOp,
                                    &kSizeOp,
                                    &kSliceOp,
                                    &kSoftmaxOp,
                                    &kSplitOp,
                                    &kSqueezeOp,
                                    &kStridedSliceOp,
                                    &kSumPoolOp,
                                    &kTransposeOp,
                                    &kUnsqueezeOp,
                                    &kUpsampleOp,
                                    &kViewOp};
  for (const OpDef& row : MapRows()) rows.push_back(&row);
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
