// The text form prints and parses back; what does not parse says where and why.
#include "ir/text.h"

#include <gtest/gtest.h>

#include <limits>

#include "ir/pass.h"
#include "tests/ir/graph_builder.h"

namespace dla::ir {
namespace {

Graph Sample() {
  GraphBuilder b;
  const ValueId x = b.Input("a \"name\"\\\n", {1, 2, 5, 5});
  const ValueId conv = b.Node("Conv", "conv", {x, b.Floats("w", {3, 2, 3, 3}, Pattern(54))},
                              {{"auto_pad", std::string("SAME_UPPER")}});
  const ValueId relu = b.Node("Clip", "clip", {conv}, {{"min", 0.1f}});
  const ValueId scaled = b.Node("Mul", "s", {relu, b.Floats("k", {3, 1, 1}, {1, -0.0f, 1e-30f})});
  return b.Build({scaled});
}

TEST(Text, RoundTripAfterEveryPass) {
  Graph graph = Sample();
  int dumps = 0;
  PassOptions options;
  options.precision = ElementType::kF16;
  options.dump = [&](std::string_view pass, const Graph& now) {
    ++dumps;
    const std::string text = PrintGraph(now);
    const auto parsed = ParseGraph(text, LargeConstants(now));
    ASSERT_TRUE(parsed.ok()) << pass << ": " << parsed.status().message();
    EXPECT_TRUE(SameGraph(now, *parsed)) << pass;
    EXPECT_EQ(PrintGraph(*parsed), text) << pass;
  };
  ASSERT_TRUE(RunPasses(&graph, options).ok());
  EXPECT_EQ(dumps, static_cast<int>(PassTable().size()) + 1);  // and after the import
  EXPECT_NE(PrintGraph(graph).find("\narray f16\n"), std::string::npos);
}

TEST(Text, AttributesOfAllKinds) {
  GraphBuilder b;
  Graph graph = b.Build({b.Input("x", {})});
  Node node;
  node.name = "n";
  node.op = "Op";
  node.inputs = {0, kNoValue};
  node.outputs = {0};
  node.attributes = {{"f", 0.1f},
                     {"inf", -std::numeric_limits<float>::infinity()},
                     {"fs", std::vector<float>{1, 2.5f}},
                     {"nofs", std::vector<float>{}},
                     {"i", int64_t{-3}},
                     {"is", Shape{1, -2}},
                     {"nois", Shape{}},
                     {"s", std::string("\x01|{,}")}};
  node.fused = {{"Relu", {FusedOp::kChain}, {}}, {"Clip", {-2}, {{"max", 6.0f}}}};
  node.onnx_nodes = {"a", "b"};
  graph.nodes = {node};
  const auto parsed = ParseGraph(PrintGraph(graph));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_TRUE(SameGraph(graph, *parsed)) << PrintGraph(*parsed);
  EXPECT_EQ(parsed->nodes[0].attributes, node.attributes);
}

TEST(Text, LargeConstantsAreNamedByDigest) {
  const Graph graph = Sample();
  const std::string text = PrintGraph(graph);
  EXPECT_NE(text.find("= digest "), std::string::npos);
  EXPECT_NE(text.find("= hex 0000803f000000806042a20d"), std::string::npos) << text;
  const auto without = ParseGraph(text);
  ASSERT_FALSE(without.ok());
  EXPECT_EQ(without.status().code(), ErrorCode::kMalformed);
  EXPECT_NE(without.status().message().find("no constant with digest"), std::string::npos);
}

TEST(Text, DifferentConstantsDiffer) {
  GraphBuilder b, c;
  const Graph x = b.Build({b.Floats("w", {32}, Pattern(32, 1))});
  const Graph y = c.Build({c.Floats("w", {32}, Pattern(32, 2))});
  EXPECT_FALSE(SameGraph(x, y));
  EXPECT_NE(PrintGraph(x), PrintGraph(y));
}

TEST(Text, ErrorsNameTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"grph \"x\"", "line 1: graph, value, inputs, outputs or node expected before 'grph \"x\"'"},
      {"graph \"x", "line 1: the text has no closing quote at the end of the line"},
      {"graph \"x\"\nvalue %1 \"a\" f32 []", "line 2: value %0 expected before '\"a\" f32 []'"},
      {"value %0 \"a\" f33 []", "line 1: an element type expected before '[]'"},
      {"value %0 \"a\" f32 [1,]", "line 1: a number expected before ']'"},
      {"value %0 \"a\" f32 [1] = hex 0", "line 1: two hexadecimal digits expected before '0'"},
      {"inputs (%99999999999)", "line 1: a number expected before '99999999999)'"},
      {"node \"n\" Op 1 () -> () {a=} from ()", "line 1: a number expected before '} from ()'"},
      {"outputs () x", "line 1: nothing more expected before 'x'"},
  };
  for (const auto& [text, message] : cases) {
    const auto graph = ParseGraph(text);
    ASSERT_FALSE(graph.ok()) << text;
    EXPECT_EQ(graph.status().message(), message);
  }
}

}  // namespace
}  // namespace dla::ir
