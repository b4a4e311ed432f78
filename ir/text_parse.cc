// Parsing of the text form. The text is untrusted: every index is only a number here (the verifier
// checks that it means something), every size is bounded by the text's own length.
#include <charconv>
#include <cmath>

#include "ir/tensor.h"
#include "ir/text.h"
#include "ir/text_detail.h"

namespace dla::ir {
namespace {

// Reads one line from left to right; remembers the first thing that was wrong.
class Line {
 public:
  explicit Line(std::string_view text) : text_(text) {}

  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  bool AtEnd() {
    Skip();
    return text_.empty();
  }

  // Takes the token if it comes next.
  bool Take(std::string_view token) {
    Skip();
    if (text_.substr(0, token.size()) != token) return false;
    text_.remove_prefix(token.size());
    return true;
  }
  void Expect(std::string_view token) {
    if (!Take(token)) Fail(Concat("'", token, "' expected"));
  }

  std::string Word() {
    Skip();
    size_t end = 0;
    while (end < text_.size() &&
           std::string_view(" ,()[]{}=|@").find(text_[end]) == std::string_view::npos) {
      ++end;
    }
    if (end == 0) Fail("a word expected");
    const std::string word(text_.substr(0, end));
    text_.remove_prefix(end);
    return word;
  }

  template <typename T>
  T Number() {
    Skip();
    T value{};
    const auto result = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (result.ec != std::errc()) {
      Fail("a number expected");
    } else {
      text_.remove_prefix(static_cast<size_t>(result.ptr - text_.data()));
    }
    return value;
  }

  std::string Quoted() {
    Expect("\"");
    std::string result;
    while (ok()) {
      if (text_.empty()) {
        Fail("the text has no closing quote");
        break;
      }
      char c = text_[0];
      text_.remove_prefix(1);
      if (c == '"') break;
      if (c == '\\' && !text_.empty()) {
        c = text_[0];
        text_.remove_prefix(1);
        if (c == 'x') c = static_cast<char>(HexByte());
      }
      result += c;
    }
    return result;
  }

  uint8_t HexByte() {
    unsigned value = 0;
    const std::string_view digits = text_.substr(0, 2);
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 2 || result.ec != std::errc() || result.ptr != digits.data() + 2) {
      Fail("two hexadecimal digits expected");
      return 0;
    }
    text_.remove_prefix(2);
    return static_cast<uint8_t>(value);
  }

  char Peek() {
    Skip();
    return text_.empty() ? '\0' : text_[0];
  }

  void Fail(const std::string& what) {
    if (!error_.empty()) return;
    Skip();
    error_ = Concat(what, text_.empty() ? " at the end of the line"
                                        : Concat(" before '", text_.substr(0, 20), "'"));
    text_ = {};
  }

 private:
  void Skip() {
    while (!text_.empty() && text_[0] == ' ') text_.remove_prefix(1);
  }

  std::string_view text_;
  std::string error_;
};

template <typename T, typename Element>
std::vector<T> List(Line* line, char open, char close, Element element) {
  std::vector<T> result;
  line->Expect(std::string_view(&open, 1));
  if (line->Take(std::string_view(&close, 1))) return result;
  do {
    result.push_back(element());
  } while (line->ok() && line->Take(","));
  line->Expect(std::string_view(&close, 1));
  return result;
}

Shape Numbers(Line* line) {
  return List<int64_t>(line, '[', ']', [&] { return line->Number<int64_t>(); });
}

ValueId Id(Line* line) {
  line->Expect("%");
  return line->Number<ValueId>();
}

std::vector<ValueId> Ids(Line* line) {
  return List<ValueId>(line, '(', ')', [&] { return line->Take("_") ? kNoValue : Id(line); });
}

// 3, 0.5f, "text", [1,2], [1f,2f]f. A number with an f behind it is a float.
Attribute ParseAttribute(Line* line) {
  if (line->Peek() == '"') return line->Quoted();
  if (line->Peek() == '[') {
    Line copy = *line;
    const auto floats = List<float>(&copy, '[', ']', [&] {
      const float value = copy.Number<float>();
      copy.Expect("f");
      return value;
    });
    if (copy.ok() && copy.Take("f")) {
      *line = copy;
      return floats;
    }
    return Numbers(line);
  }
  Line copy = *line;
  const float value = copy.Number<float>();
  if (copy.ok() && copy.Take("f")) {
    *line = copy;
    return value;
  }
  return line->Number<int64_t>();
}

std::map<std::string, Attribute> ParseAttributes(Line* line) {
  std::map<std::string, Attribute> result;
  if (!line->Take("{")) return result;
  do {
    const std::string name = line->Word();
    line->Expect("=");
    result[name] = ParseAttribute(line);
  } while (line->ok() && line->Take(","));
  line->Expect("}");
  return result;
}

class Parser {
 public:
  explicit Parser(const ConstantTable& constants) : constants_(constants) {}

