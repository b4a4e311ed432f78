// Printing; ir/text_parse.cc is the other direction.
#include "ir/text.h"

#include <charconv>
#include <cstring>
#include <sstream>

#include "ir/tensor.h"
#include "ir/text_detail.h"

namespace dla::ir {
namespace {

void PrintFloat(float value, std::ostringstream* out) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  *out << std::string_view(buffer, static_cast<size_t>(end - buffer)) << 'f';
}

template <typename T>
void PrintElement(const T& value, std::ostringstream* out) {
  if constexpr (std::is_same_v<T, float>) {
    PrintFloat(value, out);
  } else {
    *out << value;
  }
}

template <typename T>
void PrintList(const std::vector<T>& values, std::ostringstream* out) {
  *out << '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) *out << ',';
    PrintElement(values[i], out);
  }
  *out << ']';
  if (std::is_same_v<T, float>) *out << 'f';
}

void PrintAttributes(const std::map<std::string, Attribute>& attributes, std::ostringstream* out) {
  if (attributes.empty()) return;
  *out << " {";
  bool first = true;
  for (const auto& [name, value] : attributes) {
    *out << (first ? "" : ", ") << name << '=';
    first = false;
    if (const auto* i = std::get_if<int64_t>(&value)) *out << *i;
    if (const auto* f = std::get_if<float>(&value)) PrintFloat(*f, out);
    if (const auto* s = std::get_if<std::string>(&value)) *out << QuoteText(*s);
    if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) PrintList(*list, out);
    if (const auto* list = std::get_if<std::vector<float>>(&value)) PrintList(*list, out);
  }
  *out << '}';
}

void PrintIds(const std::vector<ValueId>& ids, std::ostringstream* out) {
  *out << '(';
  for (size_t i = 0; i < ids.size(); ++i) {
    *out << (i == 0 ? "" : ", ");
    if (ids[i] == kNoValue) {
      *out << '_';
    } else {
      *out << '%' << ids[i];
    }
  }
  *out << ')';
}

