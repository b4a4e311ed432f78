// Pad with a constant: the output walks beyond its input, and what is clipped reads as the value.
// The other modes pick entries of the input again.
#include <algorithm>
#include <cmath>

#include "ir/kernels/strided.h"
#include "ir/nest_builder.h"
#include "ir/ops/ops.h"
#include "ir/ops/pick.h"
#include "ir/rewriter.h"
#include "support/checked.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"mode", AttributeKind::kString, "constant", false, ""},
    {"paddings", AttributeKind::kInts, "", false, "pads before opset 2"},
    {"pads", AttributeKind::kInts, "", false, "an input since opset 11"},
    {"value", AttributeKind::kFloat, "0", false, "an input since opset 11"},
};

struct Padding {
  std::vector<int64_t> begin, end;
  std::string mode;
  Attribute value = 0.0f;  // of the input's kind
};

double NumberOf(const AttributeMap& attributes) {
  const auto it = attributes.find("value");
  if (it == attributes.end()) return 0;
  if (const int64_t* integer = std::get_if<int64_t>(&it->second)) {
    return static_cast<double>(*integer);
  }
  return static_cast<double>(std::get<float>(it->second));
}

Status ReadValue(const Graph& graph, const Node& node, Padding* padding) {
  padding->value = GetFloat(node.attributes, "value", 0);
  if (!HasInput(node, 2)) return {};
  const TensorView view = ConstantView(graph, node.inputs[2]);
  if (!view.present() || view.elements() != 1 || !IsReadable(view.type)) {
    return Unsupported("input 'constant_value' must be a constant with one element");
  }
  if (IsFloat(view.type)) {
    padding->value = static_cast<float>(ReadDouble(view, 0));
  } else {
    padding->value = ReadInt(view, 0);
  }
  return {};
}

// Pads of all axes, begins then ends.
Result<std::vector<int64_t>> ReadPads(const Graph& graph, const Node& node, size_t rank) {
  // Before opset 11 an attribute; the first versions called it otherwise.
  std::vector<int64_t> pads =
      GetInts(node.attributes, "pads", GetInts(node.attributes, "paddings"));
  if (HasInput(node, 1)) {
    DLA_ASSIGN_OR_RETURN(pads, RequireInts(graph, node, 1, "pads"));
  }
  std::vector<int64_t> axes;
  if (HasInput(node, 3)) {
    DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> named, RequireInts(graph, node, 3, "axes"));
    DLA_RETURN_IF_ERROR(NormalizeAxes(named, static_cast<int64_t>(rank)).status());
    for (const int64_t axis : named) {
      axes.push_back(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
    }
  } else {
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  }
  if (pads.size() != 2 * axes.size()) {
    return Malformed("there are ", pads.size(), " pads for ", axes.size(), " axes");
  }
  std::vector<int64_t> all(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    all[Idx(axes[i])] = pads[i];
    all[Idx(axes[i]) + rank] = pads[i + axes.size()];
  }
  return all;
}

Result<Padding> Resolve(const Graph& graph, const Node& node) {
  const Value& input = InputValue(graph, node, 0);
  Padding padding;
  padding.mode = GetString(node.attributes, "mode", "constant");
  const size_t rank = input.shape.size();
  DLA_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, ReadPads(graph, node, rank));
  DLA_RETURN_IF_ERROR(ReadValue(graph, node, &padding));
  const bool known = padding.mode == "constant" || padding.mode == "reflect" ||
                     padding.mode == "edge" || padding.mode == "wrap";
  if (!known) return Malformed("attribute 'mode' is '", padding.mode, "'");
  for (size_t i = 0; i < rank; ++i) {
    constexpr int64_t kMost = int64_t{1} << 31;
    const int64_t extent = input.shape[i];
    if (pads[i] < -extent || pads[i + rank] < -extent || pads[i] > kMost ||
        pads[i + rank] > kMost || extent + pads[i] + pads[i + rank] < 0) {
      return Malformed("axis ", i, " of extent ", extent, " is padded by ", pads[i], " and ",
                       pads[i + rank]);
    }
    const bool grows = pads[i] > 0 || pads[i + rank] > 0;
    if (padding.mode != "constant" && grows && extent == 0) {
      return Malformed("axis ", i, " is empty, so there is nothing to pad it with");
    }
    padding.begin.push_back(pads[i]);
    padding.end.push_back(pads[i + rank]);
  }
  return padding;
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  DLA_ASSIGN_OR_RETURN(const Padding padding, Resolve(graph, node));
  Shape shape = input.shape;
  for (size_t i = 0; i < shape.size(); ++i) shape[i] += padding.begin[i] + padding.end[i];
  outputs->push_back({input.type, shape});
  return {};
}

