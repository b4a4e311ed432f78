// Status and Result<T>: how errors travel.
//
// Whatever a user can cause (bad file, bad flag, a model that does not fit) is a value of one of
// these two types and reaches cmd/, which prints it and picks the exit code. A broken invariant of
// ours is not an error value: DLA_CHECK stops the program with exit code 70.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace dla {

// The kinds of failure. Each is an exit code of the commands (docs/ARCHITECTURE.md, "Errors").
enum class ErrorCode : int {
  kOk = 0,
  kUsage = 2,        // the command line is wrong
  kMalformed = 3,    // an input file breaks its format
  kUnsupported = 4,  // valid, but more than this version can do
  kDoesNotFit = 5,   // the machine is too small
  kIo = 6,           // a file cannot be read or written
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == ErrorCode::kOk; }
  ErrorCode code() const { return code_; }
  // One or more lines; each line is a message of its own (several reasons at once).
  const std::string& message() const { return message_; }

  // The same failure with `where` and a colon put before every line of the message.
  Status At(const std::string& where) const;

 private:
  ErrorCode code_ = ErrorCode::kOk;
  std::string message_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit on purpose
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

// The arguments, streamed one after the other.
template <typename... Args>
std::string Concat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

template <typename... Args>
Status Usage(const Args&... args) {
  return Status(ErrorCode::kUsage, Concat(args...));
}
template <typename... Args>
Status Malformed(const Args&... args) {
  return Status(ErrorCode::kMalformed, Concat(args...));
}
template <typename... Args>
Status Unsupported(const Args&... args) {
  return Status(ErrorCode::kUnsupported, Concat(args...));
}
template <typename... Args>
Status DoesNotFit(const Args&... args) {
  return Status(ErrorCode::kDoesNotFit, Concat(args...));
}
template <typename... Args>
Status IoError(const Args&... args) {
  return Status(ErrorCode::kIo, Concat(args...));
}

// Prints the broken invariant and ends the process with exit code 70.
[[noreturn]] void InternalError(const char* file, int line, const std::string& what);

}  // namespace dla

// Stops with exit code 70 unless `condition` holds; the rest of the arguments say what was wrong.
// Only for invariants of our own, never for what a user can cause.
#define DLA_CHECK(condition, ...)                                                              \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      ::dla::InternalError(__FILE__, __LINE__, ::dla::Concat(#condition, " ", ##__VA_ARGS__)); \
    }                                                                                          \
  } while (false)

#define DLA_CONCAT_INNER(a, b) a##b
#define DLA_CONCAT(a, b) DLA_CONCAT_INNER(a, b)

#define DLA_RETURN_IF_ERROR(expression)      \
  do {                                       \
    ::dla::Status dla_status = (expression); \
    if (!dla_status.ok()) return dla_status; \
  } while (false)

#define DLA_ASSIGN_OR_RETURN_INNER(result, declaration, expression) \
  auto result = (expression);                                       \
  if (!result.ok()) return result.status();                         \
  declaration = std::move(*result)
// DLA_ASSIGN_OR_RETURN(const int64_t x, Parse(text)); the declaration holds no comma.
#define DLA_ASSIGN_OR_RETURN(declaration, expression) \
  DLA_ASSIGN_OR_RETURN_INNER(DLA_CONCAT(dla_result_, __LINE__), declaration, expression)