void PrintConstant(const Constant& constant, std::ostringstream* out) {
  if (constant.size_bytes > kMostInlineBytes) {
    *out << " = digest " << ConstantDigest(constant);
    return;
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  *out << " = hex ";
  if (constant.size_bytes == 0) *out << '-';
  for (int64_t i = 0; i < constant.size_bytes; ++i) {
    *out << kDigits[constant.bytes[i] >> 4] << kDigits[constant.bytes[i] & 15];
  }
}

void PrintValue(size_t id, const Value& value, std::ostringstream* out) {
  *out << "value %" << id << ' ' << QuoteText(value.name) << ' ' << TypeName(value.type) << ' ';
  PrintList(value.shape, out);
  if (value.constant != nullptr) PrintConstant(*value.constant, out);
  if (value.storage.root != kNoValue) {
    *out << " @ %" << value.storage.root << ' ' << value.storage.offset << ' ';
    PrintList(value.storage.strides, out);
    if (value.storage.type) *out << " as " << TypeName(*value.storage.type);
    const auto [first, end] = value.storage.summed_axes;
    if (end > 0) *out << " along " << first << ' ' << end;
  }
  *out << '\n';
}

void PrintNode(const Node& node, std::ostringstream* out) {
  *out << "node " << QuoteText(node.name) << ' ' << node.op << ' ' << node.opset << ' ';
  PrintIds(node.inputs, out);
  *out << " -> ";
  PrintIds(node.outputs, out);
  PrintAttributes(node.attributes, out);
  for (const FusedOp& op : node.fused) {
    *out << " | " << op.op << '(';
    for (size_t i = 0; i < op.inputs.size(); ++i) *out << (i == 0 ? "" : ", ") << op.inputs[i];
    *out << ')';
    PrintAttributes(op.attributes, out);
  }
  *out << " from (";
  for (size_t i = 0; i < node.onnx_nodes.size(); ++i) {
    *out << (i == 0 ? "" : ", ") << QuoteText(node.onnx_nodes[i]);
  }
  *out << ")\n";
}

bool SameConstant(const Constant* a, const Constant* b) {
  if (a == nullptr || b == nullptr) return a == b;
  if (a->size_bytes != b->size_bytes) return false;
  return a->size_bytes == 0 || a->bytes == b->bytes ||
         std::memcmp(a->bytes, b->bytes, Idx(a->size_bytes)) == 0;
}

// Bitwise, so that a NaN attribute equals itself.
bool SameAttributes(const std::map<std::string, Attribute>& a,
                    const std::map<std::string, Attribute>& b) {
  std::ostringstream x, y;
  PrintAttributes(a, &x);
  PrintAttributes(b, &y);
  return x.str() == y.str();
}

bool SameNode(const Node& a, const Node& b) {
  if (a.name != b.name || a.op != b.op || a.inputs != b.inputs || a.outputs != b.outputs ||
      a.onnx_nodes != b.onnx_nodes || a.opset != b.opset || a.fused.size() != b.fused.size() ||
      !SameAttributes(a.attributes, b.attributes)) {
    return false;
  }
  for (size_t k = 0; k < a.fused.size(); ++k) {
    if (a.fused[k].op != b.fused[k].op || a.fused[k].inputs != b.fused[k].inputs ||
        !SameAttributes(a.fused[k].attributes, b.fused[k].attributes)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string QuoteText(const std::string& text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 32 || byte == 127) {
      result += "\\x";
      result += kDigits[byte >> 4];
      result += kDigits[byte & 15];
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string ConstantDigest(const Constant& constant) {
  // Two independent 64-bit FNV-1a sums over 8 bytes at a time, and the size.
  uint64_t a = 0xcbf29ce484222325, b = 0x84222325cbf29ce4;
  const int64_t words = constant.size_bytes / 8;
  const auto add = [&](uint64_t word) {
    a = (a ^ word) * 0x100000001b3;
    b = (b ^ (word >> 32 | word << 32)) * 0x9e3779b97f4a7c15;
    b ^= b >> 29;
  };
  for (int64_t i = 0; i < words; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, constant.bytes + i * 8, 8);
    add(word);
  }
  for (int64_t i = words * 8; i < constant.size_bytes; ++i) add(constant.bytes[i]);
  std::ostringstream out;
  out << std::hex << a << '-' << b << '-' << std::dec << constant.size_bytes;
  return out.str();
}

std::string PrintGraph(const Graph& graph) {
  std::ostringstream out;
  out << "graph " << QuoteText(graph.name) << '\n';
  for (size_t i = 0; i < graph.values.size(); ++i) PrintValue(i, graph.values[i], &out);
  out << "inputs ";
  PrintIds(graph.inputs, &out);
  out << "\noutputs ";
  PrintIds(graph.outputs, &out);
  out << '\n';
  if (graph.array_type) out << "array " << TypeName(*graph.array_type) << '\n';
  for (const Node& node : graph.nodes) PrintNode(node, &out);
  return out.str();
}

ConstantTable LargeConstants(const Graph& graph) {
  ConstantTable table;
  for (const Value& value : graph.values) {
    if (value.constant == nullptr || value.constant->size_bytes <= kMostInlineBytes) continue;
    table[ConstantDigest(*value.constant)] = value.constant;
  }
  return table;
}

bool SameGraph(const Graph& a, const Graph& b) {
  if (a.name != b.name || a.array_type != b.array_type || a.inputs != b.inputs ||
      a.outputs != b.outputs || a.values.size() != b.values.size() ||
      a.nodes.size() != b.nodes.size()) {
    return false;
  }
  for (size_t i = 0; i < a.values.size(); ++i) {
    const Value& x = a.values[i];
    const Value& y = b.values[i];
    if (x.name != y.name || x.type != y.type || x.shape != y.shape || x.storage != y.storage ||
        !SameConstant(x.constant.get(), y.constant.get())) {
      return false;
    }
  }
  for (size_t i = 0; i < a.nodes.size(); ++i) {
    if (!SameNode(a.nodes[i], b.nodes[i])) return false;
  }
  return true;
}

}  // namespace dla::ir
