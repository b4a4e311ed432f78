// ConvTranspose, without scattering: the output entries whose place modulo the stride is the same
// are an ordinary convolution of the input with a part of the kernel, and lie `stride` apart. One
// convolution for each such phase writes its entries where they belong (Interleave).
#include <algorithm>
#include <numeric>

#include "ir/kernels/strided.h"
#include "ir/ops/ops.h"
#include "ir/ops/pick.h"
#include "ir/ops/window.h"
#include "ir/rewriter.h"
#include "ir/view.h"
#include "support/checked.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"auto_pad", AttributeKind::kString, "NOTSET", false, "NOTSET, SAME_UPPER, SAME_LOWER, VALID"},
    {"dilations", AttributeKind::kInts, "1s", false, ""},
    {"group", AttributeKind::kInt, "1", false, ""},
    {"kernel_shape", AttributeKind::kInts, "of the weight", false, ""},
    {"output_padding", AttributeKind::kInts, "0s", false, ""},
    {"output_shape", AttributeKind::kInts, "", false, "decides the padding"},
    {"pads", AttributeKind::kInts, "0s", false, "begins, then ends"},
    {"strides", AttributeKind::kInts, "1s", false, ""},
};
constexpr AttributeDef kInterleaveAttributes[] = {
    {"axes_steps", AttributeKind::kInts, "", true, "distance of neighbours of an operand, an axis"},
    {"phases", AttributeKind::kInts, "", true, "where each operand begins, an axis"},
    {"shape", AttributeKind::kInts, "", true, "of the output"},
};

constexpr int64_t kMostExtent = (int64_t{1} << 31) - 1;

struct Geometry {
  int64_t groups = 1, in_channels = 1, out_channels = 1;  // channels of a group
  std::vector<int64_t> input, kernel, stride, dilation, pad, output;
};

Result<std::vector<int64_t>> PerAxis(const Node& node, const char* name, size_t entries,
                                     int64_t fallback, int64_t least) {
  std::vector<int64_t> values =
      GetInts(node.attributes, name, std::vector<int64_t>(entries, fallback));
  if (values.size() != entries) {
    return Malformed("attribute '", name, "' has ", values.size(), " entries, not ", entries);
  }
  for (const int64_t value : values) {
    if (value < least || value > kMostExtent) {
      return Malformed("attribute '", name, "' has the entry ", value);
    }
  }
  return values;
}

