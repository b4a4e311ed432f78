#include "frontend/importer.h"

#include <algorithm>
#include <set>

#include "frontend/attributes.h"
#include "frontend/input_shapes.h"
#include "ir/fold.h"
#include "ir/node_types.h"

namespace dla::frontend {
namespace {

using ir::Idx;
using ir::kNoValue;
using ir::ValueId;

// Lines of one report.
constexpr size_t kMostProblems = 50;

Status CheckRunTimeShape(const ir::Shape& shape) {
  const auto count = ir::CheckedElementCount(shape);
  if (!count || *count > kMostElements) {
    return Unsupported("the shape ", ir::ShapeText(shape), " is too large");
  }
  return {};
}

// " (N, height)": the names of the input's dimensions, where it has any.
std::string Symbols(const onnx::ValueInfoProto& input) {
  std::string text;
  for (const auto& dim : input.type().tensor_type().shape().dim()) {
    if (!dim.dim_param().empty()) text += (text.empty() ? "" : ", ") + dim.dim_param();
  }
  return text.empty() ? text : " (" + text + ")";
}

std::shared_ptr<const ir::Constant> EmptyConstant(ElementType type) {
  return ir::MakeConstant(ir::Tensor::Zeros({type, {0}}));
}

}  // namespace

bool IsDefaultDomain(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

std::map<std::string, int> OpsetsOf(const OpsetImports& imports,
                                    const std::map<std::string, int>& otherwise) {
  std::map<std::string, int> opsets = otherwise;
  for (const auto& import : imports) {
    const std::string domain = IsDefaultDomain(import.domain()) ? "" : import.domain();
    opsets[domain] = static_cast<int>(std::clamp<int64_t>(import.version(), -1, 100000));
  }
  return opsets;
}

void Problems::Add(const Status& status) {
  malformed_ = malformed_ || status.code() != ErrorCode::kUnsupported;
  if (++count_ <= kMostProblems) text_ += (text_.empty() ? "" : "\n") + status.message();
}

Status Problems::ToStatus() const {
  if (count_ == 0) return {};
  std::string text = text_;
  if (count_ > kMostProblems) text += Concat("\nand ", count_ - kMostProblems, " more");
  return Status(malformed_ ? ErrorCode::kMalformed : ErrorCode::kUnsupported, text);
}

const ValueId* Scope::Find(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
    const auto it = scope->values.find(name);
    if (it != scope->values.end()) return &it->second;
  }
  return nullptr;
}

const std::string* Scope::WhyUnusable(const std::string& name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
    const auto it = scope->unusable.find(name);
    if (it != scope->unusable.end()) return &it->second;
  }
  return nullptr;
}

Result<ir::Graph> Importer::Run() {
  Scope scope;
  DLA_RETURN_IF_ERROR(CheckModel(&scope));
  graph_.name = model_.graph().name();
  DLA_RETURN_IF_ERROR(CheckConstants());
  DLA_RETURN_IF_ERROR(AddInitializers(model_.graph(), &scope));
  DLA_RETURN_IF_ERROR(AddInputs(&scope));
  for (const onnx::NodeProto& node : model_.graph().node()) AddNode(node, &scope);
  AddOutputs(scope);
  DLA_RETURN_IF_ERROR(problems_.ToStatus());
  DLA_RETURN_IF_ERROR(ir::DetachOutputs(&graph_));
  ir::RemoveDeadNodes(&graph_);
  ir::CompactValues(&graph_);
  return std::move(graph_);
}

Status Importer::CheckModel(Scope* scope) {
  if (!model_.has_graph()) return Malformed("the file holds no graph; is it an ONNX model?");
  scope->opsets = OpsetsOf(model_.opset_import());
  if (scope->opsets.empty()) return Malformed("the model imports no operator set");
  // A model may consist of operators of other domains alone; each node is judged by itself then.
  const auto opset = scope->opsets.find("");
  if (opset != scope->opsets.end() &&
      (opset->second < ir::kOldestOpset || opset->second > ir::kNewestOpset)) {
    return Unsupported("opset ", opset->second, " is not supported, only ", ir::kOldestOpset,
                       " to ", ir::kNewestOpset);
  }
  if (model_.graph().output_size() == 0) return Malformed("the graph has no outputs");
  for (const onnx::FunctionProto& function : model_.functions()) {
    functions_[function.domain() + ":" + function.name()] = &function;
  }
  return {};
}

Status Importer::CheckConstants() const {
  for (const auto& given : options_.consts) {
    const std::string& name = given.first;
    const ir::Tensor& tensor = given.second;
    const auto is_it = [&](const auto& input) { return input.name() == name; };
    const auto& inputs = model_.graph().input();
    const auto input = std::find_if(inputs.begin(), inputs.end(), is_it);
    if (input == inputs.end()) return Usage("--const ", name, ": there is no such input");
    const auto type = TypeOfNumber(input->type().tensor_type().elem_type());
    if (type.ok() && *type != tensor.type) {
      return Usage("--const ", name, ": the file holds ", TypeName(tensor.type), ", the input is ",
                   TypeName(*type));
    }
  }
  return {};
}

ValueId Importer::Define(const std::string& name, ir::TensorType type, Scope* scope) {
  if (scope->values.contains(name)) return kNoValue;
  const ValueId id = rewriter_.AddValue(name, std::move(type));
  scope->values[name] = id;
  return id;
}

