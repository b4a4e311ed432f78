// Comparisons, logic, selection and conversion of types.
#include "ir/ops/map.h"
#include "ir/ops/ops.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kCastAttributes[] = {
    {"saturate", AttributeKind::kInt, "1", false, "of 8-bit floats; ignored"},
    {"to", AttributeKind::kType, "", true, ""}};
constexpr AttributeDef kCastLikeAttributes[] = {
    {"saturate", AttributeKind::kInt, "1", false, "of 8-bit floats; ignored"}};
constexpr AttributeDef kIsInfAttributes[] = {
    {"detect_negative", AttributeKind::kInt, "1", false, ""},
    {"detect_positive", AttributeKind::kInt, "1", false, ""}};

template <MicroOp op, bool swapped = false>
int EmitTest(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  return w->Test(op, x[swapped ? 1 : 0], x[swapped ? 0 : 1]);
}

int EmitIsNaN(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  return w->Test(MicroOp::kIsNaN, x[0]);
}

int EmitIsInf(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  return w->Test(MicroOp::kIsInf, x[0],
                 static_cast<double>(GetInt(attributes, "detect_negative", 1)),
                 static_cast<double>(GetInt(attributes, "detect_positive", 1)));
}

int EmitWhere(const AttributeMap&, std::span<const int> x, MicroWriter* w) {
  return w->Select(x[0], x[1], x[2]);
}

Status InferWhere(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& condition = InputValue(graph, node, 0);
  const Value& yes = InputValue(graph, node, 1);
  const Value& no = InputValue(graph, node, 2);
  if (condition.type != ElementType::kBool || yes.type != no.type) {
    return Malformed("the operands have types ", TypeName(condition.type), ", ", TypeName(yes.type),
                     " and ", TypeName(no.type));
  }
  DLA_ASSIGN_OR_RETURN(Shape shape, BroadcastOperands(graph, node));
  outputs->push_back({yes.type, std::move(shape)});
  return {};
}

Result<ElementType> CastType(const AttributeMap& attributes) {
  const auto type = ParseElementType(GetString(attributes, "to", ""));
  if (!type) return Malformed("attribute 'to' is no element type");
  if (!IsReadable(*type)) return Unsupported("casting to ", TypeName(*type), " is not supported");
  return *type;
}

int EmitCast(const AttributeMap& attributes, std::span<const int> x, MicroWriter* w) {
  const Result<ElementType> type = CastType(attributes);
  DLA_CHECK(type.ok(), type.status().message());
  if (w->TypeOf(x[0]) == ValueType(*type)) return w->Op(MicroOp::kCopy, x[0]);
  return w->Cast(x[0], ValueType(*type));
}

Status InferCast(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const ElementType type, CastType(node.attributes));
  outputs->push_back({type, input.shape});
  return {};
}

// A cast to the type that is there does nothing.
Status LowerCast(Rewriter* rewriter, const Node& node) {
  const Value& input = InputValue(rewriter->graph(), node, 0);
  const Value& output = rewriter->value(node.outputs[0]);
  if (input.type == output.type) {
    const Shape shape = output.shape;
    rewriter->Finish("View", {node.inputs[0]}, {{"shape", shape}}, node.outputs[0]);
  } else {
    rewriter->Finish("Cast", {node.inputs[0]}, {{"to", std::string(TypeName(output.type))}},
                     node.outputs[0]);
  }
  return {};
}

Status InferCastLike(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  outputs->push_back({InputValue(graph, node, 1).type, InputValue(graph, node, 0).shape});
  return {};
}

constexpr OpDef Test(OpDef row) {
  row.infer = InferTest;
  return row;
}

constexpr OpDef WhereRow() {
  OpDef row = Map("Where", 3, EmitWhere);
  row.infer = InferWhere;
  return Since(row, 9);
}

constexpr OpDef CastRow() {
  OpDef row = Map("Cast", 1, EmitCast, kCastAttributes);
  row.infer = InferCast;
  row.lower = LowerCast;
  return row;
}

constexpr OpDef CastLikeRow() {
  OpDef row;
  row.name = "CastLike";
  row.first_opset = 15;
  row.min_inputs = 2;
  row.max_inputs = 2;
  row.attributes = kCastLikeAttributes;
  row.infer = InferCastLike;
  row.lower = LowerCast;
  return row;
}

constexpr OpDef kRows[] = {
    Aligned<InferMap>(Map("And", 2, EmitBinary<MicroOp::kAnd>)),
    CastRow(),
    CastLikeRow(),
    Aligned<InferTest>(Map("Equal", 2, EmitTest<MicroOp::kEqual>)),
    Aligned<InferTest>(Map("Greater", 2, EmitTest<MicroOp::kLess, true>)),
    Test(Since(Map("GreaterOrEqual", 2, EmitTest<MicroOp::kLessOrEqual, true>), 12)),
    Test(Since(Map("IsInf", 1, EmitIsInf, kIsInfAttributes), 10)),
    Test(Since(Map("IsNaN", 1, EmitIsNaN), 9)),
    Aligned<InferTest>(Map("Less", 2, EmitTest<MicroOp::kLess>)),
    Test(Since(Map("LessOrEqual", 2, EmitTest<MicroOp::kLessOrEqual>), 12)),
    Map("Not", 1, EmitUnary<MicroOp::kNot>),
    Aligned<InferMap>(Map("Or", 2, EmitBinary<MicroOp::kOr>)),
    WhereRow(),
    Aligned<InferMap>(Map("Xor", 2, EmitBinary<MicroOp::kXor>)),
};

}  // namespace

std::span<const OpDef> LogicRows() { return kRows; }

}  // namespace dla::ir
