#include "ir/verifier.h"

#include <algorithm>
#include <set>

#include "ir/disjoint.h"
#include "ir/op.h"
#include "ir/tensor.h"
#include "support/checked.h"

namespace dla::ir {
namespace {

constexpr size_t kMostFaults = 100;

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph), defined_(graph.values.size()) {}

  std::vector<std::string> Run() {
    CheckValues();
    // The rest relies on indices and shapes.
    if (!faults_.empty()) return faults_;
    CheckNodes();
    CheckOutputs();
    if (faults_.empty()) CheckWrites();
    return faults_;
  }

 private:
  template <typename... Args>
  void Fault(const Args&... args) {
    if (faults_.size() < kMostFaults) faults_.push_back(Concat(args...));
  }

  bool Exists(ValueId id) const { return id >= 0 && Idx(id) < graph_.values.size(); }
  const Value& Of(ValueId id) const { return graph_.values[Idx(id)]; }

  void CheckIds(const std::vector<ValueId>& ids, bool optional, const std::string& where) {
    for (const ValueId id : ids) {
      if (!Exists(id) && !(optional && id == kNoValue))
        Fault(where, ": value ", id, " does not exist");
    }
  }

  // A graph output that copies the graph input of its name. Inputs come before outputs.
  bool IsInputAgain(const Value& value) const {
    const auto named = [&](const std::vector<ValueId>& ids) {
      return std::count_if(ids.begin(), ids.end(),
                           [&](ValueId id) { return Exists(id) && Of(id).name == value.name; });
    };
    const auto all = std::count_if(graph_.values.begin(), graph_.values.end(),
                                   [&](const Value& other) { return other.name == value.name; });
    return all == 2 && named(graph_.inputs) == 1 && named(graph_.outputs) == 1;
  }

  void CheckValues() {
    std::set<std::string> names;
    for (const Value& value : graph_.values) {
      const std::string where = "value '" + value.name + "'";
      if (!names.insert(value.name).second && !IsInputAgain(value)) {
        Fault(where, ": the name is not unique");
      }
      const auto count = CheckedElementCount(value.shape);
      if (!count) {
        Fault(where, ": the shape ", ShapeText(value.shape), " is not possible");
        continue;
      }
      if (value.constant != nullptr &&
          value.constant->size_bytes != TypeBytes(value.type, *count)) {
        Fault(where, ": ", value.constant->size_bytes, " bytes for ", *count, " elements of ",
              TypeName(value.type));
      }
      CheckStorage(value, where);
    }
    CheckIds(graph_.inputs, false, "inputs");
    CheckIds(graph_.outputs, false, "outputs");
    for (const Node& node : graph_.nodes) {
      CheckIds(node.inputs, true, "node '" + node.name + "'");
      CheckIds(node.outputs, true, "node '" + node.name + "'");
    }
  }

  void CheckStorage(const Value& value, const std::string& where) {
    const Storage& storage = value.storage;
    if (storage.root == kNoValue) return;
    if (!Exists(storage.root)) return Fault(where, ": its root does not exist");
    const Value& root = Of(storage.root);
    const auto [first, end] = storage.summed_axes;
    if (first < 0 || first > end || Idx(end) > value.shape.size()) {
      Fault(where, ": it is rounded along axes ", first, " to ", end);
    }
    if (root.storage != Storage{storage.root, 0, DenseStrides(root.shape), root.storage.type,
                                root.storage.summed_axes}) {
      Fault(where, ": its root '", root.name, "' is not a dense root");
    }
    if (storage.strides.size() != value.shape.size()) {
      return Fault(where, ": ", storage.strides.size(), " strides for rank ", value.shape.size());
    }
    if (ElementCount(value.shape) == 0) return;
    int64_t low = storage.offset, high = storage.offset;
    for (size_t i = 0; i < value.shape.size(); ++i) {
      const int64_t reach = (std::max<int64_t>(value.shape[i], 1) - 1) * storage.strides[i];
      (reach < 0 ? low : high) += reach;
    }
    if (low < 0 || high >= std::max<int64_t>(1, ElementCount(root.shape))) {
      Fault(where, ": its elements ", low, " to ", high, " do not lie in root '", root.name,
            "' of ", ElementCount(root.shape));
    }
    if (root.type != value.type || root.StoredType() != value.StoredType()) {
      Fault(where, ": its root has another type");
    }
    if (value.StoredType() != value.type && value.type != ElementType::kF32) {
      Fault(where, ": only f32 values are stored in another type");
    }
  }

