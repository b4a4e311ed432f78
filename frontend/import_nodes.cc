// The nodes of a model: operands, inference, folding, placing; branches and functions inlined.
#include <algorithm>
#include <set>

#include "frontend/attributes.h"
#include "frontend/importer.h"
#include "ir/fold.h"
#include "ir/node_types.h"

namespace dla::frontend {
namespace {

using ir::Idx;
using ir::kNoValue;
using ir::ValueId;

// Branches and functions inside each other, and nodes in all: small files can unfold to many.
constexpr int kMostDepth = 64;
constexpr int64_t kMostNodes = int64_t{1} << 17;

std::string NodeName(const onnx::NodeProto& proto) {
  if (!proto.name().empty()) return proto.name();
  return proto.output_size() > 0 ? proto.output(0) : "";
}

std::string OpName(const onnx::NodeProto& proto) {
  return IsDefaultDomain(proto.domain()) ? proto.op_type() : proto.domain() + "." + proto.op_type();
}

// A status without text: the cause was reported elsewhere.
Status Poisoned() { return Status(ErrorCode::kUnsupported, ""); }

bool HasReferences(const onnx::NodeProto& proto) {
  return std::any_of(proto.attribute().begin(), proto.attribute().end(),
                     [](const auto& attribute) { return !attribute.ref_attr_name().empty(); });
}

// The node with the attributes of the call in place of references to them.
onnx::NodeProto WithAttributes(const onnx::NodeProto& proto,
                               const std::map<std::string, onnx::AttributeProto>& attributes) {
  onnx::NodeProto result = proto;
  result.clear_attribute();
  for (const onnx::AttributeProto& attribute : proto.attribute()) {
    if (attribute.ref_attr_name().empty()) {
      *result.add_attribute() = attribute;
      continue;
    }
    const auto given = attributes.find(attribute.ref_attr_name());
    if (given == attributes.end()) continue;
    *result.add_attribute() = given->second;
    result.mutable_attribute(result.attribute_size() - 1)->set_name(attribute.name());
  }
  return result;
}

// Default values of a function's attributes. The field is younger than some versions of ONNX's
// classes, so it is read as one that they do not know.
Status ReadDefaults(const onnx::FunctionProto& function,
                    std::map<std::string, onnx::AttributeProto>* attributes) {
  constexpr int kAttributeProtoField = 11;
  const auto& unknown = function.GetReflection()->GetUnknownFields(function);
  for (int i = 0; i < unknown.field_count(); ++i) {
    const auto& field = unknown.field(i);
    if (field.number() != kAttributeProtoField) continue;
    onnx::AttributeProto attribute;
    if (field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED ||
        !attribute.ParseFromString(field.length_delimited())) {
      return Malformed("the function's attributes are damaged");
    }
    (*attributes)[attribute.name()] = attribute;
  }
  return {};
}

int OpsetOf(const Scope& scope) {
  const auto it = scope.opsets.find("");
  return it == scope.opsets.end() ? 0 : it->second;
}

}  // namespace

void Importer::AddNode(const onnx::NodeProto& proto, Scope* scope) {
  const Status status = scope->attributes != nullptr && HasReferences(proto)
                            ? TryNode(WithAttributes(proto, *scope->attributes), scope)
                            : TryNode(proto, scope);
  if (status.ok()) return;
  if (!status.message().empty()) {
    problems_.Add(status.At(
        Concat("node '", NodeName(proto), "' (", OpName(proto), ", opset ", OpsetOf(*scope), ")")));
  }
  // Users of its results are not reported: the cause is.
  for (const std::string& name : proto.output()) {
    if (!name.empty()) scope->values.try_emplace(name, kNoValue);
  }
}

Status Importer::TryNode(const onnx::NodeProto& proto, Scope* scope) {
  if (++nodes_ > kMostNodes) {
    return nodes_ == kMostNodes + 1
               ? Unsupported("the model unfolds to more than ", kMostNodes, " nodes")
               : Poisoned();
  }
  std::set<std::string> names;
  for (const std::string& name : proto.output()) {
    if (!name.empty() && (scope->values.contains(name) || !names.insert(name).second)) {
      return Malformed("its result '", name, "' has a name that is taken");
    }
  }
  if (proto.output_size() == 0) return Malformed("it has no outputs");
  const onnx::FunctionProto* function = FindFunction(proto);
  if (!IsDefaultDomain(proto.domain())) {
    if (function == nullptr) return Unsupported("the operator is not supported");
    return InlineCall(proto, *function, scope);
  }
  if (!scope->opsets.contains("")) {
    return Malformed("the model imports no version of the ONNX operators");
  }
  if (proto.op_type() == "Constant") return AddConstantNode(proto, scope);
  if (proto.op_type() == "If") return InlineIf(proto, scope);
  const ir::OpDef* def = ir::FindOperator(proto.op_type());
  if ((def == nullptr || !def->onnx) && function != nullptr) {
    return InlineCall(proto, *function, scope);
  }
  if (def == nullptr || !def->onnx) return Unsupported("the operator is not supported");
  const int opset = OpsetOf(*scope);
  if (opset < def->first_opset) {
    return Malformed("the operator exists since opset ", def->first_opset);
  }
  return AddOperator(proto, *def, opset, scope);
}

Status Importer::AddOperator(const onnx::NodeProto& proto, const ir::OpDef& def, int opset,
                             Scope* scope) {
  ir::Node node;
  node.name = NodeName(proto);
  node.op = proto.op_type();
  node.onnx_nodes = {node.name};
  node.opset = opset;
  bool poisoned = false;
  DLA_RETURN_IF_ERROR(ReadOperands(proto, def, *scope, &node, &poisoned));
  DLA_ASSIGN_OR_RETURN(node.attributes, ReadAttributes(proto, def, opset, &tensors_));
  if (poisoned) return Poisoned();
  return Infer(proto, def, std::move(node), scope);
}

Status Importer::AddConstantNode(const onnx::NodeProto& proto, Scope* scope) {
  DLA_ASSIGN_OR_RETURN(const ImportedTensor tensor, ReadConstantNode(proto, &tensors_));
  if (proto.output(0).empty()) return {};  // nobody can read it
  const ValueId id = Define(proto.output(0), tensor.type, scope);
  graph_.values[Idx(id)].constant = tensor.constant;
  return {};
}

Status Importer::ReadOperands(const onnx::NodeProto& proto, const ir::OpDef& def,
                              const Scope& scope, ir::Node* node, bool* poisoned) {
  for (const std::string& name : proto.input()) {
    const ValueId* id = name.empty() ? &Scope::kAbsent : scope.Find(name);
    if (id == nullptr) return Malformed("its input '", name, "' is not defined before it");
    if (const std::string* why = scope.WhyUnusable(name); why != nullptr) {
      return Unsupported("its input '", name, "': ", *why);
    }
    if (*id == kNoValue) *poisoned = true;
    node->inputs.push_back(*id == Scope::kAbsent ? kNoValue : *id);
  }
  if (*poisoned) return {};
  while (!node->inputs.empty() && node->inputs.back() == kNoValue) node->inputs.pop_back();
  const int count = static_cast<int>(node->inputs.size());
  const int most = std::max(def.max_inputs, def.max_file_inputs);
  const bool any =
      def.max_inputs == ir::OpDef::kVariadic || def.max_file_inputs == ir::OpDef::kVariadic;
  if (count < def.min_inputs || (!any && count > most)) {
    return Malformed("it has ", count, " inputs; ", def.min_inputs,
                     any ? " or more" : Concat(" to ", most), " are possible");
  }
  for (int i = 0; i < count; ++i) {
    if (node->inputs[Idx(i)] == kNoValue && (i < def.min_inputs || any)) {
      return Malformed("its input ", i, " is missing");
    }
  }
  if (def.max_outputs != ir::OpDef::kVariadic && proto.output_size() > def.max_outputs) {
    return Malformed("it has ", proto.output_size(), " outputs; at most ", def.max_outputs,
                     " are possible");
  }
  return {};
}

Status Importer::Infer(const onnx::NodeProto& proto, const ir::OpDef& def, ir::Node node,
                       Scope* scope) {
  // Inference asks which outputs are used; their values do not exist yet.
  for (const std::string& name : proto.output()) {
    node.outputs.push_back(name.empty() ? kNoValue : 0);
  }
  std::vector<ir::TensorType> types;
  DLA_RETURN_IF_ERROR(def.infer(graph_, node, &types));
  for (const ir::TensorType& type : types) {
    if (type.shape.size() > 16) return Unsupported("a result has rank ", type.shape.size());
    if (!ir::CheckedElementCount(type.shape)) {
      return Unsupported("a result has the shape ", ir::ShapeText(type.shape),
                         ", which is too large");
    }
  }
  bool needed = false;
  std::vector<ValueId> results(node.outputs.size(), kNoValue);
  for (int i = 0; i < proto.output_size(); ++i) {
    if (proto.output(i).empty() || Idx(i) >= types.size()) {
      if (!proto.output(i).empty()) return Unsupported("its output ", i, " is not supported");
      continue;
    }
    results[Idx(i)] = rewriter_.AddValue(proto.output(i), types[Idx(i)]);
    node.outputs[Idx(i)] = results[Idx(i)];
    needed = needed || ir::ElementCount(types[Idx(i)].shape) > 0;
    if (ir::ElementCount(types[Idx(i)].shape) > 0) continue;
    // Nothing has to be computed of a result without elements.
    graph_.values[Idx(results[Idx(i)])].constant =
        ir::MakeConstant(ir::Tensor::Zeros(types[Idx(i)]));
    node.outputs[Idx(i)] = kNoValue;
  }
  // Where an operator has any number of results, their number means something (Split's equal
  // parts).
  const bool counts = def.max_outputs == ir::OpDef::kVariadic;
  while (!counts && !node.outputs.empty() && node.outputs.back() == kNoValue) {
    node.outputs.pop_back();
  }
  if (needed) DLA_RETURN_IF_ERROR(Place(def, node));
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i] != kNoValue) scope->values[proto.output(static_cast<int>(i))] = results[i];
  }
  return {};
}