  Result<Graph> Run(std::string_view text) {
    int number = 0;
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      Line line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      ++number;
      if (line.AtEnd()) continue;
      ParseLine(&line);
      if (line.ok() && !line.AtEnd()) line.Fail("nothing more expected");
      if (!line.ok()) return Malformed("line ", number, ": ", line.error());
    }
    return std::move(graph_);
  }

 private:
  void ParseLine(Line* line) {
    if (line->Take("graph ")) {
      graph_.name = line->Quoted();
    } else if (line->Take("value ")) {
      ParseValue(line);
    } else if (line->Take("inputs ")) {
      graph_.inputs = Ids(line);
    } else if (line->Take("outputs ")) {
      graph_.outputs = Ids(line);
    } else if (line->Take("array ")) {
      graph_.array_type = Type(line);
    } else if (line->Take("node ")) {
      ParseNode(line);
    } else {
      line->Fail("graph, value, inputs, outputs or node expected");
    }
  }

  static ElementType Type(Line* line) {
    const auto type = ParseElementType(line->Word());
    if (!type) line->Fail("an element type expected");
    return type.value_or(ElementType::kF32);
  }

  void ParseValue(Line* line) {
    const ValueId id = Id(line);
    if (line->ok() && id != static_cast<ValueId>(graph_.values.size())) {
      return line->Fail(Concat("value %", graph_.values.size(), " expected"));
    }
    Value value;
    value.name = line->Quoted();
    value.type = Type(line);
    value.shape = Numbers(line);
    if (line->Take("=")) value.constant = ParseConstant(line);
    if (line->Take("@")) {
      value.storage.root = Id(line);
      value.storage.offset = line->Number<int64_t>();
      value.storage.strides = Numbers(line);
      if (line->Take("as ")) value.storage.type = Type(line);
      if (line->Take("along ")) {
        value.storage.summed_axes.first = line->Number<int>();
        value.storage.summed_axes.second = line->Number<int>();
      }
    }
    graph_.values.push_back(std::move(value));
  }

  std::shared_ptr<const Constant> ParseConstant(Line* line) {
    if (line->Take("digest ")) {
      const std::string digest = line->Word();
      const auto it = constants_.find(digest);
      if (it != constants_.end()) return it->second;
      line->Fail(Concat("no constant with digest ", digest, " is given;"));
      return nullptr;
    }
    line->Expect("hex ");
    Tensor tensor;
    if (!line->Take("-")) {
      while (line->ok() && std::isxdigit(static_cast<unsigned char>(line->Peek())) != 0) {
        tensor.bytes.push_back(line->HexByte());
      }
    }
    return MakeConstant(std::move(tensor));
  }

  void ParseNode(Line* line) {
    Node node;
    node.name = line->Quoted();
    node.op = line->Word();
    node.opset = line->Number<int>();
    node.inputs = Ids(line);
    line->Expect("->");
    node.outputs = Ids(line);
    node.attributes = ParseAttributes(line);
    while (line->ok() && line->Take("|")) {
      FusedOp op;
      op.op = line->Word();
      op.inputs = List<int>(line, '(', ')', [&] { return line->Number<int>(); });
      op.attributes = ParseAttributes(line);
      node.fused.push_back(std::move(op));
    }
    line->Expect("from");
    node.onnx_nodes = List<std::string>(line, '(', ')', [&] { return line->Quoted(); });
    graph_.nodes.push_back(std::move(node));
  }

  const ConstantTable& constants_;
  Graph graph_;
};

}  // namespace

Result<Graph> ParseGraph(std::string_view text, const ConstantTable& constants) {
  return Parser(constants).Run(text);
}

}  // namespace dla::ir
