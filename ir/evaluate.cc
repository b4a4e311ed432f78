#include "ir/evaluate.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "ir/kernels/micro.h"
#include "ir/kernels/strided.h"
#include "ir/micro_writer.h"
#include "ir/node_types.h"
#include "ir/op.h"

namespace dla::ir {
namespace {

// The fused operations of a node over the result of its own arithmetic, as one program.
Tensor RunFused(const Node& node, const Tensor& anchor, const std::vector<Tensor>& operands,
                const TensorType& type) {
  MicroProgram program;
  MicroWriter writer(&program);
  std::vector<MicroArray> arrays;
  std::vector<const uint8_t*> sources;
  const auto load = [&](const Tensor& tensor) {
    arrays.push_back(
        {tensor.type, BroadcastStrides(tensor.shape, DenseStrides(tensor.shape), type.shape)});
    sources.push_back(tensor.view().bytes);
    return writer.Load(static_cast<int>(arrays.size()) - 1, tensor.type);
  };
  std::vector<int> chain = {load(anchor)};
  for (const FusedOp& op : node.fused) {
    std::vector<int> arguments;
    for (const int input : op.inputs) {
      arguments.push_back(input < 0 ? chain[chain.size() - Idx(-input)]
                                    : load(operands[Idx(input)]));
    }
    chain.push_back(FindOperator(op.op)->emit(op.attributes, arguments, &writer));
  }
  Tensor result = Tensor::Zeros(type);
  RunMicroProgram(program, type.shape, 0, arrays, sources, {type.type, DenseStrides(type.shape)},
                  result.bytes.data());
  return result;
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
    DLA_CHECK(def != nullptr, node.op);
    std::vector<Tensor> operands;
    for (const ValueId id : node.inputs) operands.push_back(id == kNoValue ? Tensor{} : Read(id));
    const size_t own = node.fused.empty() ? operands.size() : Idx(def->max_inputs);
    if (graph_.array_type && def->kind == OpKind::kContraction) RoundOperands(own, &operands);
    std::vector<TensorView> views;
    for (size_t i = 0; i < own && i < operands.size(); ++i) {
      views.push_back(node.inputs[i] == kNoValue ? TensorView{} : operands[i].view());
    }
    Node bare = node;
    bare.fused.clear();
    bare.inputs.resize(views.size());
    while (!bare.inputs.empty() && bare.inputs.back() == kNoValue) bare.inputs.pop_back();
    std::vector<TensorType> types;
    DLA_RETURN_IF_ERROR(def->infer(graph_, bare, &types));
    // What is fused sees the result before it is rounded to half precision.
    const bool computes = def->kind != OpKind::kVectorMove && def->kind != OpKind::kView;
    if (!node.fused.empty() && computes) {
      const ElementType wide = ValueType(types[0].type);
      if (wide == ElementType::kF32) types[0].type = wide;
    }
    std::vector<Tensor> results;
    for (size_t i = 0; i < node.outputs.size(); ++i) results.push_back(Tensor::Zeros(types[i]));
    DLA_RETURN_IF_ERROR(EvaluateNode(bare, views, results));
    if (!node.fused.empty()) {
      const Value& value = graph_.values[Idx(node.outputs[0])];
      results[0] = RunFused(node, results[0], operands, {value.type, value.shape});
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (node.outputs[i] != kNoValue) Write(node.outputs[i], results[i]);
    }
    return {};
  }

  // The value as a dense tensor, through its storage.
  Tensor Read(ValueId id) {
    const Value& value = graph_.values[Idx(id)];
    if (value.constant != nullptr) {
      Tensor result = Tensor::Zeros({value.type, value.shape});
      std::copy_n(value.constant->bytes, result.bytes.size(), result.bytes.data());
      return result;
    }
    Tensor stored = Tensor::Zeros({value.StoredType(), value.shape});
    const int64_t bytes = TypeBytes(stored.type, 1);
    CopyStrided(value.shape, bytes, Buffer(id).data() + Offset(value) * bytes, Strides(value),
                stored.bytes.data(), DenseStrides(value.shape));
    return As(std::move(stored), value.type);
  }

 private:
  static Tensor As(Tensor tensor, ElementType type) {
    return tensor.type == type ? std::move(tensor) : ConvertTensor(tensor.view(), type);
  }
  // What the array multiplies where it rounds f32 operands.
  void RoundOperands(size_t own, std::vector<Tensor>* operands) const {
    for (size_t i = 0; i < std::min<size_t>(own, 2); ++i) {
      Tensor& operand = (*operands)[i];
      if (operand.type != ElementType::kF32) continue;
      operand = ConvertTensor(As(std::move(operand), *graph_.array_type).view(), ElementType::kF32);
    }
  }
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

  void Write(ValueId id, Tensor tensor) {
    const Value& value = graph_.values[Idx(id)];
    const Tensor stored = As(std::move(tensor), value.StoredType());
    const int64_t bytes = TypeBytes(stored.type, 1);
    CopyStrided(value.shape, bytes, stored.bytes.data(), DenseStrides(value.shape),
                Buffer(id).data() + Offset(value) * bytes, Strides(value));
  }

  // The root's buffer; new ones are filled with bytes that are a NaN in every float type.
  std::vector<uint8_t>& Buffer(ValueId id) {
    const ValueId root = Root(id);
    auto [it, is_new] = buffers_.try_emplace(root);
    if (is_new) {
      const Value& value = graph_.values[Idx(root)];
      it->second.assign(Idx(TypeBytes(value.StoredType(), ElementCount(value.shape))), 0xff);
      if (value.constant != nullptr) it->second = StoredConstant(value);
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
      if (id == kNoValue) continue;
      results[graph.values[Idx(id)].name] = evaluator.Read(id);
    }
  }
  for (const ValueId id : graph.outputs) {
    results[graph.values[Idx(id)].name] = evaluator.Read(id);
  }
  return results;
}

}  // namespace dla::ir
