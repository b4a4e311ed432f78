// Operators that only move channels and space: DepthToSpace and SpaceToDepth become views and a
// transpose.
#include "ir/ops/ops.h"
#include "ir/ops/pick.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kDepthAttributes[] = {
    {"blocksize", AttributeKind::kInt, "", true, ""},
    {"mode", AttributeKind::kString, "DCR", false, "DCR or CRD"}};
constexpr AttributeDef kSpaceAttributes[] = {{"blocksize", AttributeKind::kInt, "", true, ""}};

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  const int64_t block = GetInt(node.attributes, "blocksize", 1);
  if (input.shape.size() != 4) return Malformed("the input has rank ", input.shape.size());
  if (block < 1 || block > (1 << 15)) return Malformed("attribute 'blocksize' is ", block);
  const bool to_space = node.op == "DepthToSpace";
  Shape shape = input.shape;
  const auto fits = [&](size_t axis, int64_t by) { return shape[axis] % by == 0; };
  if (to_space ? !fits(1, block * block) : !fits(2, block) || !fits(3, block)) {
    return Malformed("an input of shape ", ShapeText(shape), " does not split into blocks of ",
                     block);
  }
  shape[1] = to_space ? shape[1] / (block * block) : shape[1] * block * block;
  for (const size_t axis : {size_t{2}, size_t{3}}) {
    shape[axis] = to_space ? shape[axis] * block : shape[axis] / block;
  }
  outputs->push_back({input.type, shape});
  return {};
}

Status Lower(Rewriter* rewriter, const Node& node) {
  const Shape in = InputValue(rewriter->graph(), node, 0).shape;
  const Shape out = rewriter->value(node.outputs[0]).shape;
  const int64_t b = GetInt(node.attributes, "blocksize", 1);
  Shape split;
  std::vector<int64_t> perm;
  if (node.op == "SpaceToDepth") {
    split = {in[0], in[1], out[2], b, out[3], b};
    perm = {0, 3, 5, 1, 2, 4};
  } else if (GetString(node.attributes, "mode", "DCR") == "CRD") {
    split = {in[0], out[1], b, b, in[2], in[3]};
    perm = {0, 1, 4, 2, 5, 3};
  } else {
    split = {in[0], b, b, out[1], in[2], in[3]};
    perm = {0, 3, 4, 1, 5, 2};
  }
  DLA_ASSIGN_OR_RETURN(ValueId value, Reshaped(rewriter, node.inputs[0], split));
  DLA_ASSIGN_OR_RETURN(value, rewriter->Add("Transpose", {value}, {{"perm", perm}}));
  return Reshaped(rewriter, value, out, node.outputs[0]).status();
}

constexpr OpDef Row(std::string_view name, std::span<const AttributeDef> attributes) {
  OpDef row;
  row.name = name;
  row.attributes = attributes;
  row.infer = Infer;
  row.lower = Lower;
  return row;
}

constexpr OpDef kRows[] = {Row("DepthToSpace", kDepthAttributes),
                           Row("SpaceToDepth", kSpaceAttributes)};

}  // namespace

std::span<const OpDef> SpaceRows() { return kRows; }

}  // namespace dla::ir
