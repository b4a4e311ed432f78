// Random small graphs: every pass keeps the values, and the nests compute what the evaluator does.
#include <gtest/gtest.h>

#include <random>

#include "tests/ir/graph_builder.h"

namespace dla::ir {
namespace {

class RandomGraph {
 public:
  explicit RandomGraph(uint32_t seed) : random_(seed) {}

  Graph Make() {
    pool_.push_back(builder_.Input("x", {Pick(1, 2), Pick(1, 4), Pick(3, 7), Pick(3, 7)}));
    const int64_t count = Pick(3, 9);
    for (int64_t i = 0; i < count; ++i) AddNode("n" + std::to_string(i));
    std::vector<ValueId> outputs = {pool_.back()};
    const ValueId other = Any();
    if (other != outputs[0] && other != pool_[0]) outputs.push_back(other);
    return builder_.Build(outputs);
  }

 private:
  int64_t Pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  ValueId Any() { return pool_[Idx(Pick(0, static_cast<int64_t>(pool_.size()) - 1))]; }
  // The latest value more often than others, so that chains form.
  ValueId Recent() { return Pick(0, 2) > 0 ? pool_.back() : Any(); }
  Shape ShapeOf(ValueId id) { return builder_.Build({}).values[Idx(id)].shape; }

  void AddNode(const std::string& name) {
    const ValueId x = Recent();
    const Shape shape = ShapeOf(x);
    switch (Pick(0, 10)) {
      case 10:
        return AddGather(name, x);
      case 0:
      case 1:
        return AddConv(name, x, shape);
      case 2: {
        const int64_t k = Pick(1, 2);
        return Push("MaxPool", name, {x},
                    {{"kernel_shape", Shape{k, k}},
                     {"strides", Shape{Pick(1, 2), 1}},
                     {"pads", Shape{k - 1, 0, 0, k - 1}}});
      }
      case 3:
        return Push("Concat", name, {x, SameOr(x, shape)}, {{"axis", Pick(0, 3)}});
      case 4:
        return Push("Transpose", name, {x}, {{"perm", RandomPermutation()}});
      case 5:
        return Push("Softmax", name, {x}, {{"axis", Pick(-4, 3)}});
      case 6: {
        const int64_t axis = Pick(1, 3);
        return Push("Slice", name,
                    {x, builder_.Ints(name + ".s", {Pick(0, shape[Idx(axis)] - 1)}),
                     builder_.Ints(name + ".e", {1000}), builder_.Ints(name + ".a", {axis}),
                     builder_.Ints(name + ".t", {Pick(1, 2)})});
      }
      case 7:
        return Push("GlobalAveragePool", name, {x});
      default:
        return AddMap(name, x, shape);
    }
  }

  void AddConv(const std::string& name, ValueId x, const Shape& shape) {
    const bool depthwise = Pick(0, 2) == 0;
    const int64_t groups = depthwise ? shape[1] : 1;
    const int64_t m = depthwise ? shape[1] : Pick(1, 4), c = shape[1] / groups;
    const int64_t k = Pick(1, 3);
    const ValueId w =
        builder_.Floats(name + ".w", {m, c, k, k}, Pattern(m * c * k * k, static_cast<int>(k)));
    Push("Conv", name, {x, w},
         {{"group", groups},
          {"strides", Shape{Pick(1, 2), Pick(1, 2)}},
          {"pads", Shape{k - 1, k / 2, k - 1, k}}});
  }

  // Indices that are computed: those of the largest entries.
  void AddGather(const std::string& name, ValueId x) {
    const int64_t axis = Pick(0, 3);
    const AttributeMap along = {{"axis", axis}};
    const ValueId largest =
        builder_.Node("ArgMax", name + ".i", {x}, {{"axis", axis}, {"keepdims", Pick(0, 1)}});
    if (ShapeOf(largest).size() == 4) return Push("GatherElements", name, {x, largest}, along);
    const ValueId list =
        builder_.Node("Reshape", name + ".l", {largest, builder_.Ints(name + ".f", {-1})});
    Push("Gather", name, {x, list}, along);
  }

  void AddMap(const std::string& name, ValueId x, const Shape& shape) {
    static const char* const kUnary[] = {"Relu", "HardSigmoid", "Neg", "Tanh"};
    static const char* const kBinary[] = {"Add", "Mul", "Sub", "Max"};
    if (Pick(0, 1) == 0) return Push(kUnary[Pick(0, 3)], name, {x});
    ValueId other = SameOr(x, shape);
    const int64_t form = Pick(0, 3);
    if (form == 0) other = builder_.Floats(name + ".k", {shape[1], 1, 1}, Pattern(shape[1], 3));
    if (form == 1) other = builder_.Floats(name + ".k", {}, {0.75f});
    if (Pick(0, 3) == 0) std::swap(x, other);
    Push(kBinary[Pick(0, 3)], name, {x, other});
  }

  // Another value of that shape, if there is one.
  ValueId SameOr(ValueId x, const Shape& shape) {
    const ValueId other = Any();
    return ShapeOf(other) == shape ? other : x;
  }

  Shape RandomPermutation() {
    Shape perm = {0, 1, 2, 3};
    for (size_t i = 3; i > 0; --i) std::swap(perm[i], perm[Idx(Pick(0, static_cast<int64_t>(i)))]);
    return perm;
  }

  void Push(const std::string& op, const std::string& name, const std::vector<ValueId>& inputs,
            AttributeMap attributes = {}) {
    pool_.push_back(builder_.Node(op, name, inputs, std::move(attributes)));
  }

  std::mt19937 random_;
  GraphBuilder builder_;
  std::vector<ValueId> pool_;
};

TEST(RandomGraphs, PassesAndNestsKeepValues) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    // Folding scales into weights rounds differently.
    ExpectPassesKeepValues(RandomGraph(seed).Make(), 2e-6f);
    if (HasFailure()) break;
  }
}

}  // namespace
}  // namespace dla::ir
