// What a verifier finds wrong: a list of messages up to a limit.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "support/status.h"

namespace dla::machine {

class Faults {
 public:
  static constexpr size_t kLimit = 20;

  template <typename... Args>
  void Add(const std::string& where, const Args&... what) {
    ++count_;
    if (lines_.size() < kLimit) lines_.push_back(where + ": " + Concat(what...));
  }
  size_t count() const { return count_; }
  bool full() const { return count_ >= kLimit; }

  Status ToStatus() const {
    std::string text;
    for (const std::string& line : lines_) text += (text.empty() ? "" : "\n") + line;
    if (count_ > lines_.size()) text += Concat("\n", count_ - lines_.size(), " more faults");
    return lines_.empty() ? Status() : Status(ErrorCode::kMalformed, text);
  }

 private:
  std::vector<std::string> lines_;
  size_t count_ = 0;
};

}  // namespace dla::machine
