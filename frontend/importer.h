// The importer: walks the nodes of a model, of the branches that constant conditions choose and of
// the functions that are called, in order, and adds each to one flat graph.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "frontend/import.h"
#include "frontend/onnx_proto.h"
#include "frontend/tensors.h"
#include "ir/graph.h"
#include "ir/op.h"
#include "ir/rewriter.h"

namespace dla::frontend {

// Problems of many nodes, reported together.
class Problems {
 public:
  void Add(const Status& status);
  Status ToStatus() const;

 private:
  size_t count_ = 0;
  bool malformed_ = false;
  std::string text_;
};

// The names that nodes see: of a graph, of a branch (and of the graphs around it) or of a function.
struct Scope {
  static constexpr ir::ValueId kAbsent = -2;  // an optional operand that the caller left out

  const Scope* outer = nullptr;                 // null: nothing around is visible
  std::map<std::string, ir::ValueId> values;    // kNoValue: a node with a problem makes it
  std::map<std::string, std::string> unusable;  // initializers of no use, and why
  std::map<std::string, int> opsets;            // by domain; "" is ONNX's
  // Attributes of the call that this is the body of; null outside of functions.
  std::shared_ptr<const std::map<std::string, onnx::AttributeProto>> attributes;

  const ir::ValueId* Find(const std::string& name) const;
  const std::string* WhyUnusable(const std::string& name) const;
};

// Of a value that is computed when the model runs, in elements.
inline constexpr int64_t kMostElements = int64_t{1} << 31;

bool IsDefaultDomain(const std::string& domain);

using OpsetImports = google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>;
// The versions that are imported; those of `otherwise` where none is.
std::map<std::string, int> OpsetsOf(const OpsetImports& imports,
                                    const std::map<std::string, int>& otherwise = {});

class Importer {
 public:
  Importer(const onnx::ModelProto& model, const std::string& path,
           std::shared_ptr<const void> owner, const ImportOptions& options)
      : model_(model), options_(options), tensors_(path, std::move(owner)), rewriter_(&graph_) {}

  Result<ir::Graph> Run();

 private:
  Status CheckModel(Scope* scope);
  Status AddInitializers(const onnx::GraphProto& graph, Scope* scope);
  Status AddInputs(Scope* scope);
  Status AddInput(const onnx::ValueInfoProto& input, const ir::Shape& shape, Scope* scope);
  Status CheckConstants() const;
  void AddOutputs(const Scope& scope);
  Status AddOutput(const std::string& name, ir::ValueId id);

  // A value of this name in this scope; kNoValue if the name is taken.
  ir::ValueId Define(const std::string& name, ir::TensorType type, Scope* scope);

  // Adds the node, folds it, or notes why neither is possible.
  void AddNode(const onnx::NodeProto& proto, Scope* scope);
  Status TryNode(const onnx::NodeProto& proto, Scope* scope);
  Status AddOperator(const onnx::NodeProto& proto, const ir::OpDef& def, int opset, Scope* scope);
  Status AddConstantNode(const onnx::NodeProto& proto, Scope* scope);
  Status ReadOperands(const onnx::NodeProto& proto, const ir::OpDef& def, const Scope& scope,
                      ir::Node* node, bool* poisoned);
  Status Infer(const onnx::NodeProto& proto, const ir::OpDef& def, ir::Node node, Scope* scope);
  // Computes the node now if it can be, or adds it to the graph if it can run later.
  Status Place(const ir::OpDef& def, const ir::Node& node);
  Status CheckCanonical(const ir::OpDef& def, const ir::Node& node);

  // If with a constant condition: the nodes of the chosen branch.
  Status InlineIf(const onnx::NodeProto& proto, Scope* scope);
  Status InlineCall(const onnx::NodeProto& proto, const onnx::FunctionProto& function,
                    Scope* scope);
  const onnx::FunctionProto* FindFunction(const onnx::NodeProto& proto) const;

  const onnx::ModelProto& model_;
  const ImportOptions& options_;
  TensorReader tensors_;
  ir::Graph graph_;
  ir::Rewriter rewriter_;
  std::map<std::string, const onnx::FunctionProto*> functions_;
  Problems problems_;
  int depth_ = 0;      // of branches and functions around a node
  int64_t nodes_ = 0;  // seen, all scopes together
};

}  // namespace dla::frontend