  // Whether a value can be read at this point: a view can if its root is an input or a constant
  // or anything has been written to it.
  bool Available(ValueId id) const {
    if (defined_[Idx(id)] || Of(id).constant != nullptr) return true;
    const ValueId root = Of(id).storage.root;
    return root != kNoValue && root_written_.contains(root);
  }

  void Define(ValueId id) {
    defined_[Idx(id)] = true;
    if (Of(id).storage.root != kNoValue) root_written_.insert(Of(id).storage.root);
  }

  void CheckNodes() {
    for (const ValueId id : graph_.inputs) {
      if (defined_[Idx(id)]) Fault("input '", Of(id).name, "' is listed twice");
      if (Of(id).constant != nullptr) Fault("input '", Of(id).name, "' is a constant");
      Define(id);
    }
    for (const Node& node : graph_.nodes) {
      const std::string where = "node '" + node.name + "' (" + node.op + ")";
      for (const ValueId id : node.inputs) {
        if (id != kNoValue && !Available(id)) {
          Fault(where, ": operand '", Of(id).name, "' is not computed before it");
        }
      }
      CheckNode(node, where);
      for (const ValueId id : node.outputs) {
        if (id == kNoValue) continue;
        if (defined_[Idx(id)] || Of(id).constant != nullptr) {
          Fault(where, ": result '", Of(id).name, "' is defined twice");
        }
        Define(id);
      }
    }
  }

  void CheckNode(const Node& node, const std::string& where) {
    const OpDef* def = FindOperator(node.op);
    if (def == nullptr) return Fault(where, ": no such operator");
    const int limit = std::max(def->max_inputs, def->max_file_inputs);
    const bool any =
        def->max_inputs == OpDef::kVariadic || def->max_file_inputs == OpDef::kVariadic;
    const size_t most = any ? node.inputs.size() : Idx(limit);
    if (node.inputs.size() < Idx(def->min_inputs)) {
      return Fault(where, ": ", node.inputs.size(), " operands, at least ", def->min_inputs);
    }
    if (node.inputs.size() > most && node.fused.empty()) {
      return Fault(where, ": ", node.inputs.size(), " operands, at most ", most);
    }
    for (int i = 0; i < def->min_inputs; ++i) {
      if (node.inputs[Idx(i)] == kNoValue) return Fault(where, ": operand ", i, " is missing");
    }
    if (node.outputs.empty() || node.outputs.size() < Idx(def->min_outputs)) {
      return Fault(where, ": results are missing");
    }
    CheckTypes(*def, node, where);
    CheckFused(*def, node, where);
  }

  void CheckTypes(const OpDef& def, const Node& node, const std::string& where) {
    Node bare = node;
    bare.fused.clear();
    // Fused operands stand behind the operator's own.
    if (!node.fused.empty()) bare.inputs.resize(std::min(node.inputs.size(), Idx(def.max_inputs)));
    while (!bare.inputs.empty() && bare.inputs.back() == kNoValue) bare.inputs.pop_back();
    std::vector<TensorType> types;
    const Status status = def.infer(graph_, bare, &types);
    if (!status.ok()) return Fault(where, ": ", status.message());
    for (size_t i = 0; i < node.outputs.size() && i < types.size(); ++i) {
      if (node.outputs[i] == kNoValue) continue;
      const Value& value = Of(node.outputs[i]);
      // What is fused may end with another type.
      const bool same_type = value.type == types[i].type || !node.fused.empty();
      if (!same_type || value.shape != types[i].shape) {
        Fault(where, ": result '", value.name, "' is ", TypeName(value.type), " ",
              ShapeText(value.shape), ", inferred ", TypeName(types[i].type), " ",
              ShapeText(types[i].shape));
      }
    }
  }

  void CheckFused(const OpDef& def, const Node& node, const std::string& where) {
    if (node.fused.empty()) return;
    if (def.nest == nullptr || def.kind == OpKind::kCopy || def.max_inputs < 0) {
      return Fault(where, ": nothing can be fused behind it");
    }
    const Shape& shape = Of(node.outputs[0]).shape;
    for (size_t k = 0; k < node.fused.size(); ++k) {
      const FusedOp& op = node.fused[k];
      const OpDef* row = FindOperator(op.op);
      if (row == nullptr || row->kind != OpKind::kMap) {
        Fault(where, ": fused ", op.op, " is not element-wise");
        continue;
      }
      if (op.inputs.size() != Idx(row->max_inputs)) {
        Fault(where, ": fused ", op.op, " has ", op.inputs.size(), " operands");
      }
      for (const int input : op.inputs) {
        if (input < -static_cast<int>(k) - 1 ||
            (input >= 0 &&
             (Idx(input) >= node.inputs.size() || Idx(input) < Idx(def.max_inputs)))) {
          Fault(where, ": fused ", op.op, " has the operand ", input, ", which is not there");
        } else if (input >= 0) {
          CheckFusedOperand(node.inputs[Idx(input)], shape, where);
        }
      }
    }
  }

