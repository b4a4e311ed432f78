// Reads one line of assembly from left to right. Every getter skips blanks first, answers whether
// it found what it wants, and leaves the cursor alone if not.
#pragma once

#include <charconv>
#include <string>
#include <string_view>

namespace dla::machine {

class TextCursor {
 public:
  explicit TextCursor(std::string_view text) : text_(text) {}

  // True at the end of the line or at a comment.
  bool AtEnd() {
    Blanks();
    return text_.empty() || text_.starts_with("//");
  }
  bool Take(std::string_view literal) {
    Blanks();
    if (!text_.starts_with(literal)) return false;
    text_.remove_prefix(literal.size());
    return true;
  }
  // Letters, digits and '_'.
  std::string_view Word() {
    Blanks();
    size_t length = 0;
    while (length < text_.size() && IsWordLetter(text_[length])) ++length;
    const std::string_view word = text_.substr(0, length);
    text_.remove_prefix(length);
    return word;
  }
  // The word `literal`, whole.
  bool TakeWord(std::string_view literal) {
    const std::string_view before = text_;
    if (Word() == literal) return true;
    text_ = before;
    return false;
  }
  template <typename T>
  bool Number(T* value) {
    Blanks();
    const auto result = std::from_chars(text_.data(), text_.data() + text_.size(), *value);
    if (result.ec != std::errc()) return false;
    text_.remove_prefix(static_cast<size_t>(result.ptr - text_.data()));
    return true;
  }
  bool Quoted(std::string* value) {
    if (!Take("\"")) return false;
    value->clear();
    while (!text_.empty() && text_[0] != '"') {
      if (text_[0] != '\\') {
        *value += text_[0];
        text_.remove_prefix(1);
      } else if (!Escaped(value)) {
        return false;
      }
    }
    if (text_.empty()) return false;
    text_.remove_prefix(1);
    return true;
  }
  // All up to a comment.
  std::string_view Rest() {
    Blanks();
    std::string_view rest = text_.substr(0, text_.find("//"));
    while (rest.ends_with(' ')) rest.remove_suffix(1);
    text_ = {};
    return rest;
  }
  std::string_view remaining() const { return text_; }

 private:
  static bool IsWordLetter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  void Blanks() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\t' || text_[0] == '\r')) {
      text_.remove_prefix(1);
    }
  }
  // \" \\ \xHH
  bool Escaped(std::string* value) {
    if (text_.size() >= 2 && (text_[1] == '"' || text_[1] == '\\')) {
      *value += text_[1];
      text_.remove_prefix(2);
      return true;
    }
    unsigned byte = 0;
    if (text_.size() < 4 || text_[1] != 'x') return false;
    const auto result = std::from_chars(text_.data() + 2, text_.data() + 4, byte, 16);
    if (result.ptr != text_.data() + 4) return false;
    *value += static_cast<char>(byte);
    text_.remove_prefix(4);
    return true;
  }

  std::string_view text_;
};

}  // namespace dla::machine
