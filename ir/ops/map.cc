#include "ir/ops/map.h"

#include "ir/kernels/micro.h"
#include "ir/kernels/strided.h"
#include "ir/nest_builder.h"
#include "ir/ops/ops.h"
#include "ir/rewriter.h"

namespace dla::ir {

Result<Shape> BroadcastOperands(const Graph& graph, const Node& node) {
  Shape result = InputValue(graph, node, 0).shape;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Value& other = InputValue(graph, node, static_cast<int>(i));
    const auto shape = BroadcastShapes(result, other.shape);
    if (!shape) {
      return Malformed("the operands have shapes ", ShapeText(result), " and ",
                       ShapeText(other.shape), ", which do not broadcast");
    }
    result = *shape;
  }
  return result;
}

Status CheckOldBroadcast(const Node& node) {
  for (const AttributeDef& def : kOldBroadcast) {
    if (node.opset >= 7 && node.attributes.contains(std::string(def.name))) {
      return Malformed("attribute '", def.name, "' exists before opset 7 only");
    }
  }
  return {};
}

Result<Shape> AlignedShape(const Graph& graph, const Node& node) {
  const Value& first = InputValue(graph, node, 0);
  const Value& second = InputValue(graph, node, 1);
  const auto rank = static_cast<int64_t>(first.shape.size());
  DLA_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(GetInt(node.attributes, "axis", 0), rank));
  bool fits = axis + static_cast<int64_t>(second.shape.size()) <= rank;
  for (size_t i = 0; fits && i < second.shape.size(); ++i) {
    fits = second.shape[i] == 1 || second.shape[i] == first.shape[Idx(axis) + i];
  }
  if (!fits) {
    return Malformed("the second operand of shape ", ShapeText(second.shape),
                     " does not stand at axis ", axis, " of ", ShapeText(first.shape));
  }
  return first.shape;
}

Status LowerAligned(Rewriter* rewriter, const Node& node) {
  ValueId second = node.inputs[1];
  if (node.attributes.contains("axis")) {
    const size_t rank = rewriter->value(node.inputs[0]).shape.size();
    DLA_ASSIGN_OR_RETURN(const int64_t axis, NormalizeAxis(GetInt(node.attributes, "axis", 0),
                                                           static_cast<int64_t>(rank)));
    Shape shape = rewriter->value(second).shape;
    shape.resize(rank - Idx(axis), 1);
    DLA_ASSIGN_OR_RETURN(second, rewriter->Add("View", {second}, {{"shape", shape}}));
  }
  rewriter->Finish(node.op, {node.inputs[0], second}, {}, node.outputs[0]);
  return {};
}

Status InferMap(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const ElementType type = InputValue(graph, node, 0).type;
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    const Value& other = InputValue(graph, node, static_cast<int>(i));
    if (other.type != type) {
      return Malformed("the operands have types ", TypeName(type), " and ", TypeName(other.type));
    }
  }
  DLA_ASSIGN_OR_RETURN(Shape shape, BroadcastOperands(graph, node));
  outputs->push_back({type, std::move(shape)});
  return {};
}

Status InferTest(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  DLA_RETURN_IF_ERROR(InferMap(graph, node, outputs));
  outputs->back().type = ElementType::kBool;
  return {};
}

MicroProgram ProgramOf(const Node& node, std::span<const ElementType> operands) {
  MicroProgram program;
  MicroWriter writer(&program);
  std::vector<int> arguments;
  for (size_t i = 0; i < operands.size(); ++i) {
    arguments.push_back(writer.Load(static_cast<int>(i), operands[i]));
  }
  FindOperator(node.op)->emit(node.attributes, arguments, &writer);
  return program;
}

Status EvaluateMap(const Node& node, std::span<const TensorView> inputs,
                   std::span<Tensor> outputs) {
  Tensor& output = outputs[0];
  if (output.elements() == 0) return {};
  std::vector<ElementType> types;
  std::vector<MicroArray> arrays;
  std::vector<const uint8_t*> sources;
  for (const TensorView& input : inputs) {
    if (!input.present()) break;  // absent operands stand last
    types.push_back(input.type);
    arrays.push_back(
        {input.type, BroadcastStrides(input.shape, DenseStrides(input.shape), output.shape)});
    sources.push_back(input.bytes);
  }
  RunMicroProgram(ProgramOf(node, types), output.shape, 0, arrays, sources,
                  {output.type, DenseStrides(output.shape)}, output.bytes.data());
  return {};
}

Result<Nest> MapNest(const Graph& graph, const Node& node) {
  NestBuilder builder(graph, node, Anchor::kVector);
  std::vector<NestBuilder::OutputAxis> axes;
  const Shape& shape = graph.values[Idx(node.outputs[0])].shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    axes.push_back({-1, builder.AddNumberedLoop("d", i, shape[i])});
  }
  const size_t own = std::min(node.inputs.size(), Idx(FindOperator(node.op)->max_inputs));
  std::map<ValueId, int> operands;
  for (size_t i = 0; i < own; ++i) {
    const ValueId value = node.inputs[i];
    if (ImmediateOf(graph, value)) continue;
    const auto [it, is_new] = operands.try_emplace(value, 0);
    if (is_new) {
      it->second =
          builder.AddOperand(value, OperandClass::kVector, builder.OutputStrides(value, axes));
    }
    builder.BindInput(static_cast<int>(i), it->second);
  }
  builder.AddFusedAndOutput(axes, OperandClass::kVector);
  builder.EmitLoads(0);
  std::vector<int> arguments;
  for (size_t i = 0; i < own; ++i) arguments.push_back(builder.InputValue(static_cast<int>(i)));
  MicroWriter writer = builder.writer();
  builder.EmitFused(FindOperator(node.op)->emit(node.attributes, arguments, &writer));
  return builder.Build();
}

}  // namespace dla::ir
