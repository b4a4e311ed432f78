// docs/OPERATORS.md, from the operator table.
#include <sstream>

#include "ir/op.h"

namespace dla::ir {
namespace {

std::string_view KindName(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kInt:
      return "int";
    case AttributeKind::kFloat:
      return "float";
    case AttributeKind::kString:
      return "string";
    case AttributeKind::kInts:
      return "ints";
    case AttributeKind::kFloats:
      return "floats";
    case AttributeKind::kType:
      return "element type";
    case AttributeKind::kScalar:
      return "tensor of one element";
  }
  return "";
}

std::string_view KindName(OpKind kind) {
  switch (kind) {
    case OpKind::kOnnxOnly:
      return "rewritten";
    case OpKind::kContraction:
      return "array";
    case OpKind::kMap:
      return "vector, fuses behind others";
    case OpKind::kRow:
    case OpKind::kReduction:
    case OpKind::kVectorMove:
      return "vector";
    case OpKind::kView:
      return "view or copy";
    case OpKind::kCopy:
      return "copy";
  }
  return "";
}

std::string Attributes(const OpDef& op) {
  std::ostringstream out;
  for (const AttributeDef& attribute : op.attributes) {
    if (out.tellp() > 0) out << "; ";
    out << "`" << attribute.name << "` " << KindName(attribute.kind);
    if (attribute.required) out << ", required";
    if (!attribute.fallback.empty()) out << " (" << attribute.fallback << ")";
    if (!attribute.note.empty()) out << ": " << attribute.note;
  }
  return out.str();
}

void Row(const OpDef& op, std::ostringstream* out) {
  *out << "| " << op.name << " | " << KindName(op.kind) << " | " << Attributes(op) << " | "
       << op.note << " |\n";
}

}  // namespace

std::string OperatorsMarkdown() {
  std::ostringstream out;
  out << "# Operators\n\nGenerated from the operator table (`ir/ops/`). Opsets " << kOldestOpset
      << " to " << kNewestOpset
      << " of the default ONNX domain; shapes are static; arithmetic at run time is in f32.\n\n"
      << "## In files\n\n| operator | runs as | attributes (default) | limits |\n"
      << "| --- | --- | --- | --- |\n";
  out << "| Constant | constant | any form but strings and sparse tensors |  |\n";
  for (const OpDef* op : OperatorTable()) {
    if (op->onnx) Row(*op, &out);
  }
  out << "\n## Made by the compiler\n\n| operator | runs as | attributes (default) | what it is |\n"
      << "| --- | --- | --- | --- |\n";
  for (const OpDef* op : OperatorTable()) {
    if (!op->onnx) Row(*op, &out);
  }
  return out.str();
}

}  // namespace dla::ir