// Padding at the beginning and extent of the output along axis i.
Status ResolveAxis(const Node& node, size_t i, const std::vector<int64_t>& pads,
                   const std::vector<int64_t>& extra, Geometry* g) {
  const std::string mode = GetString(node.attributes, "auto_pad", "NOTSET");
  const auto steps = CheckedMul(g->stride[i], g->input[i] - 1);
  const auto reach = CheckedMul(g->kernel[i] - 1, g->dilation[i]);
  if (!steps || !reach || *steps > kMostExtent || *reach > kMostExtent) {
    return Malformed("the output of spatial axis ", i, " is too large");
  }
  const int64_t whole = *steps + extra[i] + *reach + 1;
  const std::vector<int64_t> shape = GetInts(node.attributes, "output_shape");
  const bool padding_given = shape.empty() && mode != "SAME_UPPER" && mode != "SAME_LOWER";
  if (padding_given) {
    g->pad[i] = pads[i];
    g->output[i] = whole - pads[i] - pads[i + g->input.size()];
  } else {
    // The padding that makes the output as large as wanted; the odd entry goes to one end. Where
    // `auto_pad` would have to add entries, there is no padding (so does ONNX Runtime).
    g->output[i] = shape.empty() ? std::min(whole, g->input[i] * g->stride[i])
                                 : shape[i + shape.size() - g->input.size()];
  }
  if (g->output[i] < 1 || g->output[i] > kMostExtent) {
    return Malformed("the output of spatial axis ", i, " has ", g->output[i], " entries");
  }
  if (!padding_given) {
    const int64_t total = std::max<int64_t>(0, whole - g->output[i]);
    g->pad[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
  }
  return {};
}

Result<Geometry> Resolve(const Node& node, const Shape& input, const Shape& weight) {
  DLA_RETURN_IF_ERROR(CheckSpatialRank(input));
  Geometry g;
  g.groups = GetInt(node.attributes, "group", 1);
  if (weight.size() != input.size() || weight[0] != input[1] || g.groups < 1 ||
      input[1] % g.groups != 0 || g.groups > std::max<int64_t>(1, input[1])) {
    return Malformed("a weight of shape ", ShapeText(weight), " does not fit an input of shape ",
                     ShapeText(input), " in ", g.groups, " groups");
  }
  g.in_channels = weight[0] / g.groups;
  g.out_channels = weight[1];
  g.input = Spatial(input);
  g.kernel = Spatial(weight);
  const size_t axes = g.input.size();
  if (node.attributes.contains("kernel_shape") &&
      GetInts(node.attributes, "kernel_shape") != g.kernel) {
    return Malformed("attribute 'kernel_shape' does not fit the weight");
  }
  for (const int64_t extent : g.kernel) {
    if (extent < 1) return Malformed("a kernel extent is ", extent);
  }
  DLA_ASSIGN_OR_RETURN(g.stride, PerAxis(node, "strides", axes, 1, 1));
  DLA_ASSIGN_OR_RETURN(g.dilation, PerAxis(node, "dilations", axes, 1, 1));
  DLA_ASSIGN_OR_RETURN(const auto pads, PerAxis(node, "pads", 2 * axes, 0, 0));
  DLA_ASSIGN_OR_RETURN(const auto extra, PerAxis(node, "output_padding", axes, 0, 0));
  const size_t given = GetInts(node.attributes, "output_shape").size();
  if (given != 0 && given != axes && given != axes + 2) {
    return Malformed("attribute 'output_shape' has ", given, " entries, not ", axes);
  }
  g.pad.assign(axes, 0);
  g.output.assign(axes, 0);
  for (size_t i = 0; i < axes; ++i) DLA_RETURN_IF_ERROR(ResolveAxis(node, i, pads, extra, &g));
  return g;
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Value& input = InputValue(graph, node, 0);
  const Value& weight = InputValue(graph, node, 1);
  DLA_ASSIGN_OR_RETURN(const Geometry g, Resolve(node, input.shape, weight.shape));
  if (HasInput(node, 2) && InputValue(graph, node, 2).shape != Shape{g.groups * g.out_channels}) {
    return Malformed("the bias has shape ", ShapeText(InputValue(graph, node, 2).shape),
                     ", there are ", g.groups * g.out_channels, " output channels");
  }
  Shape shape = {input.shape[0], g.groups * g.out_channels};
  shape.insert(shape.end(), g.output.begin(), g.output.end());
  outputs->push_back({input.type, shape});
  return {};
}

// One phase along one axis: outputs phase, phase + stride, ... take the kernel entries `taps`, last
// first, of the input cut to [first, first + size) and padded.
struct AxisPhase {
  int64_t phase = 0, outputs = 0;
  std::vector<int64_t> taps;
  int64_t dilation = 1;
  int64_t first = 0, size = 0, pad_begin = 0, pad_end = 0;
};

AxisPhase PhaseOf(const Geometry& g, size_t i, int64_t phase) {
  AxisPhase p;
  p.phase = phase;
  p.outputs = CeilDiv(g.output[i] - phase, g.stride[i]);
  const int64_t at = phase + g.pad[i];
  const int64_t common = std::gcd(g.stride[i], g.dilation[i]);
  p.dilation = g.dilation[i] / common;
  for (int64_t k = 0; k < g.kernel[i]; ++k) {
    if ((at - k * g.dilation[i]) % g.stride[i] == 0) p.taps.push_back(k);
  }
  if (p.taps.empty()) return p;
  // Output q meets entry q + shift - t * dilation of the input at tap t.
  const int64_t shift = (at - p.taps[0] * g.dilation[i]) / g.stride[i];
  std::reverse(p.taps.begin(), p.taps.end());
  const int64_t lowest = shift - static_cast<int64_t>(p.taps.size() - 1) * p.dilation;
  const int64_t end = p.outputs + shift;  // behind the highest entry
  p.first = std::clamp<int64_t>(lowest, 0, g.input[i]);
  const int64_t last = std::clamp<int64_t>(end, 0, g.input[i]);
  p.size = std::max<int64_t>(0, last - p.first);
  p.pad_begin = p.first - lowest;
  p.pad_end = end - p.first - p.size;
  return p;
}

// The weight [G * C, M, k...] as that of a convolution, [G * M, C, k...].
Result<ValueId> SwapChannels(Rewriter* rewriter, ValueId weight, const Geometry& g) {
  Shape split = {g.groups, g.in_channels, g.out_channels};
  split.insert(split.end(), g.kernel.begin(), g.kernel.end());
  std::vector<int64_t> perm = {0, 2, 1};
  for (size_t i = 3; i < split.size(); ++i) perm.push_back(static_cast<int64_t>(i));
  Shape joined = {g.groups * g.out_channels, g.in_channels};
  joined.insert(joined.end(), g.kernel.begin(), g.kernel.end());
  DLA_ASSIGN_OR_RETURN(weight, Reshaped(rewriter, weight, split));
  DLA_ASSIGN_OR_RETURN(weight, rewriter->Add("Transpose", {weight}, {{"perm", perm}}));
  return Reshaped(rewriter, weight, joined);
}

class PhaseWriter {
 public:
  PhaseWriter(Rewriter* rewriter, const Node& node, const Geometry& g)
      : rewriter_(rewriter), node_(node), g_(g), shape_(rewriter->value(node.outputs[0]).shape) {}

  Status Run() {
    DLA_ASSIGN_OR_RETURN(weight_, SwapChannels(rewriter_, node_.inputs[1], g_));
    std::vector<AxisPhase> phase(g_.input.size());
    DLA_RETURN_IF_ERROR(ForAxes(0, &phase));
    std::vector<int64_t> steps = {1, 1};
    steps.insert(steps.end(), g_.stride.begin(), g_.stride.end());
    rewriter_->Finish("Interleave", parts_,
                      {{"axes_steps", steps}, {"phases", phases_}, {"shape", shape_}},
                      node_.outputs[0]);
    return {};
  }

 private:
  Status ForAxes(size_t axis, std::vector<AxisPhase>* phase) {
    if (axis == phase->size()) return AddPart(*phase);
    for (int64_t p = 0; p < std::min(g_.stride[axis], g_.output[axis]); ++p) {
      (*phase)[axis] = PhaseOf(g_, axis, p);
      DLA_RETURN_IF_ERROR(ForAxes(axis + 1, phase));
    }
    return {};
  }

  Status AddPart(const std::vector<AxisPhase>& phase) {
    constexpr size_t kMostParts = 1024;
    if (parts_.size() >= kMostParts) {
      return Unsupported("the strides make more than ", kMostParts, " convolutions of it");
    }
    const bool empty = std::any_of(phase.begin(), phase.end(), [](const AxisPhase& p) {
      return p.taps.empty() || p.size == 0;
    });
    DLA_ASSIGN_OR_RETURN(const ValueId part, empty ? Bare(phase) : Convolution(phase));
    parts_.push_back(part);
    phases_.insert(phases_.end(), {0, 0});
    for (const AxisPhase& p : phase) phases_.push_back(p.phase);
    return {};
  }

  Shape PartShape(const std::vector<AxisPhase>& phase) const {
    Shape shape = {shape_[0], shape_[1]};
    for (const AxisPhase& p : phase) shape.push_back(p.outputs);
    return shape;
  }

  // No kernel entry meets these outputs: the bias, or zeros.
  Result<ValueId> Bare(const std::vector<AxisPhase>& phase) {
    const Shape shape = PartShape(phase);
    ValueId value;
    if (HasInput(node_, 2)) {
      Shape channel(shape.size() - 1, 1);
      channel[0] = shape[1];
      DLA_ASSIGN_OR_RETURN(value, Reshaped(rewriter_, node_.inputs[2], channel));
    } else {
      const ElementType type = rewriter_->value(node_.outputs[0]).type;
      value = rewriter_->AddConstant(Tensor::Zeros({type, {}}), "zero");
    }
    return rewriter_->Add("Broadcast", {value}, {{"shape", shape}});
  }

  Result<ValueId> Convolution(const std::vector<AxisPhase>& phase) {
    ValueId input = node_.inputs[0], weight = weight_;
    Shape sizes = rewriter_->value(input).shape;
    Shape starts(sizes.size(), 0);
    const Shape steps(sizes.size(), 1);
    std::vector<int64_t> begin, end, dilation;
    for (size_t i = 0; i < phase.size(); ++i) {
      starts[i + 2] = phase[i].first;
      sizes[i + 2] = phase[i].size;
      begin.push_back(phase[i].pad_begin);
      end.push_back(phase[i].pad_end);
      dilation.push_back(phase[i].dilation);
      DLA_ASSIGN_OR_RETURN(weight, PickTaps(weight, i + 2, phase[i].taps));
    }
    if (sizes != rewriter_->value(input).shape) {
      DLA_ASSIGN_OR_RETURN(
          input, rewriter_->Add("StridedSlice", {input},
                                {{"sizes", sizes}, {"starts", starts}, {"steps", steps}}));
    }
    begin.insert(begin.end(), end.begin(), end.end());
    std::vector<ValueId> inputs = {input, weight};
    if (HasInput(node_, 2)) {
      DLA_ASSIGN_OR_RETURN(inputs.emplace_back(), AccumulatorBias(rewriter_, node_.inputs[2]));
    }
    const std::vector<int64_t> ones(phase.size(), 1);
    return rewriter_->Add(
        "Conv", inputs,
        {{"dilations", dilation}, {"group", g_.groups}, {"pads", begin}, {"strides", ones}});
  }

  // Constants are reversed by a negative step when they are folded.
  Result<ValueId> PickTaps(ValueId weight, size_t axis, const std::vector<int64_t>& taps) {
    const Shape shape = rewriter_->value(weight).shape;
    if (shape[axis] == 1) return weight;
    if (rewriter_->value(node_.inputs[1]).constant == nullptr) {
      return Pick(rewriter_, weight, axis, taps);
    }
    Shape starts(shape.size(), 0), steps(shape.size(), 1), sizes = shape;
    starts[axis] = taps[0];
    steps[axis] = taps.size() > 1 ? taps[1] - taps[0] : 1;
    sizes[axis] = static_cast<int64_t>(taps.size());
    return rewriter_->Add("StridedSlice", {weight},
                          {{"sizes", sizes}, {"starts", starts}, {"steps", steps}});
  }

  Rewriter* rewriter_;
  const Node& node_;
  const Geometry& g_;
  Shape shape_;
  ValueId weight_ = kNoValue;
  std::vector<ValueId> parts_;
  std::vector<int64_t> phases_;
};

Status Lower(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(const Geometry g, Resolve(node, InputValue(rewriter->graph(), node, 0).shape,
                                                 InputValue(rewriter->graph(), node, 1).shape));
  return PhaseWriter(rewriter, node, g).Run();
}

Status InferInterleave(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  const Shape shape = GetInts(node.attributes, "shape");
  const size_t rank = shape.size();
  if (!CheckedElementCount(shape) || GetInts(node.attributes, "axes_steps").size() != rank ||
      GetInts(node.attributes, "phases").size() != rank * node.inputs.size()) {
    return Malformed("the attributes do not fit");
  }
  int64_t elements = 0;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    const Value& part = InputValue(graph, node, static_cast<int>(k));
    if (part.shape.size() != rank) return Malformed("operand ", k, " has another rank");
    if (part.type != InputValue(graph, node, 0).type) {
      return Malformed("operand ", k, " is ", TypeName(part.type), ", others are ",
                       TypeName(InputValue(graph, node, 0).type));
    }
    for (size_t i = 0; i < rank; ++i) {
      const int64_t phase = GetInts(node.attributes, "phases")[k * rank + i];
      const int64_t step = GetInts(node.attributes, "axes_steps")[i];
      if (phase < 0 || step < 1 || phase + (part.shape[i] - 1) * step >= shape[i]) {
        return Malformed("operand ", k, " leaves the result");
      }
    }
    elements += ElementCount(part.shape);
  }
  if (elements != ElementCount(shape)) return Malformed("the operands do not fill the result");
  outputs->push_back({InputValue(graph, node, 0).type, shape});
  return {};
}

