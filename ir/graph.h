// The compiler's graph: values with static types and shapes, nodes in topological order.
//
// Everything else in ir/ reads or rewrites this structure. Parts refer to each other by index
// (ValueId, NodeId), never by pointer. A pass is a function from graph to graph; ir/verifier.h
// checks the result of each. After the fuse pass every node is one group: an anchor with the
// element-wise work fused to it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "support/element_type.h"

namespace dla::ir {

using ValueId = int32_t;
using NodeId = int32_t;
using Shape = std::vector<int64_t>;
inline constexpr ValueId kNoValue = -1;  // an absent optional input

// Elements of a shape; the shape was checked when it was made, so this does not overflow.
int64_t ElementCount(const Shape& shape);
// Strides, in elements, of a dense row-major tensor of this shape.
Shape DenseStrides(const Shape& shape);

// The bytes of a constant, dense row-major little-endian, shared and never written again.
// `bytes` may alias a memory-mapped file that `owner` keeps alive; large weights are not copied.
struct Constant {
  const uint8_t* bytes = nullptr;
  int64_t size_bytes = 0;
  std::shared_ptr<const void> owner;
};

// Where a value's elements lie in DRAM: a strided view of the dense buffer of `root`. A value
// that is its own root with offset 0 and dense strides is stored plainly. The layout pass makes
// concatenations, slices, reshapes and transposes into views, so that they cost nothing.
struct Storage {
  ValueId root = kNoValue;
  int64_t offset = 0;  // elements
  Shape strides;       // elements, one an axis
  // The type of the elements in the buffer, where that is not the value's: set by the precision
  // pass. A result is rounded to it once, where its group stores it.
  std::optional<ElementType> type;
  // Axes [first, second) of a constant whose products a contraction sums: it is rounded along them
  // (ir/rounding.h); 0, 0: to nearest.
  std::pair<int, int> summed_axes = {0, 0};
  bool operator==(const Storage&) const = default;
};

struct Value {
  // The ONNX name; unique in the graph, but that an output may copy the input of its name.
  std::string name;
  ElementType type = ElementType::kF32;
  Shape shape;
  std::shared_ptr<const Constant> constant;  // null: computed or a graph input
  Storage storage;                           // set by the layout pass; before it root == kNoValue

  ElementType StoredType() const { return storage.type.value_or(type); }
};

using Attribute =
    std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>>;

// An element-wise operation fused behind an anchor. The chain's values are numbered: the anchor's
// result is chain value 0, the result of fused[k] is chain value k + 1. An operand >= 0 is a
// position in the node's `inputs`; a negative one counts back along the chain: kChain (-1) is the
// result just before this operation, -2 the one before that, and so on, so that for fused[k] the
// operand -j is chain value k + 1 - j. Only the last chain value leaves the node.
// The anchor's own operands fill the first places of `inputs`, as many as its row in the operator
// table allows (absent ones kNoValue); operands of fused operations stand behind them.
struct FusedOp {
  static constexpr int kChain = -1;
  std::string op;
  std::vector<int> inputs;
  std::map<std::string, Attribute> attributes;
  bool operator==(const FusedOp&) const = default;
};

struct Node {
  std::string name;  // the ONNX node's name, or one made from its output where it has none
  std::string op;    // a name of the operator table (ir/op.h)
  std::vector<ValueId> inputs;  // kNoValue where an optional input is absent
  std::vector<ValueId> outputs;
  std::map<std::string, Attribute> attributes;
  std::vector<FusedOp> fused;           // applied to outputs[0], in order
  std::vector<std::string> onnx_nodes;  // names of all ONNX nodes that became part of this one
  int opset = 0;                        // opset of the ONNX node, for messages
};

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;  // topological order
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  // The type to which the array rounds f32 operands of contractions before it multiplies; none: it
  // multiplies them as they are. Set by the precision pass.
  std::optional<ElementType> array_type;
};

// A value that a node computes, by name, and that node.
struct ComputedValue {
  std::string value, node;
};
// In the order of the nodes. Taken after import, it says what the model's values are, whatever
// passes do to the graph later.
std::vector<ComputedValue> ComputedValues(const Graph& graph);

}  // namespace dla::ir
