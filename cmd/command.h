// What every command does the same way: messages, exit codes, writing results.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "support/file.h"
#include "support/status.h"

namespace dla::cmd {

// Prints each line of the failure as "COMMAND: error: LINE" to stderr; returns the exit code.
inline int Fail(const char* command, const Status& status) {
  std::string_view rest = status.message();
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string line(rest.substr(0, end));
    std::fprintf(stderr, "%s: error: %s\n", command, line.c_str());
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return static_cast<int>(status.code());
}

// Writes a result to the file, or to stdout where `path` is empty or "-".
inline Status WriteResult(const std::string& path, std::string_view text) {
  if (!path.empty() && path != "-") return WriteTextFile(path, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return IoError("standard output: cannot write");
  }
  return {};
}

}  // namespace dla::cmd
