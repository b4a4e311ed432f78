// The nests of single operators, number by number.
#include <gtest/gtest.h>

#include <limits>

#include "ir/packed_groups.h"
#include "ir/pass.h"
#include "ir/vector_form.h"
#include "tests/ir/graph_builder.h"
#include "tests/ir/nest_interpreter.h"

namespace dla::ir {
namespace {

// All passes, then the nest of the last group.
Nest LastNest(Graph graph) {
  EXPECT_TRUE(RunPasses(&graph).ok());
  const auto nest = BuildNest(graph, graph.nodes.back());
  EXPECT_TRUE(nest.ok()) << nest.status().message();
  EXPECT_EQ(NestFaults(graph, *nest), std::vector<std::string>());
  return *nest;
}

// "N=1 M=4 ...".
std::string Dims(const Nest& nest) {
  std::string text;
  for (const Dimension& d : nest.dimensions) {
    text += (text.empty() ? "" : " ") + d.name + "=" + std::to_string(d.extent);
  }
  return text;
}

// "1C+0<4*16": terms, offset, bound, stride of each axis.
std::string Axes(const Nest& nest, int operand) {
  std::string text;
  for (const Axis& axis : nest.operands[Idx(operand)].axes) {
    if (!text.empty()) text += ' ';
    for (const Term& t : axis.terms) {
      text += std::to_string(t.coefficient) + nest.dimensions[Idx(t.dimension)].name;
    }
    text += (axis.offset < 0 ? "" : "+") + std::to_string(axis.offset) + "<" +
            std::to_string(axis.bound) + "*" + std::to_string(axis.stride);
  }
  return text;
}

TEST(Nest, Convolution) {
  GraphBuilder b;
  const ValueId x = b.Input("x", {2, 4, 9, 8});
  const ValueId conv = b.Node(
      "Conv", "conv", {x, b.Floats("w", {6, 2, 3, 2}, Pattern(72)), b.Floats("b", {6}, Pattern(6))},
      {{"group", int64_t{2}},
       {"strides", Shape{2, 1}},
       {"dilations", Shape{1, 3}},
       {"pads", Shape{1, 2, 0, 1}}});
  const ValueId sum =
      b.Node("Add", "sum", {b.Node("Relu", "r", {conv}), b.Input("res", {6, 4, 8})});
  const Nest nest = LastNest(b.Build({sum}));
  EXPECT_EQ(nest.anchor, Anchor::kContraction);
  EXPECT_EQ(Dims(nest), "N=2 G=2 M=3 C=2 E=4 F=8 R=3 S=2");
  ASSERT_EQ(nest.operands.size(), 5u);
  // Halo: rows 2 E + R - 1 of 9, columns F + 3 S - 2 of 8.
  EXPECT_EQ(Axes(nest, 0), "1N+0<2*288 1G+0<2*144 1C+0<2*72 2E1R-1<9*8 1F3S-2<8*1");
  EXPECT_EQ(Axes(nest, 1), "1G+0<2*36 1M+0<3*12 1C+0<2*6 1R+0<3*2 1S+0<2*1");
  EXPECT_EQ(nest.bias, 2);
  EXPECT_EQ(Axes(nest, 2), "1G+0<2*3 1M+0<3*1");
  EXPECT_EQ(Axes(nest, 3), "1G+0<2*96 1M+0<3*32 1E+0<4*8 1F+0<8*1");
  EXPECT_EQ(Axes(nest, 4), "1N+0<2*192 1G+0<2*96 1M+0<3*32 1E+0<4*8 1F+0<8*1");
  EXPECT_EQ(nest.operands[0].cls, OperandClass::kInput);
  EXPECT_EQ(nest.operands[1].cls, OperandClass::kWeight);
  EXPECT_EQ(nest.operands[2].cls, OperandClass::kWeight);
  EXPECT_EQ(nest.operands[3].cls, OperandClass::kVector);
  EXPECT_EQ(nest.operands[4].cls, OperandClass::kOutput);
  EXPECT_EQ(ToText(nest.program), "v0 = accumulator; v1 = load 3; v2 = relu v0; v3 = add v2 v1");
}

TEST(Nest, ConvolutionOnTheVectorEngine) {
  GraphBuilder b;
  const ValueId conv = b.Node("Conv", "conv",
                              {b.Input("x", {1, 4, 5, 5}), b.Floats("w", {4, 1, 3, 3}, Pattern(36)),
                               b.Floats("b", {4}, Pattern(4))},
                              {{"group", int64_t{4}}});
  const ValueId sum =
      b.Node("Add", "sum", {b.Node("Relu", "r", {conv}), b.Input("res", {4, 3, 3})});
  const Nest array = LastNest(b.Build({sum}));
  const std::optional<Nest> nest = VectorForm(array);
  ASSERT_TRUE(nest.has_value());
  EXPECT_EQ(nest->anchor, Anchor::kVector);
  EXPECT_EQ(Dims(*nest), "N=1 G=4 M=1 C=1 E=3 F=3 R=3 S=3");
  for (int k = 0; k <= nest->output(); ++k) {
    EXPECT_EQ(nest->operands[Idx(k)].cls, OperandClass::kVector);
    EXPECT_EQ(Axes(*nest, k), Axes(array, k));
  }
  EXPECT_EQ(ToText(nest->program),
            "v0 = load 0; v1 = load 1; v2 = reduce_dot v0 v1; v3 = load 2; v4 = add v2 v3; v5 = "
            "load 3; v6 = relu v4; v7 = add v6 v5");
  EXPECT_FALSE(VectorForm(*nest).has_value());
}

TEST(Nest, PackedGroups) {
  GraphBuilder b;
  const ValueId conv =
      b.Node("Conv", "conv",
             {b.Input("x", {1, 8, 5, 5}), b.Floats("w", {12, 2, 3, 3}, Pattern(216)),
              b.Floats("bias", {12}, Pattern(12))},
             {{"group", int64_t{4}}});
  const ValueId scale = b.Floats("scale", {12, 1, 1}, Pattern(12));
  Nest nest = LastNest(b.Build({b.Node("Mul", "p", {b.Node("Relu", "r", {conv}), scale})}));
  EXPECT_TRUE(PackCounts(nest).empty()) << "its weights may be anything";
  nest.operands[Nest::kWeight].is_constant = true;
  EXPECT_EQ(PackCounts(nest), (std::vector<int64_t>{2, 4}));
  EXPECT_FALSE(PackGroups(nest, 3).has_value());
  const std::optional<Nest> packed = PackGroups(nest, 2);
  ASSERT_TRUE(packed.has_value());
  EXPECT_EQ(Dims(nest), "N=1 G=4 M=3 C=2 E=3 F=3 R=3 S=3");
  EXPECT_EQ(Dims(*packed), "N=1 G=2 M=6 C=4 E=3 F=3 R=3 S=3");
  EXPECT_EQ(Axes(*packed, 0), "1N+0<1*200 1G+0<2*100 1C+0<4*25 1E1R+0<5*5 1F1S+0<5*1");
  EXPECT_EQ(Axes(*packed, 1), "1G+0<2*108 1M+0<6*18 1C+0<4*9 1R+0<3*3 1S+0<3*1");
  EXPECT_EQ(Axes(*packed, 2), "1G+0<2*6 1M+0<6*1");
  EXPECT_EQ(Axes(*packed, 3), "1G+0<2*6 1M+0<6*1");
  EXPECT_EQ(Axes(*packed, 4), "1N+0<1*108 1G+0<2*54 1M+0<6*9 1E+0<3*3 1F+0<3*1");
  const auto& diagonal = packed->operands[Nest::kWeight].diagonal;
  ASSERT_TRUE(diagonal.has_value());
  EXPECT_EQ(diagonal->channels, 3);
  EXPECT_EQ(diagonal->depths, 2);
  EXPECT_EQ(ZeroFactor(packed->operands[Nest::kWeight], *packed), 2);
  EXPECT_TRUE(PackCounts(*packed).empty()) << "packed already";
  EXPECT_FALSE(VectorForm(*packed).has_value());
}

TEST(Nest, OneDimensionalConvolution) {
  GraphBuilder b;
  const ValueId conv =
      b.Node("Conv", "conv", {b.Input("x", {1, 2, 8}), b.Floats("w", {3, 2, 3}, Pattern(18))},
             {{"pads", Shape{1, 1}}});
  const Nest nest = LastNest(b.Build({conv}));
  EXPECT_EQ(Dims(nest), "N=1 G=1 M=3 C=2 E=1 F=8 R=1 S=3");
  EXPECT_EQ(Axes(nest, 0), "1N+0<1*16 1G+0<1*16 1C+0<2*8 1E1R+0<1*8 1F1S-1<8*1");
  EXPECT_EQ(Axes(nest, 2), "1N+0<1*24 1G+0<1*24 1M+0<3*8 1E+0<1*1 1F+0<8*1");
}

TEST(Nest, MatMul) {
  GraphBuilder b;
  const ValueId y =
      b.Node("MatMul", "y", {b.Input("a", {2, 3, 4}), b.Floats("w", {4, 5}, Pattern(20))});
  const Nest nest = LastNest(b.Build({y}));
  EXPECT_EQ(Dims(nest), "N=1 G=1 E=6 C=4 M=5");  // batches are rows
  EXPECT_EQ(Axes(nest, 0), "1N+0<1*1 1G+0<1*1 1E+0<6*4 1C+0<4*1");
  EXPECT_EQ(Axes(nest, 1), "1G+0<1*1 1C+0<4*5 1M+0<5*1");
  EXPECT_EQ(Axes(nest, 2), "1N+0<1*1 1G+0<1*1 1E+0<6*5 1M+0<5*1");
}

TEST(Nest, MatMulOfActivations) {
  GraphBuilder b;
  const ValueId y = b.Node("MatMul", "y", {b.Input("a", {2, 3, 4}), b.Input("c", {2, 4, 1})});
  const Nest nest = LastNest(b.Build({y}));
  EXPECT_EQ(Dims(nest), "N=1 G=1 G1=2 E=3 C=4 M=1");
  EXPECT_EQ(nest.operands[1].cls, OperandClass::kWeight);
}

TEST(Nest, PoolingPadsWithMinusInfinity) {
  GraphBuilder b;
  const ValueId y = b.Node(
      "MaxPool", "y", {b.Input("x", {2, 3, 7, 7})},
      {{"kernel_shape", Shape{3, 3}}, {"strides", Shape{2, 2}}, {"pads", Shape{1, 1, 1, 1}}});
  const Nest nest = LastNest(b.Build({y}));
  EXPECT_EQ(Dims(nest), "C=6 E=4 F=4 R=3 S=3");
  EXPECT_EQ(Axes(nest, 0), "1C+0<6*49 2E1R-1<7*7 2F1S-1<7*1");
  EXPECT_EQ(nest.operands[0].pad_value, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(ToText(nest.program), "v0 = load 0; v1 = reduce_max v0");
  EXPECT_EQ(nest.reduce_mask, 0u);
}

TEST(Nest, SoftmaxNamesItsReduction) {
  GraphBuilder b;
  const ValueId y = b.Node("Softmax", "y", {b.Input("x", {2, 3, 4, 5})}, {{"axis", int64_t{1}}});
  const Nest nest = LastNest(b.Build({y}));
  EXPECT_EQ(Dims(nest), "d0=2 d1=3 d3=20");
  EXPECT_EQ(nest.reduce_mask, 2u);
  EXPECT_EQ(ToText(nest.program),
            "v0 = load 0; v1 = reduce_max v0; v2 = sub v0 v1; v3 = exp v2; v4 = reduce_sum v3; "
            "v5 = div v3 v4");
}

TEST(Nest, ElementWiseWorkMerges) {
  GraphBuilder b;
  const ValueId x = b.Input("x", {1, 64, 56, 56});
  const ValueId two = b.Floats("two", {1}, {2});
  const ValueId y = b.Node("Mul", "y", {b.Node("Relu", "r", {x}), two});
  const Nest nest = LastNest(b.Build({y}));
  EXPECT_EQ(Dims(nest), "d3=200704");
  EXPECT_EQ(ToText(nest.program), "v0 = load 0; v1 = relu v0; v2 = const 2; v3 = mul v1 v2");
  const ValueId z = b.Node("Add", "z", {x, b.Input("per_channel", {64, 1, 1})});
  EXPECT_EQ(Dims(LastNest(b.Build({z}))), "d1=64 d3=3136");
}

TEST(Nest, ResizeSplitsTheOutput) {
  GraphBuilder b;
  const ValueId y = b.Node("Resize", "y",
                           {b.Input("x", {1, 2, 3, 4}), kNoValue, b.Floats("s", {4}, {1, 1, 2, 3})},
                           {{"coordinate_transformation_mode", std::string("asymmetric")},
                            {"nearest_mode", std::string("floor")}});
  const ValueId sum = b.Node("Add", "sum", {y, b.Input("other", {2, 6, 12})});
  const Graph graph = b.Build({sum});
  const Nest nest = LastNest(graph);
  EXPECT_EQ(Dims(nest), "d1=2 d2=3 U2=2 d3=4 U3=3");
  EXPECT_EQ(Axes(nest, 0), "1d1+0<2*12 1d2+0<3*4 1d3+0<4*1");
  EXPECT_EQ(Axes(nest, 1), "1d1+0<2*72 2d21U2+0<6*12 3d31U3+0<12*1");
  EXPECT_EQ(Axes(nest, 2), Axes(nest, 1));
  ExpectPassesKeepValues(graph);
}

TEST(Nest, CopyIsAMove) {
  GraphBuilder b;
  const ValueId y =
      b.Node("Transpose", "y", {b.Input("x", {1, 2, 3, 4})}, {{"perm", Shape{0, 2, 3, 1}}});
  const Nest nest = LastNest(b.Build({y}));
  EXPECT_EQ(nest.anchor, Anchor::kMove);
  EXPECT_EQ(Dims(nest), "d2=12 d3=2");
  EXPECT_EQ(Axes(nest, 0), "1d2+0<12*1 1d3+0<2*12");
  EXPECT_EQ(Axes(nest, 1), "1d2+0<12*2 1d3+0<2*1");
  EXPECT_TRUE(nest.program.ops.empty());
}

}  // namespace
}  // namespace dla::ir
