// precision: in which type f32 values are stored and multiplied, where that is not f32.
//
// What a group computes and another reads is rounded once, where it is stored; so is a constant
// that only the array reads. Graph inputs and outputs keep the types of the model: the array rounds
// an operand when it reads one, and a drained tile has the type of the place that it goes to.
// Constants that a contraction sums over are rounded so that their errors cancel (ir/rounding.h).
// Accumulators, vector arithmetic and the constants of vector work (bias, scales) stay f32.
#include <cstring>
#include <string>
#include <vector>

#include "ir/op.h"
#include "ir/pass.h"
#include "ir/passes/passes.h"
#include "ir/tensor.h"
#include "support/half.h"

namespace dla::ir {
namespace {

// By root: whether something other than the array's first two operands reads it.
std::vector<bool> ReadByVectorWork(const Graph& graph) {
  std::vector<bool> read(graph.values.size());
  for (const Node& node : graph.nodes) {
    const bool contracts = FindOperator(node.op)->kind == OpKind::kContraction;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue || (contracts && i < 2)) continue;
      read[Idx(graph.values[Idx(node.inputs[i])].storage.root)] = true;
    }
  }
  return read;
}

// Tells constants that contractions read the axes along which they are summed.
void TellSummedAxes(Graph* graph) {
  for (const Node& node : graph->nodes) {
    if (FindOperator(node.op)->kind != OpKind::kContraction) continue;
    for (size_t i = 0; i < 2; ++i) {
      Value& value = graph->values[Idx(node.inputs[i])];
      const int rank = static_cast<int>(value.shape.size());
      const bool plain = value.constant != nullptr && value.storage.root == node.inputs[i];
      if (!plain || value.StoredType() == value.type || rank < 2) continue;
      if (value.storage.summed_axes.second > 0) continue;  // as its first reader has it
      if (node.op == "MatMul") {
        const bool last = i == 0 ? GetInt(node.attributes, "trans_a", 0) == 0
                                 : GetInt(node.attributes, "trans_b", 0) != 0;
        value.storage.summed_axes =
            last ? std::pair(rank - 1, rank) : std::pair(rank - 2, rank - 1);
      } else if (i == 1) {
        value.storage.summed_axes = {1, rank};  // all but the output channels
      }
    }
  }
}

}  // namespace

std::vector<std::string> OverflowingConstants(const Graph& graph) {
  std::vector<std::string> warnings;
  for (const Value& value : graph.values) {
    if (value.constant == nullptr || value.StoredType() == value.type) continue;
    const bool bf16 = value.StoredType() == ElementType::kBF16;
    const int64_t elements = ElementCount(value.shape);
    int64_t count = 0;
    for (int64_t i = 0; i < elements; ++i) {
      float number;
      std::memcpy(&number, value.constant->bytes + i * 4, sizeof(number));
      count += (bf16 ? OverflowsBFloat16(number) : OverflowsHalf(number)) ? 1 : 0;
    }
    if (count == 0) continue;
    warnings.push_back(Concat("constant '", value.name, "': ", count, " of ", elements,
                              " elements are too large for ", TypeName(value.StoredType()),
                              " and become infinite"));
  }
  return warnings;
}

Status Precision(Graph* graph, const PassOptions& options) {
  if (options.precision == ElementType::kF32) return {};
  const std::vector<bool> by_vector_work = ReadByVectorWork(*graph);
  std::vector<bool> converts(graph->values.size());
  for (size_t i = 0; i < graph->values.size(); ++i) {
    const Value& value = graph->values[i];
    converts[i] = value.storage.root == static_cast<ValueId>(i) &&
                  value.type == ElementType::kF32 &&
                  !(value.constant != nullptr && by_vector_work[i]);
  }
  for (const ValueId id : graph->inputs) converts[Idx(id)] = false;
  for (const ValueId id : graph->outputs) converts[Idx(id)] = false;
  for (Value& value : graph->values) {
    if (value.storage.root != kNoValue && converts[Idx(value.storage.root)]) {
      value.storage.type = options.precision;
    }
  }
  graph->array_type = options.precision;
  TellSummedAxes(graph);
  return {};
}

}  // namespace dla::ir
