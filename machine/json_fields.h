// Reads the fields of one JSON object and collects every error with its path.
//
// Each getter leaves `*out` alone if the field is absent or wrong. Finish() reports the fields that
// nobody asked for, with the nearest one that was asked for.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "machine/target.h"
#include "support/status.h"

namespace dla::machine {

using Json = nlohmann::ordered_json;

// The errors of one file.
class JsonErrors {
 public:
  explicit JsonErrors(std::string file) : file_(std::move(file)) {}
  template <typename... Args>
  void Add(const std::string& path, const Args&... what) {
    lines_.push_back(file_ + ": " + path + ": " + Concat(what...));
  }
  bool empty() const { return lines_.empty(); }
  Status ToStatus() const;

 private:
  std::string file_;
  std::vector<std::string> lines_;
};

class JsonFields {
 public:
  // `path` is "" for the file's top object. A value that is no object is an error and acts as {}.
  JsonFields(const Json& value, std::string path, JsonErrors* errors);

  // The field's value, or null if it is absent.
  const Json* Find(const std::string& field);
  std::string PathOf(const std::string& field) const;

  bool Text(const std::string& field, std::string* out);
  // A whole number in [low, high]; `what` and `unit` word the message ("size", "bytes").
  bool Int(const std::string& field, int64_t low, int64_t high, const char* what, const char* unit,
           int64_t* out);
  bool Number(const std::string& field, double low, double high, double* out);
  bool Rate(const std::string& field, Rational* out);
  // The elements of a list, or null.
  const Json* List(const std::string& field);
  JsonErrors* errors() { return errors_; }
  void Finish();

 private:
  const Json* value_;
  std::string path_;
  JsonErrors* errors_;
  std::vector<std::string> asked_;
};

// A rate: a number > 0 or "a/b"; parts up to 10^6 after reduction. Adds an error otherwise.
bool ParseRate(const Json& value, const std::string& path, JsonErrors* errors, Rational* out);
// A number in [low, high]. Adds an error otherwise.
bool ParseNumber(const Json& value, const std::string& path, double low, double high,
                 JsonErrors* errors, double* out);
// The value as a short text for messages.
std::string Brief(const Json& value);

}  // namespace dla::machine
