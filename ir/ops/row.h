// Rows over whole axes: reductions, softmax and normalisations are programs with reductions over
// the attribute "axes" of the first operand; other operands broadcast to it. The result keeps the
// reduced axes with extent 1, or has the shape of the first operand.
#pragma once

#include "ir/ops/map.h"
#include "ir/rewriter.h"

namespace dla::ir {

Status EvaluateRow(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs);
Result<Nest> RowNest(const Graph& graph, const Node& node);

// The first operand's shape with extent 1 at the axes.
Shape KeptShape(Shape shape, const std::vector<int64_t>& axes);

constexpr OpDef RowOf(std::string_view name, Emitter emit,
                      std::span<const AttributeDef> attributes) {
  OpDef row;
  row.name = name;
  row.kind = OpKind::kRow;
  row.attributes = attributes;
  row.evaluate = EvaluateRow;
  row.emit = emit;
  row.nest = RowNest;
  return row;
}

}  // namespace dla::ir