// The entry of an axis that stands at `at`, which may lie outside.
int64_t Source(const std::string& mode, int64_t at, int64_t extent) {
  if (mode == "edge") return std::clamp<int64_t>(at, 0, extent - 1);
  const int64_t period = mode == "wrap" ? extent : std::max<int64_t>(1, 2 * extent - 2);
  const int64_t place = (at % period + period) % period;
  return place < extent ? place : period - place;
}

Status Lower(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(const Padding padding, Resolve(rewriter->graph(), node));
  const Shape shape = InputValue(rewriter->graph(), node, 0).shape;
  if (padding.mode == "constant") {
    const float* value = std::get_if<float>(&padding.value);
    if (value != nullptr && std::isnan(*value)) {
      return Unsupported("it pads with NaN; numbers are supported");
    }
    std::vector<int64_t> pads = padding.begin;
    pads.insert(pads.end(), padding.end.begin(), padding.end.end());
    rewriter->Finish("Pad", {node.inputs[0]}, {{"pads", pads}, {"value", padding.value}},
                     node.outputs[0]);
    return {};
  }
  ValueId value = node.inputs[0];
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (padding.begin[axis] == 0 && padding.end[axis] == 0) continue;
    DLA_RETURN_IF_ERROR(CheckPicked(shape[axis] + padding.begin[axis] + padding.end[axis]));
    std::vector<int64_t> entries;
    for (int64_t at = -padding.begin[axis]; at < shape[axis] + padding.end[axis]; ++at) {
      entries.push_back(Source(padding.mode, at, shape[axis]));
    }
    DLA_ASSIGN_OR_RETURN(value, Pick(rewriter, value, axis, entries));
  }
  const Shape result = rewriter->value(node.outputs[0]).shape;
  return Reshaped(rewriter, value, result, node.outputs[0]).status();
}

// What of the input the output shows, and where; negative pads cut.
Status Evaluate(const Node& node, std::span<const TensorView> inputs, std::span<Tensor> outputs) {
  const std::vector<int64_t> pads = GetInts(node.attributes, "pads");
  Tensor& output = outputs[0];
  const double value = NumberOf(node.attributes);
  for (int64_t i = 0; i < output.elements(); ++i) WriteDouble(&output, i, value);
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
  const int64_t bytes = TypeBytes(output.type, 1);
  CopyStrided(shared, bytes, inputs[0].bytes + from_offset * bytes, from,
              output.bytes.data() + to_offset * bytes, to);
  return {};
}

Result<Nest> PadNest(const Graph& graph, const Node& node) {
  const Value& input = InputValue(graph, node, 0);
  const Value& output = graph.values[Idx(node.outputs[0])];
  const std::vector<int64_t> pads = GetInts(node.attributes, "pads");
  const double value = NumberOf(node.attributes);
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
    .max_file_inputs = 4,
    .attributes = kAttributes,
    .note = "constant pads and value",
    .infer = Infer,
    .evaluate = Evaluate,
    .lower = Lower,
    .nest = PadNest,
};

}  // namespace dla::ir
