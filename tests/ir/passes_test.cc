// What each pass does to small graphs, and that none changes a value.
#include <gtest/gtest.h>

#include "ir/pass.h"
#include "ir/text.h"
#include "tests/ir/graph_builder.h"

namespace dla::ir {
namespace {

Graph After(Graph graph, const std::string& pass) {
  PassOptions options;
  options.stop_after = pass;
  const Status status = RunPasses(&graph, options);
  EXPECT_TRUE(status.ok()) << status.message();
  return graph;
}

// "Conv+Relu+Add Copy ...": each node with what is fused to it.
std::string Ops(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) {
    text += (text.empty() ? "" : " ") + node.op;
    for (const FusedOp& op : node.fused) text += "+" + op.op;
  }
  return text;
}

struct Net : GraphBuilder {
  ValueId Conv(const std::string& name, ValueId x, int64_t c, int64_t m) {
    return Node("Conv", name,
                {x, Floats(name + ".w", {m, c, 3, 3}, Pattern(m * c * 9, static_cast<int>(m)))},
                {{"pads", Shape{1, 1, 1, 1}}});
  }
};

TEST(Canonicalise, ManySpellingsAreFew) {
  GraphBuilder b;
  const ValueId x = b.Input("x", {2, 3, 4, 4});
  const ValueId pool = b.Node("GlobalAveragePool", "p", {x});
  const ValueId flat = b.Node("Flatten", "f", {pool});
  const ValueId drop = b.Node("Dropout", "d", {flat});
  const ValueId fc = b.Node(
      "Gemm", "fc", {drop, b.Floats("w", {5, 3}, Pattern(15)), b.Floats("c", {5}, Pattern(5))},
      {{"transB", int64_t{1}}});
  const Graph graph = b.Build({fc});
  EXPECT_EQ(Ops(After(graph, "canonicalise")), "ReduceMean View View MatMul Add");
  EXPECT_EQ(Ops(After(graph, "simplify")), "ReduceMean View MatMul");
  EXPECT_EQ(Ops(After(graph, "layout")), "ReduceMean MatMul");
  ExpectPassesKeepValues(graph, 1e-6f);
}

TEST(Names, EveryNodeHasOneOfItsOwn) {
  Net b;
  ValueId x = b.Input("x", {1, 2, 5, 5});
  for (const char* value : {"1", "2", "3", "4", "5", "6"}) {
    x = b.Node("Softmax", value, {x}, {{"axis", int64_t{1}}});
  }
  Graph graph = b.Build({x});
  const char* recurring[] = {"a", "b", "a#2", "a", "a", "b"};
  for (size_t n = 0; n < graph.nodes.size(); ++n) graph.nodes[n].name = recurring[n];
  std::string names;
  for (const Node& node : After(std::move(graph), "names").nodes) names += node.name + " ";
  EXPECT_EQ(names, "a b a#2 a#3 a#4 b#2 ");
}

TEST(Fold, BatchNormalizationGoesIntoTheConvolution) {
  Net b;
  const ValueId conv = b.Conv("conv", b.Input("x", {1, 2, 5, 5}), 2, 3);
  const ValueId bn = b.Node("BatchNormalization", "bn",
                            {conv, b.Floats("s", {3}, {1, 2, 3}), b.Floats("b", {3}, {3, 2, 1}),
                             b.Floats("m", {3}, {0, 1, 0}), b.Floats("v", {3}, {1, 4, 2})});
  const ValueId relu = b.Node("Relu", "relu", {bn});
  const Graph graph = b.Build({relu});
  const Graph after = After(graph, "layout");
  EXPECT_EQ(Ops(after), "Conv+Relu");
  EXPECT_EQ(after.nodes[0].onnx_nodes, (std::vector<std::string>{"conv", "bn", "relu"}));
  ExpectPassesKeepValues(graph, 1e-6f);
}

TEST(Fold, KeepsWhatOthersSee) {
  Net b;
  const ValueId conv = b.Conv("conv", b.Input("x", {1, 2, 5, 5}), 2, 3);
  const ValueId scaled = b.Node("Mul", "scaled", {conv, b.Floats("s", {3, 1, 1}, {1, 2, 3})});
  const Graph both = b.Build({conv, scaled});
  EXPECT_EQ(Ops(After(both, "layout")), "Conv Mul");
  ExpectPassesKeepValues(both);
}

TEST(Fold, OnlyConstantsOfTheChannels) {
  Net b;
  const ValueId conv = b.Conv("conv", b.Input("x", {1, 2, 5, 5}), 2, 5);
  // Along the width, although the extents are equal.
  const ValueId sum = b.Node("Add", "sum", {conv, b.Floats("s", {5}, {1, 2, 3, 4, 5})});
  const Graph graph = b.Build({sum});
  EXPECT_EQ(Ops(After(graph, "layout")), "Conv+Add");
  EXPECT_EQ(After(graph, "layout").nodes[0].inputs.size(), 4u);
  ExpectPassesKeepValues(graph);
}

TEST(Fold, ShapeArithmeticVanishes) {
  GraphBuilder b;
  const ValueId x = b.Input("x", {2, 6});
  const ValueId shape = b.Node("Shape", "shape", {x});
  Graph graph = b.Build({x});
  EXPECT_TRUE(b.TryNode("Reshape", {x, shape}).code() == ErrorCode::kUnsupported);
  const ValueId y = b.Node("Reshape", "y", {x, b.Ints("s", {3, 4})});
  graph = b.Build({b.Node("Relu", "r", {y})});
  EXPECT_EQ(Ops(After(graph, "layout")), "Relu");
  ExpectPassesKeepValues(graph);
}

TEST(Simplify, PairsCancel) {
  GraphBuilder b;
  const ValueId x = b.Input("x", {2, 3, 4});
  const ValueId t = b.Node("Transpose", "t", {x}, {{"perm", Shape{0, 2, 1}}});
  const ValueId u = b.Node("Transpose", "u", {t}, {{"perm", Shape{0, 2, 1}}});
  const ValueId y = b.Node("Relu", "y", {u});
  EXPECT_EQ(Ops(After(b.Build({y}), "simplify")), "Relu");
}

TEST(Simplify, PaddingGoesIntoTheWindow) {
  Net b;
  const ValueId x = b.Input("x", {1, 2, 5, 5});
  const ValueId pad = b.Node("Pad", "pad", {x, b.Ints("pads", {0, 0, 1, 0, 0, 0, 0, 2})});
  const ValueId conv = b.Conv("conv", pad, 2, 3);
  const Graph graph = b.Build({conv});
  const Graph after = After(graph, "layout");
  EXPECT_EQ(Ops(after), "Conv");
  EXPECT_EQ(GetInts(after.nodes[0].attributes, "pads"), (Shape{2, 1, 1, 3}));
  ExpectPassesKeepValues(graph);
}

TEST(Fuse, ResidualGoesToTheLaterConvolution) {
  Net b;
  const ValueId x = b.Input("x", {1, 2, 5, 5});
  const ValueId first = b.Conv("first", x, 2, 2);
  const ValueId second = b.Conv("second", x, 2, 2);
  const ValueId sum = b.Node("Add", "sum", {first, second});
  const ValueId relu = b.Node("Relu", "relu", {sum});
  const Graph graph = b.Build({relu});
  const Graph after = After(graph, "layout");
  EXPECT_EQ(Ops(after), "Conv Conv+Add+Relu");
  EXPECT_EQ(after.nodes[1].name, "second");
  EXPECT_EQ(after.nodes[1].fused[0].inputs, (std::vector<int>{3, FusedOp::kChain}));
  ExpectPassesKeepValues(graph);
}

TEST(Fuse, DiamondsClose) {
  Net b;
  const ValueId conv = b.Conv("conv", b.Input("x", {1, 2, 5, 5}), 2, 2);
  const ValueId gate = b.Node("HardSigmoid", "gate", {conv});
  const ValueId swish = b.Node("Mul", "swish", {conv, gate});
  const Graph graph = b.Build({swish});
  const Graph after = After(graph, "layout");
  EXPECT_EQ(Ops(after), "Conv+HardSigmoid+Mul");
  EXPECT_EQ(after.nodes[0].fused[1].inputs, (std::vector<int>{-2, -1}));
  ExpectPassesKeepValues(graph);
}

TEST(Fuse, StopsWhereAValueIsSeen) {
  Net b;
  const ValueId conv = b.Conv("conv", b.Input("x", {1, 2, 5, 5}), 2, 2);
  const ValueId relu = b.Node("Relu", "relu", {conv});
  const ValueId twice = b.Node("Add", "twice", {relu, relu});
  const Graph graph = b.Build({twice, relu});
  EXPECT_EQ(Ops(After(graph, "layout")), "Conv+Relu Add");
  ExpectPassesKeepValues(graph);
  PassOptions off;
  off.fuse = false;
  Graph unfused = graph;
  ASSERT_TRUE(RunPasses(&unfused, off).ok());
  EXPECT_EQ(Ops(unfused), "Conv Relu Add");
}

TEST(Fuse, PoolingTakesAnEpilogueAndMapsJoin) {
  GraphBuilder b;
  const ValueId x = b.Input("x", {1, 3, 4, 4});
  const ValueId pool = b.Node("AveragePool", "pool", {x},
                              {{"kernel_shape", Shape{2, 2}}, {"pads", Shape{1, 1, 0, 0}}});
  const ValueId gate = b.Node("Sigmoid", "gate", {b.Node("Neg", "neg", {pool})});
  const ValueId soft = b.Node("Softmax", "soft", {gate}, {{"axis", int64_t{1}}});
  const ValueId y = b.Node("Mul", "y", {soft, b.Floats("c", {3, 1, 1}, {1, 2, 3})});
  const ValueId z = b.Node("Exp", "z", {b.Node("Sqrt", "r", {b.Node("Abs", "a", {x})})});
  const Graph graph = b.Build({y, z});
  EXPECT_EQ(Ops(After(graph, "layout")), "SumPool+Div+Neg+Sigmoid Softmax+Mul Abs+Sqrt+Exp");
  ExpectPassesKeepValues(graph);
}

TEST(Layout, ConcatIsWrittenByItsProducers) {
  Net b;
  const ValueId x = b.Input("x", {1, 2, 4, 4});
  const ValueId p = b.Conv("p", x, 2, 3), q = b.Conv("q", x, 2, 2);
  const ValueId c = b.Node("Concat", "c", {p, q}, {{"axis", int64_t{1}}});
  const Graph graph = b.Build({b.Conv("last", c, 5, 2)});
  const Graph after = After(graph, "layout");
  EXPECT_EQ(Ops(after), "Conv Conv Conv");
  const Value& part = after.values[Idx(after.nodes[1].outputs[0])];
  EXPECT_EQ(after.values[Idx(part.storage.root)].name, "c");
  EXPECT_EQ(part.storage.offset, 3 * 16);
  ExpectPassesKeepValues(graph);
}

// As in DenseNet: each concatenation begins with all of the one before.
TEST(Layout, ConcatOfNeighboursIsAView) {
  Net b;
  const ValueId x = b.Input("x", {1, 2, 4, 4});
  const ValueId p = b.Conv("p", x, 2, 3), q = b.Conv("q", x, 2, 2);
  const ValueId two = b.Node("Concat", "two", {p, q}, {{"axis", int64_t{1}}});
  const ValueId r = b.Conv("r", two, 5, 4);
  const ValueId last = b.Node("Concat", "last", {q, r}, {{"axis", int64_t{1}}});
  const ValueId other = b.Node("Concat", "other", {r, q}, {{"axis", int64_t{1}}});
  const ValueId three = b.Node("Concat", "three", {p, q, r}, {{"axis", int64_t{1}}});
  const Graph graph =
      b.Build({b.Conv("u", three, 9, 1), b.Conv("v", last, 6, 1), b.Conv("w", other, 6, 1)});
  const Graph after = After(graph, "layout");
  // Only `other` has its operands in another order.
  EXPECT_EQ(Ops(after), "Conv Conv Conv Copy Copy Conv Conv Conv");
  for (const Value& value : after.values) {
    if (value.name == "two") {
      EXPECT_EQ(after.values[Idx(value.storage.root)].name, "three");
      EXPECT_EQ(value.storage.offset, 0);
    }
    if (value.name == "last") {
      EXPECT_EQ(value.storage.offset, 3 * 16);
    }
  }
  ExpectPassesKeepValues(graph);
}

TEST(Layout, CopiesWhereNoViewWillDo) {
  Net b;
  const ValueId x = b.Input("x", {1, 2, 4, 4});
  const ValueId y = b.Node("Relu", "y", {x});
  // The same value twice, a graph input, a constant.
  const ValueId twice = b.Node("Concat", "twice", {y, y}, {{"axis", int64_t{1}}});
  const ValueId mixed = b.Node("Concat", "mixed", {x, b.Floats("k", {1, 2, 4, 4}, Pattern(32))},
                               {{"axis", int64_t{2}}});
  const Graph graph = b.Build({twice, mixed});
  EXPECT_EQ(Ops(After(graph, "layout")), "Relu Copy Copy Copy");
  ExpectPassesKeepValues(graph);
}

TEST(Layout, OutputsOfTheirOwn) {
  GraphBuilder b;
  const ValueId x = b.Input("x", {2, 3});
  const ValueId same = b.Node("Identity", "same", {x});
  const ValueId turned = b.Node("Transpose", "turned", {x});
  const ValueId y = b.Node("Relu", "y", {x});
  const ValueId flat = b.Node("Reshape", "flat", {y, b.Ints("s", {6})});
  const Graph graph = b.Build({same, turned, y, flat});
  EXPECT_EQ(Ops(After(graph, "layout")), "Copy Copy Relu Copy");
  ExpectPassesKeepValues(graph);
}

TEST(Layout, ReshapeOfATransposeCopiesOnce) {
  GraphBuilder b;
  const ValueId x = b.Input("x", {2, 3, 4});
  const ValueId t = b.Node("Transpose", "t", {x}, {{"perm", Shape{2, 0, 1}}});
  const ValueId r = b.Node("Reshape", "r", {t, b.Ints("s", {8, 3})});
  const Graph graph = b.Build({b.Node("Relu", "y", {r})});
  // 4 and 2 are not contiguous in x: no view of the reshape exists.
  EXPECT_EQ(Ops(After(graph, "layout")), "Copy Relu");
  ExpectPassesKeepValues(graph);
}

TEST(Layout, ShuffleIsWrittenInPlace) {
  Net b;
  const ValueId conv = b.Conv("conv", b.Input("x", {1, 2, 3, 3}), 2, 6);
  const ValueId r = b.Node("Reshape", "r", {conv, b.Ints("s", {1, 2, 3, 3, 3})});
  const ValueId t = b.Node("Transpose", "t", {r}, {{"perm", Shape{0, 2, 1, 3, 4}}});
  const ValueId q = b.Node("Reshape", "q", {t, b.Ints("u", {1, 6, 3, 3})});
  const Graph graph = b.Build({b.Conv("next", q, 6, 2)});
  ExpectPassesKeepValues(graph);
}

// What only the array reads and what lies between groups is stored in half precision; ports and the
// operands of vector work keep their types.
TEST(Precision, StoresHalvesBetweenGroups) {
  GraphBuilder b;
  const ValueId x = b.Input("x", {1, 2, 6, 6});
  const ValueId w = b.Floats("w", {2, 2, 3, 3}, Pattern(36));
  const ValueId bias = b.Floats("bias", {2}, {1, 2});
  const ValueId conv = b.Node("Conv", "conv", {x, w, bias});
  const ValueId soft = b.Node("Softmax", "soft", {conv}, {{"axis", int64_t{1}}});
  const ValueId second = b.Node("Conv", "second", {soft, w});
  Graph graph = b.Build({second});
  ASSERT_TRUE(RunPasses(&graph, {.precision = ElementType::kF16}).ok());
  std::map<std::string, ElementType> stored;
  for (const Value& value : graph.values) stored[value.name] = value.StoredType();
  EXPECT_EQ(stored, (std::map<std::string, ElementType>{{"x", ElementType::kF32},
                                                        {"w", ElementType::kF16},
                                                        {"bias", ElementType::kF32},
                                                        {"conv", ElementType::kF16},
                                                        {"soft", ElementType::kF16},
                                                        {"second", ElementType::kF32}}));
  // The weight's errors cancel along what is summed; the text form keeps that.
  EXPECT_EQ(graph.values[Idx(graph.nodes[0].inputs[1])].storage.summed_axes, std::pair(1, 4));
  const auto parsed = ParseGraph(PrintGraph(graph), LargeConstants(graph));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_TRUE(SameGraph(graph, *parsed));
  const auto nest = BuildNest(graph, graph.nodes[0]);
  ASSERT_TRUE(nest.ok());
  EXPECT_EQ(nest->operands[Nest::kInput].read_as, ElementType::kF16);
  EXPECT_EQ(nest->operands[Nest::kWeight].read_as, std::nullopt);
  EXPECT_EQ(nest->operands[Nest::kWeight].type, ElementType::kF16);
}

TEST(Precision, TellsOfConstantsThatBecomeInfinite) {
  GraphBuilder b;
  const ValueId x = b.Input("x", {1, 1, 2, 2});
  const float infinity = std::numeric_limits<float>::infinity();
  const ValueId w = b.Floats("w", {5, 1, 1, 1}, {65519, 65520, -1e6f, infinity, 1});
  // Vector work keeps its constants: nothing to tell of `k`.
  const ValueId k = b.Floats("k", {5, 1, 1}, {1e6f, 1, 1, 1, 1});
  const ValueId y = b.Node("Max", "y", {b.Node("Conv", "conv", {x, w}), k});
  Graph graph = b.Build({y});
  Graph single = graph;
  ASSERT_TRUE(RunPasses(&graph, {.precision = ElementType::kF16}).ok());
  EXPECT_EQ(OverflowingConstants(graph),
            (std::vector<std::string>{"constant 'w': 2 of 5 elements are too large for f16 and "
                                      "become infinite"}));
  ASSERT_TRUE(RunPasses(&single, {}).ok());
  EXPECT_TRUE(OverflowingConstants(single).empty());
}

}  // namespace
}  // namespace dla::ir