Status EvaluateInterleave(const Node& node, std::span<const TensorView> inputs,
                          std::span<Tensor> outputs) {
  Tensor& output = outputs[0];
  const int64_t bytes = TypeBytes(output.type, 1);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Storage part =
        InterleavePart(node, {0, 0, DenseStrides(output.shape)}, static_cast<int>(k));
    CopyStrided(inputs[k].shape, bytes, inputs[k].bytes, DenseStrides(inputs[k].shape),
                output.bytes.data() + part.offset * bytes, part.strides);
  }
  return {};
}

constexpr OpDef TransposeRow() {
  OpDef row;
  row.name = "ConvTranspose";
  row.min_inputs = 2;
  row.max_inputs = 3;
  row.attributes = kAttributes;
  row.note = "one to three spatial axes; a convolution for each phase of the stride";
  row.infer = Infer;
  row.lower = Lower;
  return row;
}

constexpr OpDef InterleaveRow() {
  OpDef row;
  row.name = "Interleave";
  row.kind = OpKind::kView;
  row.onnx = false;
  row.max_inputs = OpDef::kVariadic;
  row.attributes = kInterleaveAttributes;
  row.note = "operands side by side in steps; what ConvTranspose ends with";
  row.infer = InferInterleave;
  row.evaluate = EvaluateInterleave;
  return row;
}

constexpr OpDef kRows[] = {TransposeRow(), InterleaveRow()};

}  // namespace

std::span<const OpDef> ConvTransposeRows() { return kRows; }

}  // namespace dla::ir