Status Importer::Place(const ir::OpDef& def, const ir::Node& node) {
  if (ir::IsFoldable(graph_, node)) return ir::FoldOnnxNode(&graph_, &rewriter_, node);
  if (def.kind == ir::OpKind::kOnnxOnly && def.lower == nullptr) {
    return Unsupported("it is supported only where its result is known when the model is compiled");
  }
  // Folding makes much of nothing (the product over an axis of no entries) where the result is
  // small.
  if (!node.inputs.empty() && def.max_inputs != ir::OpDef::kVariadic && !def.shape_only) {
    const ir::Value& first = graph_.values[Idx(node.inputs[0])];
    if (ir::ElementCount(first.shape) == 0) {
      return Unsupported("its input '", first.name, "' has no elements, and its result too many");
    }
  }
  for (const ValueId id : node.outputs) {
    if (id == kNoValue) continue;
    const ir::Shape& shape = graph_.values[Idx(id)].shape;
    if (ir::ElementCount(shape) > kMostElements) {
      return Unsupported("the shape ", ir::ShapeText(shape), " is too large");
    }
  }
  DLA_RETURN_IF_ERROR(CheckCanonical(def, node));
  graph_.nodes.push_back(node);
  return {};
}

// Rewrites the node in trial, to see whether its arithmetic exists for its types.
Status Importer::CheckCanonical(const ir::OpDef& def, const ir::Node& node) {
  if (def.lower == nullptr) return ir::CheckTypes(graph_, node);
  const size_t values = graph_.values.size();
  rewriter_.Begin(node);
  Status status = def.lower(&rewriter_, node);
  const std::vector<ir::Node> nodes = rewriter_.TakeNodes();
  for (const ir::Node& canonical : nodes) {
    if (status.ok()) status = ir::CheckTypes(graph_, canonical);
  }
  rewriter_.Forget(values);
  return status;
}

