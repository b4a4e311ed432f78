// Random chains of windows, for cascades and slices.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "support/status.h"
#include "tests/ir/graph_builder.h"

namespace dla::testing {

// Convolutions (dense, grouped, depth-wise), pooling, residual additions and forks: two branches
// with windows of their own that read the same value and are added.
class RandomChain {
 public:
  explicit RandomChain(std::mt19937* random) : random_(*random) {}

  ir::Graph Make() {
    ir::ValueId x = builder_.Input("x", {1, Pick(1, 6), Pick(7, 24), Pick(3, 12)});
    std::vector<ir::ValueId> values = {x};
    const int64_t count = Pick(2, 7);
    for (int64_t i = 0; i < count; ++i) {
      const std::string name = "n" + std::to_string(i);
      const ir::Shape shape = ShapeOf(x);
      if (shape[2] < 4 || shape[3] < 2) break;
      x = Pick(0, 3) == 0   ? Fork(name, x, shape)
          : Pick(0, 5) == 0 ? Pool(name, x)
                            : Conv(name, x, shape);
      for (const ir::ValueId other : values) {
        if (ShapeOf(other) == ShapeOf(x) && Pick(0, 1) == 0) {
          x = builder_.Node("Add", name + ".add", {x, other});
          break;
        }
      }
      if (Pick(0, 1) == 0) x = builder_.Node("Relu", name + ".relu", {x});
      values.push_back(x);
    }
    std::vector<ir::ValueId> outputs = {x};
    const ir::ValueId other =
        values[static_cast<size_t>(Pick(1, static_cast<int64_t>(values.size()) - 1))];
    if (Pick(0, 2) == 0 && other != x) outputs.push_back(other);
    return builder_.Build(outputs);
  }

  int64_t Pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  ir::Shape ShapeOf(ir::ValueId id) {
    return builder_.Build({}).values[static_cast<size_t>(id)].shape;
  }

  ir::ValueId Pool(const std::string& name, ir::ValueId x) {
    const int64_t k = Pick(2, 3);
    return builder_.Node("MaxPool", name, {x},
                         {{"kernel_shape", ir::Shape{k, k}},
                          {"strides", ir::Shape{Pick(1, 2), 1}},
                          {"pads", ir::Shape{k - 2, k - 2, 1, 1}}});
  }

  // Branches of one to three windows: they read the same lines of x at different times.
  ir::ValueId Fork(const std::string& name, ir::ValueId x, const ir::Shape& shape) {
    const int64_t stride = Pick(1, 2);
    const auto branch = [&](const std::string& side) {
      ir::ValueId y = Same(name + side, x, shape[1], stride);
      for (int64_t more = Pick(0, 2); more > 0; --more) {
        y = Same(Concat(name, side, more), y, shape[1], 1);
      }
      return y;
    };
    const ir::ValueId a = branch(".a");
    return builder_.Node("Add", name + ".join", {a, branch(".b")});
  }

  // As many channels as x has, ceil(H / stride) lines.
  ir::ValueId Same(const std::string& name, ir::ValueId x, int64_t c, int64_t stride) {
    const int64_t k = Pick(1, 5);
    const ir::AttributeMap window = {{"kernel_shape", ir::Shape{k, 1}},
                                     {"strides", ir::Shape{stride, 1}},
                                     {"auto_pad", std::string("SAME_UPPER")}};
    if (Pick(0, 1) == 0) return builder_.Node("MaxPool", name, {x}, window);
    const ir::ValueId w = builder_.Floats(name + ".w", {c, c, k, 1}, ir::Pattern(c * c * k));
    return builder_.Node("Conv", name, {x, w}, window);
  }

  ir::ValueId Conv(const std::string& name, ir::ValueId x, const ir::Shape& shape) {
    const int64_t form = Pick(0, 3);
    const int64_t groups = form == 0 ? shape[1] : form == 1 && shape[1] % 2 == 0 ? 2 : 1;
    const int64_t m = groups > 1 ? shape[1] : Pick(0, 2) == 0 ? shape[1] : Pick(1, 6);
    const int64_t c = shape[1] / groups;
    const int64_t k = 2 * Pick(0, 2) + 1;
    const int64_t pad = Pick(0, 3) == 0 && k < 5 ? 0 : k / 2;
    const int64_t stride = Pick(0, 3) == 0 ? 2 : 1;
    const ir::ValueId w = builder_.Floats(
        name + ".w", {m, c, k, 3}, ir::Pattern(m * c * k * 3, static_cast<int>(Pick(0, 22))));
    std::vector<ir::ValueId> inputs = {x, w};
    if (Pick(0, 1) == 0) inputs.push_back(builder_.Floats(name + ".b", {m}, ir::Pattern(m)));
    return builder_.Node("Conv", name, inputs,
                         {{"group", groups},
                          {"dilations", ir::Shape{k == 3 && pad > 0 ? Pick(1, 2) : 1, 1}},
                          {"strides", ir::Shape{stride, Pick(1, 2)}},
                          {"pads", ir::Shape{pad, 1, pad, 1}}});
  }

  std::mt19937& random_;
  ir::GraphBuilder builder_;
};

}  // namespace dla::testing
