// GridSample: pixels of the input at computed places. Each of the pixels around a place is a Take;
// their weights are element-wise work.
#include <algorithm>

#include "ir/ops/ops.h"
#include "ir/ops/pick.h"
#include "ir/rewriter.h"

namespace dla::ir {
namespace {

constexpr AttributeDef kAttributes[] = {
    {"align_corners", AttributeKind::kInt, "0", false, ""},
    {"mode", AttributeKind::kString, "bilinear", false,
     "bilinear (linear), nearest, bicubic (cubic)"},
    {"padding_mode", AttributeKind::kString, "zeros", false, "zeros, border, reflection"}};

struct Modes {
  bool nearest = false, cubic = false;
  bool border = false, reflection = false;  // neither: zeros
  bool align_corners = false;
};

Result<Modes> ReadModes(const Node& node) {
  const std::string mode = GetString(node.attributes, "mode", "bilinear");
  const std::string padding = GetString(node.attributes, "padding_mode", "zeros");
  Modes modes = {.nearest = mode == "nearest",
                 .cubic = mode == "bicubic" || mode == "cubic",
                 .border = padding == "border",
                 .reflection = padding == "reflection",
                 .align_corners = GetInt(node.attributes, "align_corners", 0) != 0};
  if (!modes.nearest && !modes.cubic && mode != "bilinear" && mode != "linear") {
    return Malformed("attribute 'mode' is '", mode, "'");
  }
  if (!modes.border && !modes.reflection && padding != "zeros") {
    return Malformed("attribute 'padding_mode' is '", padding, "'");
  }
  return modes;
}

Status Infer(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) {
  DLA_ASSIGN_OR_RETURN(const Modes modes, ReadModes(node));
  const Value& input = InputValue(graph, node, 0);
  const Value& grid = InputValue(graph, node, 1);
  const size_t rank = input.shape.size();
  if (rank < 3 || grid.shape.size() != rank || grid.shape[0] != input.shape[0] ||
      grid.shape.back() != static_cast<int64_t>(rank) - 2) {
    return Malformed("a grid of shape ", ShapeText(grid.shape), " does not fit an input of shape ",
                     ShapeText(input.shape));
  }
  if (rank > 5 || (modes.cubic && rank != 4)) {
    return Unsupported("an input of rank ", rank, " is not supported",
                       modes.cubic ? " in mode cubic" : "");
  }
  if (!IsFloat(grid.type)) return Malformed("the grid has type ", TypeName(grid.type));
  if (!modes.nearest && !IsFloat(input.type)) {
    return Malformed("an input of ", TypeName(input.type), " cannot be interpolated");
  }
  for (size_t i = 2; i < rank; ++i) {
    if (input.shape[i] < 1) return Malformed("the input has no pixels");
  }
  Shape shape = {input.shape[0], input.shape[1]};
  shape.insert(shape.end(), grid.shape.begin() + 1, grid.shape.end() - 1);
  outputs->push_back({input.type, std::move(shape)});
  return {};
}

// Appends canonical nodes; after the first failure nothing more happens.
class Lowering {
 public:
  Lowering(Rewriter* rewriter, const Node& node, const Modes& modes)
      : rewriter_(*rewriter),
        node_(node),
        modes_(modes),
        input_(rewriter->value(node.inputs[0]).shape),
        batch_(input_[0]),
        pixels_(ElementCount(rewriter->value(node.inputs[1]).shape) /
                std::max<int64_t>(1, batch_ * (static_cast<int64_t>(input_.size()) - 2))),
        space_(input_.begin() + 2, input_.end()) {}

  Status Run() {
    Arrange();
    std::vector<ValueId> places;  // along each axis of space, in pixels
    for (size_t a = 0; a < space_.size(); ++a) places.push_back(Denormalised(a));
    if (modes_.nearest) {
      for (ValueId& place : places) place = Op("Round", {place});
    }
    PullIn(&places);
    const ValueId sum = modes_.nearest ? Pixel(places, {}) : Interpolated(places);
    const ValueId seen = Op("Transpose", {sum}, {{"perm", Shape{0, 2, 1}}});
    const Shape wanted = rewriter_.value(node_.outputs[0]).shape;
    if (!status_.ok()) return status_;
    return Reshaped(&rewriter_, seen, wanted, node_.outputs[0]).status();
  }