Status Importer::AddInitializers(const onnx::GraphProto& graph, Scope* scope) {
  const auto add = [&](const std::string& name, const Result<ImportedTensor>& result) -> Status {
    const std::string where = Concat("initializer '", name, "'");
    if (!result.ok() && result.status().code() == ErrorCode::kUnsupported) {
      // Only a problem if somebody uses it.
      scope->unusable[name] = result.status().message();
      scope->values[name] = kNoValue;
      return {};
    }
    if (!result.ok()) return result.status().At(where);
    const ValueId id = Define(name, result->type, scope);
    if (id == kNoValue) return Malformed(where, ": the name occurs twice");
    graph_.values[Idx(id)].constant = result->constant;
    return {};
  };
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    DLA_RETURN_IF_ERROR(add(tensor.name(), tensors_.Read(tensor)));
  }
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer()) {
    DLA_RETURN_IF_ERROR(add(tensor.values().name(), tensors_.ReadSparse(tensor)));
  }
  return {};
}

Status Importer::AddInputs(Scope* scope) {
  std::vector<const onnx::ValueInfoProto*> inputs;
  for (const onnx::ValueInfoProto& input : model_.graph().input()) {
    // Initializers listed as inputs are constants.
    if (!scope->values.contains(input.name())) inputs.push_back(&input);
  }
  ImportOptions options = options_;
  for (const auto& [name, tensor] : options_.consts) options.shapes.try_emplace(name, tensor.shape);
  DLA_ASSIGN_OR_RETURN(const auto shapes, ResolveInputShapes(inputs, options));
  for (const onnx::ValueInfoProto* input : inputs) {
    DLA_RETURN_IF_ERROR(AddInput(*input, shapes.at(input->name()), scope));
  }
  return {};
}

Status Importer::AddInput(const onnx::ValueInfoProto& input, const ir::Shape& shape, Scope* scope) {
  const std::string where = Concat("input '", input.name(), "'");
  if (!input.type().has_tensor_type()) return Unsupported(where, ": it is no tensor");
  const auto type = TypeOfNumber(input.type().tensor_type().elem_type());
  if (!type.ok()) return type.status().At(where);
  const Status sound = CheckRunTimeShape(shape);
  if (!sound.ok()) return sound.At(where + Symbols(input));
  const ValueId id = Define(input.name(), {*type, shape}, scope);
  if (id == kNoValue) return Malformed(where, ": the name occurs twice");
  const auto given = options_.consts.find(input.name());
  if (given != options_.consts.end()) {
    if (given->second.shape != shape) {
      return Usage("--const ", input.name(), ": the file has shape ",
                   ir::ShapeText(given->second.shape), ", the input ", ir::ShapeText(shape));
    }
    graph_.values[Idx(id)].constant = ir::MakeConstant(given->second);
    return {};
  }
  graph_.inputs.push_back(id);
  if (ir::ElementCount(shape) > 0) return {};
  // Everything is known of a tensor without elements: its users see a constant.
  const ValueId known = rewriter_.AddValue(input.name() + ":empty", {*type, shape});
  graph_.values[Idx(known)].constant = EmptyConstant(*type);
  scope->values[input.name()] = known;
  return {};
}

void Importer::AddOutputs(const Scope& scope) {
  for (const onnx::ValueInfoProto& output : model_.graph().output()) {
    const ValueId* id = scope.Find(output.name());
    if (id == nullptr) {
      problems_.Add(Malformed("output '", output.name(), "' is not computed by any node"));
    } else if (*id != kNoValue) {
      const Status status = AddOutput(output.name(), *id);
      if (!status.ok()) problems_.Add(status);
    } else if (const std::string* why = scope.WhyUnusable(output.name()); why != nullptr) {
      problems_.Add(Unsupported("output '", output.name(), "': ", *why));
    }
  }
}

// An output is a value of that name which a node computes, or a constant.
Status Importer::AddOutput(const std::string& name, ValueId id) {
  const auto has_name = [&](const std::vector<ValueId>& ids) {
    return std::any_of(ids.begin(), ids.end(),
                       [&](ValueId i) { return graph_.values[Idx(i)].name == name; });
  };
  if (has_name(graph_.outputs)) return Unsupported("output '", name, "' is listed twice");
  // An output that is an input: a copy of the same name, which only these two may share.
  const bool is_input = has_name(graph_.inputs);
  if (graph_.values[Idx(id)].name == name && !is_input) {
    graph_.outputs.push_back(id);
    return {};
  }
  for (size_t i = 0; i < graph_.values.size() && !is_input; ++i) {
    // Another value may bear the name: one inside of a function or branch.
    if (graph_.values[i].name == name) graph_.values[i].name = rewriter_.NewName(name + ":inner");
  }
  const ir::TensorType type{graph_.values[Idx(id)].type, graph_.values[Idx(id)].shape};
  ir::Node node;
  node.name = name;
  node.op = "Identity";
  node.inputs = {id};
  node.outputs = {rewriter_.AddRenamed(name, type)};
  if (graph_.values[Idx(id)].constant != nullptr) {
    graph_.values[Idx(node.outputs[0])].constant = graph_.values[Idx(id)].constant;
  } else {
    graph_.nodes.push_back(node);
  }
  graph_.outputs.push_back(node.outputs[0]);
  return {};
}

}  // namespace dla::frontend
