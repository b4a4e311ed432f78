// Pad with a constant: the output walks beyond its input, and what is clipped reads as the value.
#include "ir/kernels/strided.h"
#include "ir/nest_builder.h"
#include "ir/ops/ops.h"
#include "ir/rewriter.h"
#include "support/checked.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"mode", AttributeKind::kString, "constant", false, ""},
    {"pads", AttributeKind::kInts, "", false, "an input since opset 11"},
    {"value", AttributeKind::kFloat, "0", false, "an input since opset 11"},
};

struct Padding {
  std::vector<int64_t> begin, end;
  float value = 0;
};

Result<Padding> Resolve(const Graph& graph, const Node& node) {
  const Value& input = InputValue(graph, node, 0);
  const std::string mode = GetString(node.attributes, "mode", "constant");
  if (mode != "constant") {
    return Unsupported("attribute 'mode' is '", mode, "'; only constant is supported");
  }
  if (HasInput(node, 3)) return Unsupported("input 'axes' is not supported");
  Padding padding;
  std::vector<int64_t> pads = GetInts(node.attributes, "pads");
  padding.value = GetFloat(node.attributes, "value", 0);
  if (HasInput(node, 1)) {
    DLA_ASSIGN_OR_RETURN(pads, RequireInts(graph, node, 1, "pads"));
  }
  if (HasInput(node, 2)) {
    const auto value = ConstantScalar(graph, node.inputs[2]);
    if (!value) return Unsupported("input 'constant_value' must be a constant with one element");
    padding.value = static_cast<float>(*value);
  }
  const size_t rank = input.shape.size();
  if (pads.size() != 2 * rank) {
    return Malformed("there are ", pads.size(), " pads, the input has rank ", rank);
  }
  for (size_t i = 0; i < rank; ++i) {
    constexpr int64_t kMost = int64_t{1} << 31;
    if (pads[i] < -input.shape[i] || pads[i + rank] < -input.shape[i] || pads[i] > kMost ||
        pads[i + rank] > kMost || input.shape[i] + pads[i] + pads[i + rank] < 0) {
      return Malformed("axis ", i, " of extent ", input.shape[i], " is padded by ", pads[i],
                       " and ", pads[i + rank]);
    }
    padding.begin.push_back(pads[i]);
    padding.end.push_back(pads[i + rank]);
  }
  return padding;
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const Padding padding, Resolve(graph, node));
  if (input.type != ElementType::kF32) {
    return Unsupported("padding ", TypeName(input.type), " is not supported, only f32");
  }
  Shape shape = input.shape;
  for (size_t i = 0; i < shape.size(); ++i) shape[i] += padding.begin[i] + padding.end[i];
  outputs->push_back({input.type, shape});
  return {};
}

Status Lower(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(const Padding padding, Resolve(rewriter->graph(), node));
  std::vector<int64_t> pads = padding.begin;
  pads.insert(pads.end(), padding.end.begin(), padding.end.end());
  rewriter->Finish("Pad", {node.inputs[0]}, {{"pads", pads}, {"value", padding.value}},
                   node.outputs[0]);
  return {};
}

// What of the input the output shows, and where; negative pads cut.
Status Evaluate(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  const std::vector<int64_t> pads = GetInts(node.attributes, "pads");
  const float value = GetFloat(node.attributes, "value", 0);
  Tensor& output = outputs[0];
  for (int64_t i = 0; i < output.elements(); ++i) output.f32()[i] = value;
  const Shape from = DenseStrides(inputs[0].shape);
  const Shape to = DenseStrides(output.shape);
  Shape shared = inputs[0].shape;
  int64_t from_offset = 0, to_offset = 0;
  for (size_t a = 0; a < shared.size(); ++a) {
    const int64_t cut_begin = std::max<int64_t>(0, -pads[a]);
    const int64_t cut_end = std::max<int64_t>(0, -pads[a + shared.size()]);
    shared[a] = std::max<int64_t>(0, shared[a] - cut_begin - cut_end);
    from_offset += cut_begin * from[a];
    to_offset += std::max<int64_t>(0, pads[a]) * to[a];
  }
  CopyStrided(shared, 4, inputs[0].bytes + from_offset * 4, from,
              output.bytes.data() + to_offset * 4, to);
  return {};
}

Result<Nest> PadNest(const Graph& graph, const Node& node) {
  const Value& input = InputValue(graph, node, 0);
  const Value& output = graph.values[Idx(node.outputs[0])];
  const std::vector<int64_t> pads = GetInts(node.attributes, "pads");
  const float value = GetFloat(node.attributes, "value", 0);
  const size_t rank = input.shape.size();
  NestBuilder builder(graph, node, Anchor::kVector);
  std::vector<NestBuilder::OutputAxis> axes;
  std::vector<int64_t> strides;
  for (size_t i = 0; i < rank; ++i) {
    const bool padded = pads[i] != 0 || pads[i + rank] != 0;
    axes.push_back({-1, builder.AddNumberedLoop("d", i, output.shape[i], padded)});
    strides.push_back(padded ? 0 : input.storage.strides[i]);
  }
  const int operand = builder.AddOperand(node.inputs[0], OperandClass::kVector, strides);
  for (size_t i = 0; i < rank; ++i) {
    if (pads[i] == 0 && pads[i + rank] == 0) continue;
    builder.AddWindowAxis(operand,
                          {.terms = {{axes[i].inner, 1}},
                           .offset = -pads[i],
                           .bound = input.shape[i],
                           .stride = input.storage.strides[i]},
                          value);
  }
  builder.AddFusedAndOutput(axes, OperandClass::kVector);
  builder.EmitLoads(0);
  builder.EmitFused(builder.Emit(MicroOp::kCopy, builder.Loaded(operand)));
  return builder.Build();
}

}  // namespace

const OpDef kPadOp = {
    .name = "Pad",
    .kind = OpKind::kVectorMove,
    .first_opset = 2,
    .max_file_inputs = 4,
    .attributes = kAttributes,
    .note = "mode constant, f32",
    .infer = Infer,
    .evaluate = Evaluate,
    .lower = Lower,
    .nest = PadNest,
};

}  // namespace dla::ir