 private:
  ValueId Op(const std::string& op, const std::vector<ValueId>& inputs,
             const AttributeMap& attributes = {}) {
    if (!status_.ok()) return kNoValue;
    Result<ValueId> result = rewriter_.Add(op, inputs, attributes);
    if (result.ok()) return *result;
    status_ = result.status();
    return kNoValue;
  }
  ValueId Number(ValueId like, double number) {
    if (!status_.ok()) return kNoValue;
    Tensor tensor = Tensor::Zeros({rewriter_.value(like).type, {}});
    WriteDouble(&tensor, 0, number);
    return rewriter_.AddConstant(std::move(tensor), "number");
  }
  ValueId With(const std::string& op, ValueId value, double number) {
    return Op(op, {value, Number(value, number)});
  }
  ValueId Clipped(ValueId value, double low, double high) {
    return With("Min", With("Max", value, low), high);
  }

  // Pixels as the entries of a Take, [batch, pixels, channels], and the grid as [batch, places].
  void Arrange() {
    const ValueId flat =
        Op("View", {node_.inputs[0]}, {{"shape", Shape{batch_, input_[1], ElementCount(space_)}}});
    entries_ = Op("Transpose", {flat}, {{"perm", Shape{0, 2, 1}}});
    grid_ = Op("View", {node_.inputs[1]},
               {{"shape", Shape{batch_, pixels_, static_cast<int64_t>(space_.size())}}});
  }

  // From -1..1 to pixels; the last number of a grid entry is that of the first axis.
  ValueId Denormalised(size_t axis) {
    const auto extent = static_cast<double>(space_[axis]);
    const auto number = static_cast<int64_t>(space_.size() - 1 - axis);
    const ValueId g = Op("StridedSlice", {grid_},
                         {{"sizes", Shape{batch_, pixels_, 1}},
                          {"starts", Shape{0, 0, number}},
                          {"steps", Shape{1, 1, 1}}});
    const ValueId from_zero = With("Add", g, 1);
    if (modes_.align_corners) return With("Mul", With("Div", from_zero, 2), extent - 1);
    return With("Div", With("Sub", With("Mul", from_zero, extent), 1), 2);
  }

  double Low() const { return modes_.align_corners ? 0 : -0.5; }
  double High(size_t axis) const { return static_cast<double>(space_[axis] - 1) - Low(); }

  // Mirrored at both ends, over and over: a triangle wave.
  ValueId Reflected(ValueId place, size_t axis) {
    const double range = High(axis) - Low();
    if (range == 0) return With("Mul", place, 0);
    const ValueId distance = Op("Abs", {With("Sub", place, Low())});
    const ValueId periodic =
        Op("Mod", {distance, Number(distance, 2 * range)}, {{"fmod", int64_t{1}}});
    const ValueId mirrored = Op("Neg", {Op("Abs", {With("Sub", periodic, range)})});
    return With("Add", mirrored, range + Low());
  }

  // Where any coordinate is outside, all are brought back inside, as the padding says.
  void PullIn(std::vector<ValueId>* places) {
    if (!modes_.border && !modes_.reflection) return;
    ValueId outside = kNoValue;
    std::vector<ValueId> inner;
    for (size_t a = 0; a < places->size(); ++a) {
      const ValueId place = (*places)[a];
      inner.push_back(modes_.border ? Clipped(place, 0, static_cast<double>(space_[a] - 1))
                                    : Reflected(place, a));
      const ValueId off =
          Op("Or", {With("Less", place, Low()), Op("Less", {Number(place, High(a)), place})});
      outside = outside == kNoValue ? off : Op("Or", {outside, off});
    }
    for (size_t a = 0; a < places->size(); ++a) {
      (*places)[a] = Op("Where", {outside, inner[a], (*places)[a]});
    }
  }