Status Importer::InlineIf(const onnx::NodeProto& proto, Scope* scope) {
  if (proto.input_size() != 1) return Malformed("it has ", proto.input_size(), " inputs, not one");
  const ValueId* id = scope->Find(proto.input(0));
  if (id == nullptr || *id == Scope::kAbsent) {
    return Malformed("its input '", proto.input(0), "' is not defined before it");
  }
  if (*id == kNoValue) return Poisoned();
  const auto condition = ir::ConstantScalar(graph_, *id);
  if (!condition) {
    return Unsupported("the condition '", proto.input(0),
                       "' is computed when the model runs; it must be constant");
  }
  const std::string wanted = *condition != 0 ? "then_branch" : "else_branch";
  const onnx::GraphProto* branch = nullptr;
  for (const onnx::AttributeProto& attribute : proto.attribute()) {
    if (attribute.name() == wanted && attribute.has_g()) branch = &attribute.g();
  }
  if (branch == nullptr) return Malformed("attribute '", wanted, "' is missing");
  if (branch->output_size() != proto.output_size()) {
    return Malformed("its branch has ", branch->output_size(), " outputs, it has ",
                     proto.output_size());
  }
  if (++depth_ > kMostDepth) {
    --depth_;
    return Unsupported("more than ", kMostDepth, " branches or functions stand inside each other");
  }
  Scope inner;
  inner.outer = scope;
  inner.opsets = scope->opsets;
  inner.attributes = scope->attributes;
  const Status initializers = AddInitializers(*branch, &inner);
  for (const onnx::NodeProto& node : branch->node()) {
    if (initializers.ok()) AddNode(node, &inner);
  }
  --depth_;
  DLA_RETURN_IF_ERROR(initializers);
  for (int i = 0; i < proto.output_size(); ++i) {
    const ValueId* result = inner.Find(branch->output(i).name());
    if (result == nullptr) {
      return Malformed("output '", branch->output(i).name(), "' of its branch is not computed");
    }
    if (!proto.output(i).empty()) scope->values[proto.output(i)] = *result;
  }
  return {};
}

