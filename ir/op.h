// The operator table: one row an operator, with everything the compiler knows about it.
//
// The importer, the verifier, constant folding, the evaluator, the passes and BuildNest are driven
// by the rows; ir/ops/ has one file a family. docs/ADDING_AN_OPERATOR.md walks through one of
// them, docs/OPERATORS.md is generated from the table.
//
// There are two sorts of rows. *ONNX* rows are what a file may contain; the canonicalise pass
// turns them into *canonical* rows (many spellings, few operators), which alone have nests. A row
// may be both (Conv).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "ir/tensor.h"
#include "support/micro_program.h"
#include "support/status.h"

namespace dla::ir {

class MicroWriter;  // ir/micro_writer.h
class Rewriter;     // ir/rewriter.h
using AttributeMap = std::map<std::string, Attribute>;

enum class OpKind : uint8_t {
  kOnnxOnly,     // gone after canonicalise
  kContraction,  // array work: Conv, MatMul
  kMap,          // element-wise; can be fused behind any anchor
  kRow,          // vector work over whole axes: reductions, softmax, normalisation (ir/ops/row.h)
  kReduction,    // pooling: vector work that can take an element-wise epilogue
  kVectorMove,   // vector work that only copies: nearest resize, padding
  kView,         // the layout pass turns it into storage, or into a Copy
  kCopy,         // load and store
};

// kType: in a file the number of an element type, in the IR its name (a string).
// kScalar: in a file a tensor of one element; in the IR its number, as int64_t or float, and
// beside it the attribute NAME_type with the type's name.
enum class AttributeKind : uint8_t { kInt, kFloat, kString, kInts, kFloats, kType, kScalar };

struct AttributeDef {
  std::string_view name;
  AttributeKind kind = AttributeKind::kInt;
  std::string_view fallback;  // the default as text, for documentation; empty: none
  bool required = false;
  std::string_view note;
};

struct OpDef {
  std::string_view name;
  OpKind kind = OpKind::kOnnxOnly;
  bool onnx = true;     // a file may contain it
  int first_opset = 1;  // of the ONNX operator
  int min_inputs = 1;
  int max_inputs = 1;       // of the canonical form; kVariadic: no limit
  int max_file_inputs = 0;  // of the ONNX node, where that is more
  int min_outputs = 1;
  int max_outputs = 1;
  // The result depends on the operands' shapes alone; `evaluate` gets views without bytes.
  bool shape_only = false;
  std::span<const AttributeDef> attributes;
  std::string_view note;  // limits, for docs/OPERATORS.md

  // Types and shapes of the outputs. Failures describe what is wrong with this node (kMalformed:
  // breaks ONNX's rules; kUnsupported: more than this version can do), without naming the node.
  Status (*infer)(const Graph& graph, const Node& node, std::vector<TensorType>* outputs) = nullptr;
  // Reference arithmetic of the bare operator (no fused operations) in its canonical form (of
  // kOnnxOnly rows: in their ONNX form). `outputs` have their types, shapes and zeros. May be null
  // (rows that are always rewritten before anything is evaluated).
  Status (*evaluate)(const Node& node, std::span<const TensorView> inputs,
                     std::span<Tensor> outputs) = nullptr;
  // kMap and kRow: appends the micro-operations that compute it from the given values of the
  // program (at least one); returns the number of the result, which is the last value.
  int (*emit)(const AttributeMap& attributes, std::span<const int> arguments,
              MicroWriter* writer) = nullptr;
  // Rewrites the ONNX node into canonical ones; null: it is canonical already.
  Status (*lower)(Rewriter* rewriter, const Node& node) = nullptr;
  // The loop nest of the group, fused operations included. Null for kView and kOnnxOnly.
  Result<Nest> (*nest)(const Graph& graph, const Node& node) = nullptr;

  static constexpr int kVariadic = -1;
};

// All rows, sorted by name.
std::span<const OpDef* const> OperatorTable();
// The row of that name, or null.
const OpDef* FindOperator(std::string_view name);

// Newest opset whose operators the table describes; older ones from kOldestOpset are read too.
inline constexpr int kOldestOpset = 1;
inline constexpr int kNewestOpset = 23;

// The nest of a node after the layout pass (every operand has its storage).
Result<Nest> BuildNest(const Graph& graph, const Node& node);

// docs/OPERATORS.md.
std::string OperatorsMarkdown();

// Attributes with their fallbacks; the kind was checked at import.
int64_t GetInt(const AttributeMap& attributes, const std::string& name, int64_t fallback);
float GetFloat(const AttributeMap& attributes, const std::string& name, float fallback);
std::string GetString(const AttributeMap& attributes, const std::string& name,
                      const std::string& fallback);
std::vector<int64_t> GetInts(const AttributeMap& attributes, const std::string& name,
                             std::vector<int64_t> fallback = {});

}  // namespace dla::ir
