// Each operator's arithmetic against values that were computed independently (numpy, or by hand
// where they are plain to see).
#include <gtest/gtest.h>

#include <cmath>

#include "ir/evaluate.h"
#include "ir/pass.h"
#include "tests/ir/graph_builder.h"

namespace dla::ir {
namespace {

using Values = std::vector<float>;

// One node on an input 0, 1, 2, ... of the given shape.
Values OnRamp(const std::string& op, const Shape& shape, AttributeMap attributes = {},
              int opset = 17) {
  GraphBuilder b(opset);
  const ValueId y = b.Node(op, "y", {b.Input("x", shape)}, std::move(attributes));
  Values ramp;
  for (int64_t i = 0; i < ElementCount(shape); ++i) ramp.push_back(static_cast<float>(i));
  return Compute(b.Build({y}), {{"x", Tensor::Floats(shape, ramp)}});
}

Values OnValues(const std::string& op, const Values& x, AttributeMap attributes = {}) {
  GraphBuilder b;
  const Shape shape = {static_cast<int64_t>(x.size())};
  const ValueId y = b.Node(op, "y", {b.Input("x", shape)}, std::move(attributes));
  return Compute(b.Build({y}), {{"x", Tensor::Floats(shape, x)}});
}

Values Binary(const std::string& op, const Values& x, const Values& y) {
  GraphBuilder b;
  const Shape shape = {static_cast<int64_t>(x.size())};
  const ValueId z = b.Node(op, "z", {b.Input("x", shape), b.Floats("y", shape, y)});
  return Compute(b.Build({z}), {{"x", Tensor::Floats(shape, x)}});
}

void ExpectNear(const Values& got, const Values& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-6f) << i;
}

TEST(Operators, Unary) {
  const Values x = {-2, -0.5f, 0, 0.5f, 4};
  EXPECT_EQ(OnValues("Relu", x), (Values{0, 0, 0, 0.5f, 4}));
  EXPECT_EQ(OnValues("LeakyRelu", x, {{"alpha", 0.25f}}), (Values{-0.5f, -0.125f, 0, 0.5f, 4}));
  EXPECT_EQ(OnValues("Clip", x, {{"min", -1.0f}, {"max", 1.0f}}), (Values{-1, -0.5f, 0, 0.5f, 1}));
  EXPECT_EQ(OnValues("Neg", x), (Values{2, 0.5f, 0, -0.5f, -4}));
  EXPECT_EQ(OnValues("Abs", x), (Values{2, 0.5f, 0, 0.5f, 4}));
  EXPECT_EQ(OnValues("Floor", x), (Values{-2, -1, 0, 0, 4}));
  EXPECT_EQ(OnValues("Ceil", x), (Values{-2, 0, 0, 1, 4}));
  EXPECT_EQ(OnValues("Round", {-1.5f, -0.5f, 0.5f, 1.5f, 2.5f}), (Values{-2, 0, 0, 2, 2}));
  EXPECT_EQ(OnValues("Sqrt", {0, 1, 4, 9}), (Values{0, 1, 2, 3}));
  EXPECT_EQ(OnValues("Reciprocal", {1, 2, -4}), (Values{1, 0.5f, -0.25f}));
  // numpy 1.24: 1 / (1 + exp(-x)), tanh, exp, and scipy-free erf by math.erf.
  ExpectNear(OnValues("Sigmoid", {-2, 0, 3}), {0.11920292f, 0.5f, 0.95257413f});
  const std::vector<float> tail = OnValues("Sigmoid", {-80, -20, -17.9f, 80});
  EXPECT_EQ(tail[0], 0);
  EXPECT_EQ(tail[1], 0);
  EXPECT_GT(tail[2], 0);
  EXPECT_EQ(tail[3], 1);
  ExpectNear(OnValues("Tanh", {-2, 0, 3}), {-0.96402758f, 0, 0.99505475f});
  ExpectNear(OnValues("Exp", {-2, 0, 1}), {0.13533528f, 1, 2.71828183f});
  ExpectNear(OnValues("Log", {1, 2, 10}), {0, 0.69314718f, 2.30258509f});
  ExpectNear(OnValues("Erf", {-1, 0, 0.5f}), {-0.84270079f, 0, 0.52049988f});
  // max(0, min(1, 0.2 x + 0.5))
  ExpectNear(OnValues("HardSigmoid", {-4, -1, 0, 1, 4}), {0, 0.3f, 0.5f, 0.7f, 1});
  ExpectNear(OnValues("HardSwish", {-4, -1, 0, 1, 4}), {0, -1.0f / 3, 0, 2.0f / 3, 4});
}

TEST(Operators, Binary) {
  const Values x = {1, -2, 3}, y = {4, 2, -1};
  EXPECT_EQ(Binary("Add", x, y), (Values{5, 0, 2}));
  EXPECT_EQ(Binary("Sub", x, y), (Values{-3, -4, 4}));
  EXPECT_EQ(Binary("Mul", x, y), (Values{4, -4, -3}));
  EXPECT_EQ(Binary("Div", x, y), (Values{0.25f, -1, -3}));
  EXPECT_EQ(Binary("Max", x, y), (Values{4, 2, 3}));
  EXPECT_EQ(Binary("Min", x, y), (Values{1, -2, -1}));
  EXPECT_EQ(Binary("Pow", {2, 3, 4}, {3, 2, 0.5f}), (Values{8, 9, 2}));
}

TEST(Operators, BinaryBroadcasts) {
  GraphBuilder b;
  const ValueId z = b.Node("Sub", "z", {b.Input("x", {3, 1}), b.Floats("y", {2}, {10, 20})});
  EXPECT_EQ(Compute(b.Build({z}), {{"x", Tensor::Floats({3, 1}, {1, 2, 3})}}),
            (Values{-9, -19, -8, -18, -7, -17}));
}

TEST(Operators, SumAndMaxTakeAnyNumber) {
  GraphBuilder b;
  const ValueId x = b.Input("x", {2});
  const ValueId y = b.Floats("y", {2}, {5, -5}), z = b.Floats("z", {1}, {1});
  EXPECT_EQ(Compute(b.Build({b.Node("Sum", "s", {x, y, z})}), {{"x", Tensor::Floats({2}, {1, 2})}}),
            (Values{7, -2}));
  EXPECT_EQ(Compute(b.Build({b.Node("Max", "m", {x, y, z})}), {{"x", Tensor::Floats({2}, {1, 2})}}),
            (Values{5, 2}));
}

TEST(Operators, MaxPool) {
  // Rows 0..3, 4..7, 8..11, 12..15.
  EXPECT_EQ(
      OnRamp("MaxPool", {1, 1, 4, 4}, {{"kernel_shape", Shape{2, 2}}, {"strides", Shape{2, 2}}}),
      (Values{5, 7, 13, 15}));
  // Windows 0,2,4 / 2,4 with dilation 2, padding 1 in front: first window covers -1, 1, 3.
  EXPECT_EQ(OnRamp("MaxPool", {1, 1, 5},
                   {{"kernel_shape", Shape{3}}, {"dilations", Shape{2}}, {"pads", Shape{1, 0}}}),
            (Values{3, 4}));
  // ceil_mode keeps a window that begins inside, drops one that begins in the padding.
  EXPECT_EQ(OnRamp("MaxPool", {1, 1, 5},
                   {{"kernel_shape", Shape{2}}, {"strides", Shape{2}}, {"ceil_mode", int64_t{1}}}),
            (Values{1, 3, 4}));
  EXPECT_EQ(OnRamp("MaxPool", {1, 1, 4},
                   {{"kernel_shape", Shape{1}},
                    {"strides", Shape{3}},
                    {"pads", Shape{0, 1}},
                    {"ceil_mode", int64_t{1}}}),
            (Values{0, 3}));
}

TEST(Operators, AveragePool) {
  const AttributeMap padded = {{"kernel_shape", Shape{2}}, {"pads", Shape{1, 0}}};
  EXPECT_EQ(OnRamp("AveragePool", {1, 1, 3}, padded), (Values{0, 0.5f, 1.5f}));
  AttributeMap counted = padded;
  counted["count_include_pad"] = int64_t{1};
  EXPECT_EQ(OnRamp("AveragePool", {1, 2, 3}, counted), (Values{0, 0.5f, 1.5f, 1.5f, 3.5f, 4.5f}));
  EXPECT_EQ(OnRamp("GlobalAveragePool", {1, 2, 2, 2}), (Values{1.5f, 5.5f}));
  EXPECT_EQ(OnRamp("GlobalMaxPool", {1, 2, 2, 2}), (Values{3, 7}));
}

TEST(Operators, Reductions) {
  EXPECT_EQ(OnRamp("ReduceMean", {2, 3}, {{"axes", Shape{0}}}), (Values{1.5f, 2.5f, 3.5f}));
  EXPECT_EQ(OnRamp("ReduceSum", {2, 3}), (Values{15}));
  EXPECT_EQ(OnRamp("ReduceMax", {2, 3}, {{"axes", Shape{-1}}, {"keepdims", int64_t{0}}}),
            (Values{2, 5}));
  EXPECT_EQ(OnRamp("ReduceMin", {2, 2, 2}, {{"axes", Shape{0, 2}}}), (Values{0, 2}));
}

TEST(Operators, SoftmaxDependsOnTheOpset) {
  // numpy: exp([0,1]) / sum = 0.26894142, 0.73105858.
  ExpectNear(OnRamp("Softmax", {2, 2}), {0.26894142f, 0.73105858f, 0.26894142f, 0.73105858f});
  // Before 13: all axes from `axis` on are one: exp(0..3) / sum.
  ExpectNear(OnRamp("Softmax", {1, 2, 2}, {{"axis", int64_t{1}}}, 11),
             {0.0320586f, 0.08714432f, 0.23688282f, 0.64391426f});
  // From 13: that axis alone: exp(0), exp(2) in each column.
  ExpectNear(OnRamp("Softmax", {1, 2, 2}, {{"axis", int64_t{1}}}),
             {0.11920292f, 0.11920292f, 0.88079708f, 0.88079708f});
}

// Before opset 7 the second operand's axes could stand anywhere among the first one's.
TEST(Operators, OldBroadcastsHaveAnAxis) {
  const auto add = [](int opset, AttributeMap attributes, Status* status) {
    GraphBuilder b(opset);
    const ValueId x = b.Floats("x", {2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    const ValueId y = b.Input("y", {3});
    *status = b.TryNode("Add", {x, y}, attributes);
    if (!status->ok()) return Values();
    const ValueId sum = b.Node("Add", "sum", {x, y}, attributes);
    return Compute(b.Build({sum}), {{"y", Tensor::Floats({3}, {100, 200, 300})}});
  };
  Status status;
  EXPECT_EQ(add(6, {{"axis", int64_t{1}}, {"broadcast", int64_t{1}}}, &status),
            (Values{100, 101, 202, 203, 304, 305, 106, 107, 208, 209, 310, 311}));
  add(6, {{"axis", int64_t{2}}, {"broadcast", int64_t{1}}}, &status);
  EXPECT_EQ(status.message(), "the second operand of shape 3 does not stand at axis 2 of 2x3x2");
  add(7, {{"axis", int64_t{1}}, {"broadcast", int64_t{1}}}, &status);
  EXPECT_EQ(status.message(), "attribute 'axis' exists before opset 7 only");
}

TEST(Operators, SlopesOfPReluDependOnTheOpset) {
  const auto run = [](int opset) {
    GraphBuilder b(opset);
    const ValueId y =
        b.Node("PRelu", "y", {b.Input("x", {1, 2, 2}), b.Floats("slope", {2}, {10, 100})});
    return Compute(b.Build({y}), {{"x", Tensor::Floats({1, 2, 2}, {-1, -2, -3, 4})}});
  };
  ExpectNear(run(6), {-10, -20, -300, 4});  // by channel
  ExpectNear(run(7), {-10, -200, -30, 4});  // by the last axis, as shapes broadcast
}

// Two rows of three classes; labels 2 and `second`; weights 1, 2, 4.
Values Loss(const std::string& op, int64_t second, AttributeMap attributes) {
  GraphBuilder b;
  const ValueId y = b.Node(
      op, "y", {b.Input("x", {2, 3}), b.Ints("labels", {2, second}), b.Floats("w", {3}, {1, 2, 4})},
      std::move(attributes));
  return Compute(b.Build({y}), {{"x", Tensor::Floats({2, 3}, {0, 1, 2, 3, 5, 7})}});
}

TEST(Operators, LossesOfClassification) {
  const std::string op = "NegativeLogLikelihoodLoss", none = "none", sum = "sum";
  ExpectNear(Loss(op, 1, {{"reduction", none}}), {-8, -10});
  ExpectNear(Loss(op, 1, {{"reduction", sum}}), {-18});
  ExpectNear(Loss(op, 1, {}), {-3});  // -18 / (4 + 2)
  ExpectNear(Loss(op, 1, {{"ignore_index", int64_t{1}}}), {-2});
  // A label outside of the classes counts for nothing if it is to be ignored, else it is an error.
  ExpectNear(Loss(op, -1, {{"ignore_index", int64_t{-1}}}), {-2});
  EXPECT_TRUE(std::isnan(Loss(op, -1, {})[0]));
  EXPECT_TRUE(std::isnan(Loss(op, 3, {{"reduction", none}})[1]));
  // numpy: -4 log softmax([0, 1, 2])[2], -2 log softmax([3, 5, 7])[1].
  ExpectNear(Loss("SoftmaxCrossEntropyLoss", 1, {{"reduction", none}}), {1.6304239f, 4.2858633f});
}

TEST(Operators, ConvByHand) {
  GraphBuilder b;
  // Two groups of one channel, two outputs each; kernel 1x2, stride 2 in columns, padding (0, 1).
  const ValueId y =
      b.Node("Conv", "y",
             {b.Input("x", {1, 2, 1, 3}), b.Floats("w", {4, 1, 1, 2}, {1, 0, 0, 1, 1, 1, 2, -1}),
              b.Floats("b", {4}, {0, 10, 20, 30})},
             {{"group", int64_t{2}}, {"strides", Shape{1, 2}}, {"pads", Shape{0, 0, 0, 1}}});
  EXPECT_EQ(Compute(b.Build({y}), {{"x", Tensor::Floats({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6})}}),
            (Values{1, 3, 12, 10, 29, 26, 33, 42}));
}

TEST(Operators, GemmWithEverything) {
  GraphBuilder b;
  // numpy: 0.5 * A.T @ B.T + 2 * C, A = [[1,2],[3,4]], B = [[1,0],[2,1],[0,3]], C = [[1,2,3]].
  const ValueId y =
      b.Node("Gemm", "y",
             {b.Input("a", {2, 2}), b.Floats("b", {3, 2}, {1, 0, 2, 1, 0, 3}),
              b.Floats("c", {1, 3}, {1, 2, 3})},
             {{"alpha", 0.5f}, {"beta", 2.0f}, {"transA", int64_t{1}}, {"transB", int64_t{1}}});
  EXPECT_EQ(Compute(b.Build({y}), {{"a", Tensor::Floats({2, 2}, {1, 2, 3, 4})}}),
            (Values{2.5f, 6.5f, 10.5f, 3, 8, 12}));
}

TEST(Operators, MatMulBroadcastsBatches) {
  GraphBuilder b;
  const ValueId y =
      b.Node("MatMul", "y", {b.Input("a", {2, 1, 1, 2}), b.Floats("b", {2, 2, 1}, {1, 2, 3, 4})});
  EXPECT_EQ(Compute(b.Build({y}), {{"a", Tensor::Floats({2, 1, 1, 2}, {1, 1, 2, 0})}}),
            (Values{3, 7, 2, 6}));
}

TEST(Operators, BatchNormalization) {
  GraphBuilder b;
  const ValueId y =
      b.Node("BatchNormalization", "y",
             {b.Input("x", {1, 2, 2}), b.Floats("s", {2}, {2, 1}), b.Floats("bias", {2}, {1, 0}),
              b.Floats("m", {2}, {3, 1}), b.Floats("v", {2}, {4, 0.25f})},
             {{"epsilon", 0.0f}});
  // (x - 3) / 2 * 2 + 1, (x - 1) / 0.5
  EXPECT_EQ(Compute(b.Build({y}), {{"x", Tensor::Floats({1, 2, 2}, {3, 5, 1, 2})}}),
            (Values{1, 3, 0, 2}));
}

TEST(Operators, Views) {
  EXPECT_EQ(OnRamp("Transpose", {2, 3}), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(OnRamp("Flatten", {2, 3}), (Values{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(OnRamp("Squeeze", {1, 3, 1}, {{"axes", Shape{0}}}, 11), (Values{0, 1, 2}));
  EXPECT_EQ(OnRamp("Unsqueeze", {3}, {{"axes", Shape{0, -1}}}, 11), (Values{0, 1, 2}));
  EXPECT_EQ(OnRamp("Identity", {3}), (Values{0, 1, 2}));
  EXPECT_EQ(OnRamp("Dropout", {3}), (Values{0, 1, 2}));
}

TEST(Operators, SliceSplitConcatGather) {
  GraphBuilder b;
  const ValueId x = b.Input("x", {2, 4});
  const std::map<std::string, Tensor> inputs = {
      {"x", Tensor::Floats({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7})}};
  const ValueId s =
      b.Node("Slice", "s",
             {x, b.Ints("st", {-3}), b.Ints("en", {1000}), b.Ints("ax", {1}), b.Ints("sp", {2})});
  EXPECT_EQ(Compute(b.Build({s}), inputs), (Values{1, 3, 5, 7}));
  const ValueId p = b.Node("Split", "p", {x, b.Ints("parts", {1, 3})}, {{"axis", int64_t{1}}}, 2);
  EXPECT_EQ(Compute(b.Build({p}), inputs), (Values{0, 4}));
  const ValueId c = b.Node("Concat", "c", {s, p}, {{"axis", int64_t{1}}});
  EXPECT_EQ(Compute(b.Build({c}), inputs), (Values{1, 3, 0, 5, 7, 4}));
  const ValueId g = b.Node("Gather", "g", {x, b.Ints("i", {3, 0, -1})}, {{"axis", int64_t{1}}});
  EXPECT_EQ(Compute(b.Build({g}), inputs), (Values{3, 0, 3, 7, 4, 7}));
}

// The node on 0, 1, 2, ... of a shape, and on indices that are computed.
Values Gathered(const std::string& op, const Shape& shape, const Shape& list, const Values& indices,
                AttributeMap attributes, Status* status = nullptr) {
  GraphBuilder b;
  Values ramp;
  for (int64_t i = 0; i < ElementCount(shape); ++i) ramp.push_back(static_cast<float>(i));
  const ValueId numbers = b.Node("Cast", "n", {b.Input("i", list)}, {{"to", std::string("i64")}});
  const ValueId y = b.Node(op, "y", {b.Floats("x", shape, ramp), numbers}, std::move(attributes));
  Graph graph = b.Build({y});
  const std::map<std::string, Tensor> inputs = {{"i", Tensor::Floats(list, indices)}};
  if (status == nullptr) return Compute(std::move(graph), inputs);
  PassOptions options;
  options.stop_after = "canonicalise";
  *status = RunPasses(&graph, options);
  if (status->ok()) *status = Evaluate(graph, inputs).status();
  return {};
}

// Values by numpy's take, take_along_axis and fancy indexing.
TEST(Operators, GathersByComputedIndices) {
  EXPECT_EQ(Gathered("Gather", {3, 4}, {2}, {2, -3}, {{"axis", int64_t{0}}}),
            (Values{8, 9, 10, 11, 0, 1, 2, 3}));
  EXPECT_EQ(Gathered("Gather", {2, 3}, {1, 2}, {-1, 1}, {{"axis", int64_t{1}}}),
            (Values{2, 1, 5, 4}));
  EXPECT_EQ(Gathered("Gather", {2, 3}, {}, {1}, {{"axis", int64_t{-2}}}), (Values{3, 4, 5}));
  EXPECT_EQ(Gathered("GatherElements", {3, 3}, {2, 3}, {1, 2, 0, -1, 0, 0}, {}),
            (Values{3, 7, 2, 6, 1, 2}));
  EXPECT_EQ(Gathered("GatherElements", {3, 3}, {2, 1}, {2, -2}, {{"axis", int64_t{1}}}),
            (Values{2, 4}));
  EXPECT_EQ(Gathered("GatherND", {2, 3, 2}, {2, 2}, {1, -1, 0, 1}, {}), (Values{10, 11, 2, 3}));
  EXPECT_EQ(Gathered("GatherND", {2, 3, 2}, {2, 1}, {1, 2}, {{"batch_dims", int64_t{1}}}),
            (Values{2, 3, 10, 11}));
  Status status;
  Gathered("GatherND", {2, 3}, {1, 2}, {0, 3}, {}, &status);
  EXPECT_EQ(status.code(), ErrorCode::kMalformed);
}

TEST(Operators, ResizeAndPad) {
  GraphBuilder b;
  const ValueId x = b.Input("x", {1, 1, 2, 2});
  const std::map<std::string, Tensor> inputs = {{"x", Tensor::Floats({1, 1, 2, 2}, {1, 2, 3, 4})}};
  const ValueId r = b.Node("Resize", "r", {x, kNoValue, b.Floats("sc", {4}, {1, 1, 1, 2})},
                           {{"coordinate_transformation_mode", std::string("asymmetric")},
                            {"nearest_mode", std::string("floor")}});
  EXPECT_EQ(Compute(b.Build({r}), inputs), (Values{1, 1, 2, 2, 3, 3, 4, 4}));
  const ValueId p =
      b.Node("Pad", "p", {x, b.Ints("pads", {0, 0, 1, 0, 0, 0, 0, -1}), b.Floats("v", {}, {9})});
  EXPECT_EQ(Compute(b.Build({p}), inputs), (Values{9, 1, 3}));
}

TEST(Operators, ElementCountsThatFitHaveStridesThatFit) {
  EXPECT_EQ(CheckedElementCount({}), 1);
  EXPECT_EQ(CheckedElementCount({3, 0, 5}), 0);
  EXPECT_EQ(CheckedElementCount({2, -1}), std::nullopt);
  const int64_t many = int64_t{1} << 32;
  EXPECT_EQ(CheckedElementCount({many, 256}), many * 256);
  EXPECT_EQ(CheckedElementCount({many, 257}), std::nullopt);
  EXPECT_EQ(CheckedElementCount({0, many, many}), std::nullopt);
  EXPECT_EQ(CheckedElementCount({many, many, 0}), std::nullopt);
}

TEST(Operators, RefusalsSayWhatIsWrong) {
  GraphBuilder b;
  const ValueId x = b.Input("x", {1, 4, 8, 8});
  const ValueId w = b.Floats("w", {2, 4, 3, 3}, Pattern(72));
  const auto message = [&](const std::string& op, std::vector<ValueId> inputs, AttributeMap map) {
    return b.TryNode(op, inputs, std::move(map)).message();
  };
  EXPECT_EQ(message("Conv", {x, w}, {{"dilations", Shape{1, 1, 1}}}),
            "attribute 'dilations' has 3 entries, the input has 2 spatial axes");
  EXPECT_EQ(message("Conv", {x, w}, {{"group", int64_t{3}}}),
            "attribute 'group' is 3, the weight has 2 output channels");
  EXPECT_EQ(message("Conv", {x, w}, {{"strides", Shape{1, 0}}}),
            "attribute 'strides' has the entry 0; 1 to 2147483647 are possible");
  EXPECT_EQ(message("Add", {x, w}, {}),
            "the operands have shapes 1x4x8x8 and 2x4x3x3, which do not broadcast");
  const ValueId matrix = b.Floats("m", {2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(message("Gemm", {matrix, matrix, b.Ints("c", {1, 2})}, {}),
            "the operands have types f32, f32 and i64");
  const ValueId many =
      b.Node("Unsqueeze", "many", {b.Ints("three", {0, 0, 0}), b.Ints("last", {1})});
  EXPECT_EQ(message("GatherND", {matrix, many}, {{"batch_dims", int64_t{1}}}),
            "indices of shape 3x1 do not fit data of shape 2x2");
  EXPECT_EQ(message("Transpose", {x}, {{"perm", Shape{0, 1}}}),
            "attribute 'perm' is no permutation of the 4 axes of the input");
  EXPECT_EQ(message("Softmax", {x}, {{"axis", int64_t{4}}}),
            "axis 4 is outside a tensor of rank 4");
  EXPECT_EQ(message("Reshape", {x, b.Ints("s", {3, -1})}, {}),
            "the input has shape 1x4x8x8 (256 elements), which cannot be seen as 3x85");
  EXPECT_EQ(b.TryNode("Reshape", {x, x}).code(), ErrorCode::kUnsupported);
  EXPECT_EQ(b.TryNode("Resize", {x, kNoValue, b.Floats("sc", {4}, {1, 1, -2, 1})}).message(),
            "the scale of axis 2 is -2; it must be above 0 and give at most 1,000,000 entries");
}

TEST(Operators, TableIsSortedAndComplete) {
  const auto table = OperatorTable();
  for (size_t i = 0; i < table.size(); ++i) {
    const OpDef& op = *table[i];
    if (i > 0) {
      EXPECT_LT(table[i - 1]->name, op.name);
    }
    EXPECT_EQ(FindOperator(op.name), &op);
    EXPECT_NE(op.infer, nullptr) << op.name;
    // What can be a group has a nest, what is element-wise emits, what remains can be evaluated.
    const bool group = op.kind != OpKind::kOnnxOnly && op.kind != OpKind::kView;
    EXPECT_EQ(op.nest != nullptr, group) << op.name;
    EXPECT_EQ(op.emit != nullptr, op.kind == OpKind::kMap || op.kind == OpKind::kRow) << op.name;
    const bool runs = op.kind != OpKind::kOnnxOnly;
    EXPECT_TRUE(op.evaluate != nullptr || (!runs && op.lower != nullptr)) << op.name;
  }
  EXPECT_EQ(FindOperator("Con"), nullptr);
}

}  // namespace
}  // namespace dla::ir
