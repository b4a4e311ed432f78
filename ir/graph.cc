#include "ir/graph.h"

namespace dla::ir {

int64_t ElementCount(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

Shape DenseStrides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

std::vector<ComputedValue> ComputedValues(const Graph& graph) {
  std::vector<ComputedValue> computed;
  for (const Node& node : graph.nodes) {
    for (const ValueId output : node.outputs) {
      if (output == kNoValue) continue;
      computed.push_back({graph.values[static_cast<size_t>(output)].name, node.name});
    }
  }
  return computed;
}

}  // namespace dla::ir
