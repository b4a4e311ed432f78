// Each fault is found, and all of them at once.
#include "ir/verifier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "ir/disjoint.h"
#include "ir/pass.h"
#include "tests/ir/graph_builder.h"
#include "tests/random_pick.h"

namespace dla::ir {
namespace {

Graph Sound() {
  GraphBuilder b;
  const ValueId x = b.Input("x", {1, 2, 4, 4});
  const ValueId p = b.Node("Relu", "p", {x}), q = b.Node("Neg", "q", {x});
  const ValueId c = b.Node("Concat", "c", {p, q}, {{"axis", int64_t{1}}});
  const ValueId y = b.Node("MaxPool", "y", {c}, {{"kernel_shape", Shape{2, 2}}});
  return b.Build({b.Node("Mul", "z", {y, b.Floats("k", {3}, {1, 2, 3})})});
}

Graph Placed() {
  Graph graph = Sound();
  EXPECT_TRUE(RunPasses(&graph).ok());
  return graph;
}

Value& Named(Graph* graph, const std::string& name) {
  for (Value& value : graph->values) {
    if (value.name == name) return value;
  }
  ADD_FAILURE() << "no value " << name;
  return graph->values[0];
}

using Faults = std::vector<std::string>;

TEST(Verifier, SoundGraphsPass) {
  EXPECT_EQ(VerifyFaults(Sound()), Faults());
  EXPECT_EQ(VerifyFaults(Placed()), Faults());
}

TEST(Verifier, Structure) {
  Graph graph = Sound();
  graph.values[1].name = "x";
  graph.nodes[0].inputs[0] = 77;
  EXPECT_EQ(VerifyFaults(graph),
            (Faults{"value 'x': the name is not unique", "node 'p': value 77 does not exist"}));
  graph = Sound();
  Named(&graph, "k").shape = {4};
  EXPECT_EQ(VerifyFaults(graph), (Faults{"value 'k': 12 bytes for 4 elements of f32"}));
  graph = Sound();
  Named(&graph, "k").shape = {-1};
  EXPECT_EQ(VerifyFaults(graph), (Faults{"value 'k': the shape -1 is not possible"}));
}

TEST(Verifier, OrderAndDefinitions) {
  Graph graph = Sound();
  std::swap(graph.nodes[0], graph.nodes[2]);
  EXPECT_EQ(VerifyFaults(graph),
            (Faults{"node 'c' (Concat): operand 'p' is not computed before it",
                    "node 'c' (Concat): operand 'q' is not computed before it"}));
  graph = Sound();
  graph.nodes[1].outputs = graph.nodes[0].outputs;
  EXPECT_EQ(VerifyFaults(graph),
            (Faults{"node 'q' (Neg): result 'p' is defined twice",
                    "node 'c' (Concat): operand 'q' is not computed before it"}));
  graph = Sound();
  graph.nodes.pop_back();
  EXPECT_EQ(VerifyFaults(graph), (Faults{"output 'z' is not computed"}));
}

TEST(Verifier, TypesAndShapes) {
  Graph graph = Sound();
  Named(&graph, "y").shape = {1, 4, 3, 4};
  EXPECT_EQ(
      VerifyFaults(graph),
      (Faults{"node 'y' (MaxPool): result 'y' is f32 1x4x3x4, inferred f32 1x4x3x3",
              "node 'z' (Mul): the operands have shapes 1x4x3x4 and 3, which do not broadcast"}));
  graph = Sound();
  graph.nodes[0].op = "Frobnicate";
  EXPECT_EQ(VerifyFaults(graph), (Faults{"node 'p' (Frobnicate): no such operator"}));
  graph = Sound();
  graph.nodes[4].inputs.pop_back();
  EXPECT_EQ(VerifyFaults(graph), (Faults{"node 'z' (Mul): 1 operands, at least 2"}));
}

TEST(Verifier, FusedOperations) {
  Graph graph = Placed();
  Node& pool = graph.nodes.back();
  ASSERT_EQ(pool.fused.size(), 1u);
  FusedOp& op = pool.fused[0];
  op.inputs = {-2, 1};
  EXPECT_EQ(VerifyFaults(graph),
            (Faults{"node 'y' (MaxPool): fused Mul has the operand -2, which is not there"}));
  op.inputs = {-1, 2};
  EXPECT_EQ(VerifyFaults(graph),
            (Faults{"node 'y' (MaxPool): fused Mul has the operand 2, which is not there"}));
  op.inputs = {-1};
  EXPECT_EQ(VerifyFaults(graph), (Faults{"node 'y' (MaxPool): fused Mul has 1 operands"}));
  op.op = "Conv";
  EXPECT_EQ(VerifyFaults(graph), (Faults{"node 'y' (MaxPool): fused Conv is not element-wise"}));
}

TEST(Verifier, Storage) {
  Graph graph = Placed();
  Value& q = Named(&graph, "q");
  const Storage good = q.storage;
  EXPECT_EQ(good.offset, 32);
  q.storage.offset = 33;
  EXPECT_EQ(VerifyFaults(graph),
            (Faults{"value 'q': its elements 33 to 64 do not lie in root 'c' of 64"}));
  q.storage.offset = 31;
  EXPECT_EQ(VerifyFaults(graph), (Faults{"value 'q' is written over elements of 'c' that are "
                                         "written already"}));
  q.storage = good;
  q.storage.root = Named(&graph, "p").storage.root - 1;
  EXPECT_FALSE(VerifyFaults(graph).empty());
  q.storage = good;
  q.storage.strides.pop_back();
  EXPECT_EQ(VerifyFaults(graph), (Faults{"value 'q': 3 strides for rank 4"}));
  q.storage = good;
  Named(&graph, "c").storage.offset = 1;
  EXPECT_FALSE(VerifyFaults(graph).empty());
}

// Random slices, phases and permuted views of a root: what is called disjoint has no element in
// common (a walk says so), and parts of concatenations and interleavings are recognised.
TEST(AreDisjointBoxes, NeverWrongAndKnowsParts) {
  constexpr uint32_t kSeed = 3;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  const RandomPick pick(&random);
  int recognised = 0, really = 0;
  for (int run = 0; run < 20000; ++run) {
    Value root;
    for (int64_t d = pick(1, 3); d > 0; --d) root.shape.push_back(pick(1, 6));
    const Shape strides = DenseStrides(root.shape);
    std::vector<Value> values(2);
    for (Value& view : values) {
      for (size_t i = 0; i < root.shape.size(); ++i) {
        const int64_t begin = pick(0, root.shape[i] - 1), step = pick(1, 3);
        view.storage.offset += begin * strides[i];
        view.storage.strides.push_back(step * strides[i]);
        view.shape.push_back(pick(1, (root.shape[i] - 1 - begin) / step + 1));
      }
      for (size_t i = view.shape.size(); i-- > 1;) {  // neighbours without gaps as one axis
        Shape& steps = view.storage.strides;
        if (pick(0, 1) == 0 || steps[i - 1] != steps[i] * view.shape[i]) continue;
        view.shape[i - 1] *= view.shape[i];
        steps[i - 1] = steps[i];
        view.shape.erase(view.shape.begin() + static_cast<int64_t>(i));
        steps.erase(steps.begin() + static_cast<int64_t>(i));
      }
      if (pick(0, 3) == 0) {
        std::reverse(view.shape.begin(), view.shape.end());
        std::reverse(view.storage.strides.begin(), view.storage.strides.end());
      }
    }
    std::set<int64_t> seen;
    size_t elements = 0;
    for (const Value& view : values) {
      std::vector<int64_t> places = {view.storage.offset};
      for (size_t i = 0; i < view.shape.size(); ++i) {
        std::vector<int64_t> next;
        for (const int64_t at : places) {
          for (int64_t k = 0; k < view.shape[i]; ++k) {
            next.push_back(at + k * view.storage.strides[i]);
          }
        }
        places = std::move(next);
      }
      elements += places.size();
      seen.insert(places.begin(), places.end());
    }
    const bool disjoint = seen.size() == elements;
    const bool said = AreDisjointBoxes(root, {&values[0], &values[1]});
    ASSERT_TRUE(disjoint || !said) << "run " << run;
    really += disjoint;
    recognised += said;
  }
  EXPECT_GT(recognised, really * 9 / 10);
}

}  // namespace
}  // namespace dla::ir