const onnx::FunctionProto* Importer::FindFunction(const onnx::NodeProto& proto) const {
  const auto it = functions_.find(proto.domain() + ":" + proto.op_type());
  return it == functions_.end() ? nullptr : it->second;
}

Status Importer::InlineCall(const onnx::NodeProto& proto, const onnx::FunctionProto& function,
                            Scope* scope) {
  if (proto.input_size() > function.input_size() || proto.output_size() > function.output_size()) {
    return Malformed("it has ", proto.input_size(), " inputs and ", proto.output_size(),
                     " outputs, the function has ", function.input_size(), " and ",
                     function.output_size());
  }
  if (depth_ >= kMostDepth) {
    return Unsupported("more than ", kMostDepth, " branches or functions stand inside each other");
  }
  Scope inner;
  inner.opsets = OpsetsOf(function.opset_import(), scope->opsets);
  auto attributes = std::make_shared<std::map<std::string, onnx::AttributeProto>>();
  DLA_RETURN_IF_ERROR(ReadDefaults(function, attributes.get()));
  for (const auto& attribute : proto.attribute()) (*attributes)[attribute.name()] = attribute;
  inner.attributes = attributes;
  for (int i = 0; i < function.input_size(); ++i) {
    ValueId given = Scope::kAbsent;
    if (i < proto.input_size() && !proto.input(i).empty()) {
      const ValueId* id = scope->Find(proto.input(i));
      if (id == nullptr) {
        return Malformed("its input '", proto.input(i), "' is not defined before it");
      }
      given = *id;
    }
    inner.values[function.input(i)] = given;
  }
  ++depth_;
  for (const onnx::NodeProto& node : function.node()) AddNode(node, &inner);
  --depth_;
  for (int i = 0; i < proto.output_size(); ++i) {
    if (proto.output(i).empty()) continue;
    const ValueId* result = inner.Find(function.output(i));
    if (result == nullptr || *result == Scope::kAbsent) {
      return Malformed("output '", function.output(i), "' of the function is not computed");
    }
    scope->values[proto.output(i)] = *result;
  }
  return {};
}

}  // namespace dla::frontend
