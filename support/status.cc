#include "support/status.h"

#include <cstdio>

namespace dla {

Status Status::At(const std::string& where) const {
  if (ok()) return *this;
  std::string text = where + ": ";
  for (const char c : message_) {
    text += c;
    if (c == '\n') text += where + ": ";
  }
  return Status(code_, text);
}

void InternalError(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "internal error: %s:%d: broken invariant: %s\nplease report this\n", file,
               line, what.c_str());
  std::fflush(nullptr);
#ifdef DLA_FUZZERS
  std::abort();  // so that libFuzzer keeps the input
#endif
  std::_Exit(70);
}

}  // namespace dla
