#include "ir/evaluate.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "ir/kernels/micro.h"
#include "ir/kernels/strided.h"
#include "ir/op.h"
#include "ir/ops/ops.h"

namespace dla::ir {
namespace {

// One fused operation over `chain` (dense, the output's shape).
Status ApplyFused(const Node& node, size_t k, const std::vector<Tensor>& extras,
                  std::vector<Tensor>* chain) {
  const FusedOp& op = node.fused[k];
  MicroProgram program;
  std::vector<int> numbers;
  std::vector<const float*> arguments;
  std::vector<Tensor> broadcast;
  broadcast.reserve(op.inputs.size());
  Tensor result = Tensor::Zeros({(*chain)[0].type, (*chain)[0].shape});
  for (const int input : op.inputs) {
    numbers.push_back(AppendMicro(&program, MicroOp::kLoad));
    program.ops.back().operand = static_cast<uint8_t>(arguments.size());
    if (input < 0) {
      arguments.push_back((*chain)[chain->size() - Idx(-input)].f32());
      continue;
    }
    const Tensor& extra = extras[Idx(input)];
    broadcast.push_back(Tensor::Zeros({extra.type, result.shape}));
    CopyStrided(result.shape, TypeBytes(extra.type, 1), extra.bytes.data(),
                BroadcastStrides(extra.shape, DenseStrides(extra.shape), result.shape),
                broadcast.back().bytes.data(), DenseStrides(result.shape));
    arguments.push_back(broadcast.back().f32());
  }
  FindOperator(op.op)->emit(op.attributes, numbers, &program);
  RunMicroProgram(program, arguments, result.elements(), result.f32());
  chain->push_back(std::move(result));
  return {};
}

class Evaluator {
 public:
  explicit Evaluator(const Graph& graph) : graph_(graph) {}

  Status SetInput(ValueId id, const std::map<std::string, Tensor>& inputs) {
    const Value& value = graph_.values[Idx(id)];
    const auto it = inputs.find(value.name);
    if (it == inputs.end()) return Usage("input '", value.name, "' is not given");
    if (it->second.type != value.type || it->second.shape != value.shape) {
      return Usage("input '", value.name, "' is ", TypeName(it->second.type), " ",
                   ShapeText(it->second.shape), ", the model takes ", TypeName(value.type), " ",
                   ShapeText(value.shape));
    }
    Write(id, it->second);
    return {};
  }

  Status Run(const Node& node) {
    const OpDef* def = FindOperator(node.op);
    DLA_CHECK(def != nullptr && def->evaluate != nullptr, "cannot evaluate ", node.op);
    std::vector<Tensor> operands;
    for (const ValueId id : node.inputs) operands.push_back(id == kNoValue ? Tensor{} : Read(id));
    const size_t own = node.fused.empty() ? operands.size() : Idx(def->max_inputs);
    std::vector<TensorView> views;
    for (size_t i = 0; i < own && i < operands.size(); ++i) {
      views.push_back(node.inputs[i] == kNoValue ? TensorView{} : operands[i].view());
    }
    std::vector<Tensor> results;
    for (const ValueId id : node.outputs) {
      const Value& value = graph_.values[Idx(id)];
      results.push_back(Tensor::Zeros({value.type, value.shape}));
    }
    Node bare = node;
    bare.fused.clear();
    DLA_RETURN_IF_ERROR(def->evaluate(bare, views, results));
    if (!node.fused.empty()) {
      std::vector<Tensor> chain;
      chain.push_back(std::move(results[0]));
      for (size_t k = 0; k < node.fused.size(); ++k) {
        DLA_RETURN_IF_ERROR(ApplyFused(node, k, operands, &chain));
      }
      results[0] = std::move(chain.back());
    }
    for (size_t i = 0; i < results.size(); ++i) Write(node.outputs[i], results[i]);
    return {};
  }

  // The value as a dense tensor, through its storage.
  Tensor Read(ValueId id) {
    const Value& value = graph_.values[Idx(id)];
    Tensor result = Tensor::Zeros({value.type, value.shape});
    if (value.constant != nullptr) {
      std::copy_n(value.constant->bytes, result.bytes.size(), result.bytes.data());
      return result;
    }
    const int64_t bytes = TypeBytes(value.type, 1);
    CopyStrided(value.shape, bytes, Buffer(id).data() + Offset(value) * bytes, Strides(value),
                result.bytes.data(), DenseStrides(value.shape));
    return result;
  }

 private:
  ValueId Root(ValueId id) const {
    const ValueId root = graph_.values[Idx(id)].storage.root;
    return root == kNoValue ? id : root;
  }
  static Shape Strides(const Value& value) {
    return value.storage.root == kNoValue ? DenseStrides(value.shape) : value.storage.strides;
  }
  static int64_t Offset(const Value& value) {
    return value.storage.root == kNoValue ? 0 : value.storage.offset;
  }

  void Write(ValueId id, const Tensor& tensor) {
    const Value& value = graph_.values[Idx(id)];
    const int64_t bytes = TypeBytes(value.type, 1);
    CopyStrided(value.shape, bytes, tensor.bytes.data(), DenseStrides(value.shape),
                Buffer(id).data() + Offset(value) * bytes, Strides(value));
  }

  // The root's buffer; new ones are filled with bytes that are a NaN in every float type.
  std::vector<uint8_t>& Buffer(ValueId id) {
    const ValueId root = Root(id);
    auto [it, is_new] = buffers_.try_emplace(root);
    if (is_new) {
      const Value& value = graph_.values[Idx(root)];
      it->second.assign(Idx(TypeBytes(value.type, ElementCount(value.shape))), 0xff);
      if (value.constant != nullptr) {
        std::copy_n(value.constant->bytes, it->second.size(), it->second.data());
      }
    }
    return it->second;
  }

  const Graph& graph_;
  std::map<ValueId, std::vector<uint8_t>> buffers_;
};

}  // namespace

Result<std::map<std::string, Tensor>> Evaluate(const Graph& graph,
                                               const std::map<std::string, Tensor>& inputs,
                                               const EvaluateOptions& options) {
  Evaluator evaluator(graph);
  std::map<std::string, Tensor> results;
  for (const ValueId id : graph.inputs) DLA_RETURN_IF_ERROR(evaluator.SetInput(id, inputs));
  for (const Node& node : graph.nodes) {
    Status status = evaluator.Run(node);
    if (!status.ok()) return status.At("node '" + node.name + "' (" + node.op + ")");
    if (!options.all_values) continue;
    for (const ValueId id : node.outputs) {
      results[graph.values[Idx(id)].name] = evaluator.Read(id);
    }
  }
  for (const ValueId id : graph.outputs) {
    results[graph.values[Idx(id)].name] = evaluator.Read(id);
  }
  return results;
}

}  // namespace dla::ir
