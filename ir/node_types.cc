#include "ir/node_types.h"

#include "ir/ops/map.h"

namespace dla::ir {
namespace {

bool IsHalf(ElementType type) { return type == ElementType::kF16 || type == ElementType::kBF16; }

Status CheckProgram(const Node& node, const std::vector<ElementType>& types) {
  const MicroProgram program = ProgramOf(node, types);
  for (size_t i = 0; i < program.ops.size(); ++i) {
    if (!TypesFit(program, i)) {
      return Unsupported(node.op, " of ", TypeName(types[0]), " is not possible");
    }
  }
  return {};
}

// The type of a result is decided by the ONNX node; operands of several types may give another.
Status CheckResults(const Graph& graph, const OpDef& def, const Node& node) {
  std::vector<TensorType> types;
  DLA_RETURN_IF_ERROR(def.infer(graph, node, &types));
  for (size_t i = 0; i < node.outputs.size() && i < types.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    const ElementType type = graph.values[Idx(node.outputs[i])].type;
    if (type != types[i].type) {
      return Unsupported("operands of several types are not supported: the result would be ",
                         TypeName(types[i].type), " and must be ", TypeName(type));
    }
  }
  return {};
}

}  // namespace

Status CheckTypes(const Graph& graph, const Node& node) {
  const OpDef* def = FindOperator(node.op);
  DLA_RETURN_IF_ERROR(CheckResults(graph, *def, node));
  std::vector<ElementType> types;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    types.push_back(graph.values[Idx(node.inputs[i])].type);
    if (!IsReadable(types.back())) {
      return Unsupported("elements of type ", TypeName(types.back()), " are not supported");
    }
  }
  switch (def->kind) {
    case OpKind::kMap:
    case OpKind::kRow:
      return CheckProgram(node, types);
    case OpKind::kContraction:
      for (size_t i = 0; i < types.size(); ++i) {
        const ElementType type = types[i];
        if (i == 2 && type == ElementType::kF32) continue;  // the bias has the accumulators' type
        if (type != types[0] || !(type == ElementType::kF32 || IsHalf(type))) {
          return Unsupported(node.op, " of ", TypeName(type),
                             " is not supported, only of f32, f16 and bf16");
        }
      }
      return {};
    case OpKind::kReduction:
      if (node.op == "SumPool" && !IsFloat(types[0])) {
        return Unsupported("averages of ", TypeName(types[0]), " are not supported");
      }
      if (types[0] == ElementType::kBool || types[0] == ElementType::kU64) {
        return Unsupported("pooling of ", TypeName(types[0]), " is not supported");
      }
      return {};
    default:
      return {};
  }
}

Status EvaluateNode(const Node& node, std::span<const TensorView> inputs,
                    std::span<Tensor> outputs) {
  const OpDef* def = FindOperator(node.op);
  DLA_CHECK(def != nullptr && def->evaluate != nullptr, "cannot evaluate ", node.op);
  if (def->kind != OpKind::kContraction || !IsHalf(inputs[0].type)) {
    return def->evaluate(node, inputs, outputs);
  }
  std::vector<Tensor> wide;
  wide.reserve(inputs.size());
  std::vector<TensorView> views;
  for (const TensorView& input : inputs) {
    if (!input.present()) {
      views.emplace_back();
      continue;
    }
    wide.push_back(ConvertTensor(input, ElementType::kF32));
    views.push_back(wide.back().view());
  }
  Tensor result = Tensor::Zeros({ElementType::kF32, outputs[0].shape});
  DLA_RETURN_IF_ERROR(def->evaluate(node, views, std::span(&result, 1)));
  outputs[0] = ConvertTensor(result.view(), outputs[0].type);
  return {};
}

}  // namespace dla::ir