  // The input at whole coordinates (floats), shifted; [batch, places, channels].
  ValueId Pixel(const std::vector<ValueId>& corner, const std::vector<int>& shift) {
    ValueId index = kNoValue, inside = kNoValue;
    const Shape strides = DenseStrides(space_);
    for (size_t a = 0; a < corner.size(); ++a) {
      const double last = static_cast<double>(space_[a] - 1);
      ValueId at = shift.empty() || shift[a] == 0 ? corner[a] : With("Add", corner[a], shift[a]);
      if (modes_.reflection) {
        at = Reflected(at, a);
      } else if (!modes_.border) {
        const ValueId here =
            Op("And", {Op("LessOrEqual", {Number(at, 0), at}), With("LessOrEqual", at, last)});
        inside = inside == kNoValue ? here : Op("And", {inside, here});
      }
      const ValueId whole = Op("Cast", {Clipped(at, 0, last)}, {{"to", std::string("i64")}});
      const ValueId steps = With("Mul", whole, static_cast<double>(strides[a]));
      index = index == kNoValue ? steps : Op("Add", {index, steps});
    }
    const ValueId pixel = Op("Take", {entries_, index});
    if (inside == kNoValue) return pixel;
    return Op("Where", {inside, pixel, Number(pixel, 0)});
  }

  // The weights of the pixels around a place that is `t` behind the second (linear: first) of them.
  std::vector<ValueId> Weights(ValueId t) {
    if (!modes_.cubic) return {Op("Sub", {Number(t, 1), t}), t};
    constexpr double kAlpha = -0.75;
    const auto polynomial = [&](ValueId x, const std::vector<double>& c) {
      ValueId value = Number(x, c[0]);
      for (size_t i = 1; i < c.size(); ++i) value = With("Add", Op("Mul", {value, x}), c[i]);
      return value;
    };
    const std::vector<double> far = {kAlpha, -5 * kAlpha, 8 * kAlpha, -4 * kAlpha};
    const std::vector<double> near = {kAlpha + 2, -(kAlpha + 3), 0, 1};
    const ValueId rest = Op("Sub", {Number(t, 1), t});
    return {polynomial(With("Add", t, 1), far), polynomial(t, near), polynomial(rest, near),
            polynomial(With("Add", rest, 1), far)};
  }

  ValueId Interpolated(const std::vector<ValueId>& places) {
    std::vector<ValueId> corner;
    std::vector<std::vector<ValueId>> weights;
    for (const ValueId place : places) {
      corner.push_back(Op("Floor", {place}));
      weights.push_back(Weights(Op("Sub", {place, corner.back()})));
    }
    const int first = modes_.cubic ? -1 : 0;
    const size_t each = modes_.cubic ? 4 : 2;
    size_t all = 1;
    for (size_t a = 0; a < places.size(); ++a) all *= each;
    ValueId sum = kNoValue;
    for (size_t k = 0; k < all && status_.ok(); ++k) {
      std::vector<int> shift;
      ValueId weight = kNoValue;
      size_t rest = k;
      for (size_t a = 0; a < places.size(); ++a, rest /= each) {
        const size_t one = rest % each;
        shift.push_back(first + static_cast<int>(one));
        weight = weight == kNoValue ? weights[a][one] : Op("Mul", {weight, weights[a][one]});
      }
      weight = AsInput(weight);
      const ValueId part = Op("Mul", {Pixel(corner, shift), weight});
      sum = sum == kNoValue ? part : Op("Add", {sum, part});
    }
    return sum;
  }

  ValueId AsInput(ValueId value) {
    const ElementType type = rewriter_.value(node_.inputs[0]).type;
    if (!status_.ok() || rewriter_.value(value).type == type) return value;
    return Op("Cast", {value}, {{"to", std::string(TypeName(type))}});
  }

  Rewriter& rewriter_;
  const Node& node_;
  const Modes modes_;
  const Shape input_;
  const int64_t batch_, pixels_;
  const Shape space_;
  ValueId entries_ = kNoValue, grid_ = kNoValue;
  Status status_;
};

Status Lower(Rewriter* rewriter, const Node& node) {
  DLA_ASSIGN_OR_RETURN(const Modes modes, ReadModes(node));
  return Lowering(rewriter, node, modes).Run();
}

}  // namespace

const OpDef kGridSampleOp = {
    .name = "GridSample",
    .first_opset = 16,
    .min_inputs = 2,
    .max_inputs = 2,
    .attributes = kAttributes,
    .note = "one to three spatial axes; cubic: two",
    .infer = Infer,
    .lower = Lower,
};

}  // namespace dla::ir
