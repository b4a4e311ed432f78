// Reading and writing of a program's structures, each described once (program_layout.h).
//
// A description is a function template Describe(archive, object) that visits the members by name.
// EncodingWriter turns the visit into bytes, EncodingReader reads them back. Everything is
// little-endian and of fixed width. The reader compares each item with what remains, so that it can
// neither overrun nor allocate more than the file's own size justifies; its first failure stops it
// and is reported with section, offset and the name of what was being read.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "support/status.h"

namespace dla::machine {

class EncodingWriter {
 public:
  static constexpr bool kReads = false;

  template <typename T>
  void Int(const char*, const T& value) {
    Unsigned(static_cast<uint64_t>(value), sizeof(T));
  }
  template <typename E>
  void Enum(const char*, const E& value, int) {
    Unsigned(static_cast<uint64_t>(value), 1);
  }
  void Bool(const char*, const bool& value) { Unsigned(value ? 1 : 0, 1); }
  void Float(const char*, const double& value) { Unsigned(std::bit_cast<uint64_t>(value), 8); }
  void Text(const char*, const std::string& value) {
    Unsigned(value.size(), 4);
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  // `item_bytes`: the least that one item takes; `max_items`: the most there can be.
  template <typename T, typename Visit>
  void List(const char*, const std::vector<T>& items, size_t, size_t, Visit visit) {
    Unsigned(items.size(), 4);
    for (const T& item : items) visit(*this, item);
  }
  const std::vector<uint8_t>& bytes() const { return bytes_; }

 private:
  void Unsigned(uint64_t value, size_t width) {
    for (size_t i = 0; i < width; ++i) bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }
  std::vector<uint8_t> bytes_;
};

class EncodingReader {
 public:
  static constexpr bool kReads = true;

  // `offset` is where `bytes` begins in the file, for messages.
  EncodingReader(std::span<const uint8_t> bytes, int64_t offset) : bytes_(bytes), offset_(offset) {}

  template <typename T>
  void Int(const char* what, T& value) {
    value = static_cast<T>(Unsigned(what, sizeof(T)));
  }
  // One of `count` enumerators from 0 on.
  template <typename E>
  void Enum(const char* what, E& value, int count) {
    const uint64_t number = Unsigned(what, 1);
    if (number >= static_cast<uint64_t>(count)) {
      Fail(what, Concat(number, " is no such value (0 to ", count - 1, ")"));
    } else {
      value = static_cast<E>(number);
    }
  }
  void Bool(const char* what, bool& value) {
    const uint64_t number = Unsigned(what, 1);
    if (number > 1) Fail(what, Concat(number, " is neither 0 nor 1"));
    value = number == 1;
  }
  void Float(const char* what, double& value) { value = std::bit_cast<double>(Unsigned(what, 8)); }
  void Text(const char* what, std::string& value) {
    const uint64_t length = Unsigned(what, 4);
    if (length > remaining()) {
      Fail(what, Concat("a text of ", length, " bytes; ", remaining(), " remain"));
      return;
    }
    const auto text = bytes_.subspan(position_, length);
    value.assign(text.begin(), text.end());
    position_ += length;
  }
  template <typename T, typename Visit>
  void List(const char* what, std::vector<T>& items, size_t item_bytes, size_t max_items,
            Visit visit) {
    const uint64_t count = Unsigned(what, 4);
    if (count > max_items) {
      Fail(what, Concat(count, " of them; at most ", max_items, " are allowed"));
    } else if (count > remaining() / item_bytes) {
      Fail(what, Concat(count, " of them, of at least ", item_bytes, " bytes each; ", remaining(),
                        " bytes remain"));
    }
    for (uint64_t i = 0; i < count && ok(); ++i) visit(*this, items.emplace_back());
  }

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  size_t remaining() const { return bytes_.size() - position_; }
  void Fail(const char* what, const std::string& why) {
    if (!ok()) return;
    status_ =
        Malformed("offset ", offset_ + static_cast<int64_t>(position_), ": ", what, ": ", why);
    position_ = bytes_.size();
  }
  // Everything must have been read.
  void ExpectEnd(const char* what) {
    if (ok() && remaining() != 0) Fail(what, Concat(remaining(), " bytes too many"));
  }

 private:
  uint64_t Unsigned(const char* what, size_t width) {
    if (remaining() < width) {
      Fail(what, Concat("needs ", width, " bytes; ", remaining(), " remain"));
      return 0;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i) {
      value |= static_cast<uint64_t>(bytes_[position_ + i]) << (8 * i);
    }
    position_ += width;
    return value;
  }

  std::span<const uint8_t> bytes_;
  int64_t offset_;
  size_t position_ = 0;
  Status status_;
};

}  // namespace dla::machine
