#include "frontend/attributes.h"

#include <algorithm>

namespace dla::frontend {
namespace {

using ir::AttributeKind;
using onnx::AttributeProto;

AttributeProto::AttributeType TypeOfKind(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kInt:
    case AttributeKind::kType:
      return AttributeProto::INT;
    case AttributeKind::kFloat:
      return AttributeProto::FLOAT;
    case AttributeKind::kString:
      return AttributeProto::STRING;
    case AttributeKind::kInts:
      return AttributeProto::INTS;
    case AttributeKind::kFloats:
      return AttributeProto::FLOATS;
    case AttributeKind::kScalar:
      return AttributeProto::TENSOR;
  }
  return AttributeProto::UNDEFINED;
}

// A tensor of one element as a number, with its type beside it.
Status AddScalar(const AttributeProto& attribute, TensorReader* tensors, ir::AttributeMap* result) {
  DLA_ASSIGN_OR_RETURN(const ImportedTensor tensor, tensors->Read(attribute.t()));
  const ir::TensorView view{tensor.type.type, tensor.type.shape, tensor.constant->bytes};
  if (view.elements() != 1) {
    return Malformed("attribute '", attribute.name(), "' has ", view.elements(),
                     " elements, not one");
  }
  if (!ir::IsReadable(view.type)) {
    return Unsupported("attribute '", attribute.name(), "' has type ", TypeName(view.type));
  }
  if (IsFloat(view.type)) {
    (*result)[attribute.name()] = static_cast<float>(ir::ReadDouble(view, 0));
  } else {
    (*result)[attribute.name()] = ir::ReadInt(view, 0);
  }
  (*result)[attribute.name() + "_type"] = std::string(TypeName(view.type));
  return {};
}

Status AddAttribute(const AttributeProto& attribute, AttributeKind kind, TensorReader* tensors,
                    ir::AttributeMap* result) {
  ir::Attribute& value = (*result)[attribute.name()];
  switch (kind) {
    case AttributeKind::kInt:
      value = static_cast<int64_t>(attribute.i());
      break;
    case AttributeKind::kFloat:
      value = attribute.f();
      break;
    case AttributeKind::kString:
      value = attribute.s();
      break;
    case AttributeKind::kInts:
      value = std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end());
      break;
    case AttributeKind::kFloats:
      value = std::vector<float>(attribute.floats().begin(), attribute.floats().end());
      break;
    case AttributeKind::kType: {
      const int64_t number = attribute.i();
      const int small = number < 0 || number > 1000 ? -1 : static_cast<int>(number);
      DLA_ASSIGN_OR_RETURN(const ElementType type, TypeOfNumber(small));
      value = std::string(TypeName(type));
      break;
    }
    case AttributeKind::kScalar:
      return AddScalar(attribute, tensors, result);
  }
  return {};
}

ImportedTensor Own(ir::Tensor tensor) {
  ImportedTensor result;
  result.type = {tensor.type, tensor.shape};
  result.constant = ir::MakeConstant(std::move(tensor));
  return result;
}

}  // namespace

Result<ir::AttributeMap> ReadAttributes(const onnx::NodeProto& node, const ir::OpDef& op, int opset,
                                        TensorReader* tensors) {
  ir::AttributeMap result;
  for (const AttributeProto& attribute : node.attribute()) {
    const auto def = std::find_if(op.attributes.begin(), op.attributes.end(),
                                  [&](const auto& d) { return d.name == attribute.name(); });
    if (def == op.attributes.end()) {
      // A hint of the first operators: which operands may be overwritten.
      if (attribute.name() == "consumed_inputs" && opset < 6) continue;
      return Unsupported("attribute '", attribute.name(), "' is not known");
    }
    if (!attribute.ref_attr_name().empty()) {
      return Unsupported("attribute '", attribute.name(), "' refers to a function's attribute");
    }
    // Old files leave the type out.
    const auto type = attribute.type();
    if (type != AttributeProto::UNDEFINED && type != TypeOfKind(def->kind)) {
      return Malformed("attribute '", attribute.name(), "' has type ",
                       AttributeProto::AttributeType_Name(type), ", ",
                       AttributeProto::AttributeType_Name(TypeOfKind(def->kind)), " is expected");
    }
    DLA_RETURN_IF_ERROR(AddAttribute(attribute, def->kind, tensors, &result));
  }
  for (const ir::AttributeDef& def : op.attributes) {
    if (def.required && !result.contains(std::string(def.name))) {
      return Malformed("attribute '", def.name, "' is missing");
    }
  }
  return result;
}

Result<ImportedTensor> ReadConstantNode(const onnx::NodeProto& node, TensorReader* tensors) {
  if (node.attribute_size() != 1) {
    return Malformed("it has ", node.attribute_size(), " attributes, not one");
  }
  const AttributeProto& attribute = node.attribute(0);
  const std::string& name = attribute.name();
  if (name == "value" && attribute.has_t()) return tensors->Read(attribute.t());
  if (name == "sparse_value" && attribute.has_sparse_tensor()) {
    return tensors->ReadSparse(attribute.sparse_tensor());
  }
  if (name == "value_float") return Own(ir::Tensor::Floats({}, {attribute.f()}));
  if (name == "value_int") return Own(ir::Tensor::Ints({}, {attribute.i()}));
  if (name == "value_floats") {
    return Own(ir::Tensor::Floats({attribute.floats_size()},
                                  {attribute.floats().begin(), attribute.floats().end()}));
  }
  if (name == "value_ints") {
    return Own(ir::Tensor::Ints({attribute.ints_size()},
                                {attribute.ints().begin(), attribute.ints().end()}));
  }
  return Unsupported("attribute '", name, "' is not supported");
}

}  // namespace dla::frontend
