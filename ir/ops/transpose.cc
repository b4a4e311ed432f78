// Transpose; its canonical form always names the permutation.
#include <algorithm>

#include "ir/kernels/strided.h"
#include "ir/ops/ops.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {{"perm", AttributeKind::kInts, "reversed axes", false, ""}};

Result<std::vector<int64_t>> Permutation(const Node& node, size_t rank) {
  std::vector<int64_t> reversed;
  for (size_t i = rank; i-- > 0;) reversed.push_back(static_cast<int64_t>(i));
  const std::vector<int64_t> perm = GetInts(node.attributes, "perm", reversed);
  std::vector<int64_t> sorted = perm;
  std::sort(sorted.begin(), sorted.end());
  std::reverse(sorted.begin(), sorted.end());
  if (sorted != reversed) {
    return Malformed("attribute 'perm' is no permutation of the ", rank, " axes of the input");
  }
  return perm;
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> perm, Permutation(node, input.shape.size()));
  Shape shape;
  for (const int64_t axis : perm) shape.push_back(input.shape[Idx(axis)]);
  outputs->push_back({input.type, shape});
  return {};
}

Status Evaluate(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> perm, Permutation(node, inputs[0].shape.size()));
  const Shape strides = DenseStrides(inputs[0].shape);
  Shape from;
  for (const int64_t axis : perm) from.push_back(strides[Idx(axis)]);
  CopyStrided(outputs[0].shape, TypeBytes(outputs[0].type, 1), inputs[0].bytes, from,
              outputs[0].bytes.data(), DenseStrides(outputs[0].shape));
  return {};
}

Status Lower(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> perm,
                       Permutation(node, InputValue(rewriter->graph(), node, 0).shape.size()));
  rewriter->Finish("Transpose", node.inputs, {{"perm", perm}}, node.outputs[0]);
  return {};
}

}  // namespace

const OpDef kTransposeOp = {
    .name = "Transpose",
    .kind = OpKind::kView,
    .attributes = kAttributes,
    .infer = Infer,
    .evaluate = Evaluate,
    .lower = Lower,
};

}  // namespace dla::ir