  void CheckFusedOperand(ValueId id, const Shape& shape, const std::string& where) {
    if (id == kNoValue) return Fault(where, ": a fused operand is absent");
    const Shape& own = Of(id).shape;
    bool fits = own.size() <= shape.size();
    for (size_t i = 0; fits && i < own.size(); ++i) {
      const int64_t extent = shape[shape.size() - own.size() + i];
      fits = own[i] == extent || own[i] == 1;
    }
    if (!fits) {
      Fault(where, ": fused operand '", Of(id).name, "' of shape ", ShapeText(own),
            " does not broadcast to ", ShapeText(shape));
    }
  }

  void CheckOutputs() {
    for (const ValueId id : graph_.outputs) {
      const Value& value = Of(id);
      if (!Available(id)) Fault("output '", value.name, "' is not computed");
      if (value.storage.root != kNoValue && value.storage.root != id) {
        Fault("output '", value.name, "' is not stored on its own");
      }
    }
    for (const ValueId id : graph_.inputs) {
      if (Of(id).storage.root != kNoValue && Of(id).storage.root != id) {
        Fault("input '", Of(id).name, "' is not stored on its own");
      }
    }
  }

  // A second write to an element is a fault: where it is not plain that there is none, every
  // element that a node writes is marked.
  void CheckWrites() {
    std::map<ValueId, std::vector<ValueId>> writers;
    for (const Node& node : graph_.nodes) {
      for (const ValueId id : node.outputs) {
        if (id != kNoValue && Of(id).storage.root != kNoValue) {
          writers[Of(id).storage.root].push_back(id);
        }
      }
    }
    for (const auto& [root, values] : writers) {
      if (Of(root).constant != nullptr ||
          std::count(graph_.inputs.begin(), graph_.inputs.end(), root) > 0) {
        Fault("value '", Of(values[0]).name, "' is written into '", Of(root).name,
              "', an input or a constant");
        continue;
      }
      if (values.size() == 1 && values[0] == root) continue;
      std::vector<const Value*> views;
      for (const ValueId id : values) views.push_back(&Of(id));
      if (AreDisjointBoxes(Of(root), views)) continue;
      std::vector<uint64_t> written(Idx(CeilDiv(ElementCount(Of(root).shape), 64)));
      for (const ValueId id : values) {
        if (!MarkValue(Of(id), written.data())) {
          Fault("value '", Of(id).name, "' is written over elements of '", Of(root).name,
                "' that are written already");
        }
      }
    }
  }

  // The elements as runs: the last axes that lie without gaps are one run.
  static bool MarkValue(const Value& value, uint64_t* written) {
    if (ElementCount(value.shape) == 0) return true;
    int64_t run = 1;
    size_t axes = value.shape.size();
    while (axes > 0 && (value.shape[axes - 1] == 1 || value.storage.strides[axes - 1] == run)) {
      run *= value.shape[--axes];
    }
    return MarkRuns(value, 0, axes, value.storage.offset, run, written);
  }

  static bool MarkRuns(const Value& value, size_t axis, size_t axes, int64_t at, int64_t run,
                       uint64_t* written) {
    if (axis == axes) return MarkRun(at, at + run, written);
    for (int64_t i = 0; i < value.shape[axis]; ++i, at += value.storage.strides[axis]) {
      if (!MarkRuns(value, axis + 1, axes, at, run, written)) return false;
    }
    return true;
  }

  // A bit an element, a word at a time: there may be hundreds of millions, and every pass is
  // followed by this.
  static bool MarkRun(int64_t at, int64_t end, uint64_t* written) {
    while (at < end) {
      const int64_t bits = std::min(64 - at % 64, end - at);
      const uint64_t mask = (~uint64_t{0} >> (64 - bits)) << (at % 64);
      uint64_t& word = written[at / 64];
      if ((word & mask) != 0) return false;
      word |= mask;
      at += bits;
    }
    return true;
  }

  const Graph& graph_;
  std::vector<bool> defined_;
  std::set<ValueId> root_written_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> VerifyFaults(const Graph& graph) { return Verifier(graph).Run(); }

Status Verify(const Graph& graph) {
  std::string text;
  for (const std::string& fault : VerifyFaults(graph)) text += (text.empty() ? "" : "\n") + fault;
  return text.empty() ? Status() : Malformed(text);
}

}  // namespace dla::ir
