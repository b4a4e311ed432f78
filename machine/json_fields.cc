#include "machine/json_fields.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "support/suggest.h"

namespace dla::machine {
namespace {

constexpr int64_t kMaxRatePart = 1000000;

const Json& EmptyObject() {
  static const Json empty = Json::object();
  return empty;
}

bool ParseDigits(std::string_view text, int64_t* out) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *out);
  return !text.empty() && text[0] != '-' && result.ec == std::errc() &&
         result.ptr == text.data() + text.size();
}

// "12", "0.25", "64/3" -> a fraction in lowest terms.
bool ParseFraction(std::string_view text, Rational* out) {
  int64_t numerator = 0, denominator = 1;
  const size_t slash = text.find('/');
  const size_t point = text.find('.');
  if (slash != std::string_view::npos) {
    if (!ParseDigits(text.substr(0, slash), &numerator) ||
        !ParseDigits(text.substr(slash + 1), &denominator)) {
      return false;
    }
  } else if (point != std::string_view::npos) {
    const std::string_view decimals = text.substr(point + 1);
    if (decimals.size() > 6) return false;
    for (size_t i = 0; i < decimals.size(); ++i) denominator *= 10;
    const std::string digits = std::string(text.substr(0, point)) + std::string(decimals);
    if (!ParseDigits(digits, &numerator)) return false;
  } else if (!ParseDigits(text, &numerator)) {
    return false;
  }
  if (numerator <= 0 || denominator <= 0) return false;
  const int64_t divisor = std::gcd(numerator, denominator);
  *out = {numerator / divisor, denominator / divisor};
  return out->numerator <= kMaxRatePart && out->denominator <= kMaxRatePart;
}

}  // namespace

Status JsonErrors::ToStatus() const {
  constexpr size_t kMaxLines = 50;
  std::string text;
  for (size_t i = 0; i < std::min(lines_.size(), kMaxLines); ++i) {
    text += (i == 0 ? "" : "\n") + lines_[i];
  }
  if (lines_.size() > kMaxLines) text += Concat("\n", lines_.size() - kMaxLines, " more errors");
  return lines_.empty() ? Status() : Status(ErrorCode::kMalformed, text);
}

std::string Brief(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

JsonFields::JsonFields(const Json& value, std::string path, JsonErrors* errors)
    : value_(&value), path_(std::move(path)), errors_(errors) {
  if (!value.is_object()) {
    errors_->Add(path_.empty() ? "the file" : path_, Brief(value), " is not an object {...}");
    value_ = &EmptyObject();
  }
}

std::string JsonFields::PathOf(const std::string& field) const {
  return path_.empty() ? field : path_ + "." + field;
}

const Json* JsonFields::Find(const std::string& field) {
  asked_.push_back(field);
  const auto it = value_->find(field);
  return it == value_->end() ? nullptr : &*it;
}

bool JsonFields::Text(const std::string& field, std::string* out) {
  const Json* value = Find(field);
  if (value == nullptr) return false;
  if (!value->is_string()) {
    errors_->Add(PathOf(field), Brief(*value), " is not a text");
    return false;
  }
  *out = value->get<std::string>();
  return true;
}

bool JsonFields::Int(const std::string& field, int64_t low, int64_t high, const char* what,
                     const char* unit, int64_t* out) {
  const Json* value = Find(field);
  if (value == nullptr) return false;
  const bool whole = value->is_number_integer() &&
                     !(value->is_number_unsigned() && value->get<uint64_t>() > INT64_MAX);
  const int64_t number = whole ? value->get<int64_t>() : 0;
  if (!whole || number < low || number > high) {
    errors_->Add(PathOf(field), Brief(*value), " is not a ", what, " (", low, " to ", high,
                 *unit == '\0' ? "" : " ", unit, ")");
    return false;
  }
  *out = number;
  return true;
}

bool ParseNumber(const Json& value, const std::string& path, double low, double high,
                 JsonErrors* errors, double* out) {
  const double number = value.is_number() ? value.get<double>() : -1;
  if (!value.is_number() || !(number >= low && number <= high)) {
    errors->Add(path, Brief(value), " is not a number from ", low, " to ", high);
    return false;
  }
  *out = number;
  return true;
}

bool JsonFields::Number(const std::string& field, double low, double high, double* out) {
  const Json* value = Find(field);
  return value != nullptr && ParseNumber(*value, PathOf(field), low, high, errors_, out);
}

bool ParseRate(const Json& value, const std::string& path, JsonErrors* errors, Rational* out) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  Rational rate;
  if ((!value.is_string() && !value.is_number()) || !ParseFraction(text, &rate)) {
    errors->Add(path, Brief(value),
                " is not a rate (a number > 0 with up to 6 decimals, or a fraction such as "
                "\"64/3\", parts up to 1000000)");
    return false;
  }
  *out = rate;
  return true;
}

bool JsonFields::Rate(const std::string& field, Rational* out) {
  const Json* value = Find(field);
  return value != nullptr && ParseRate(*value, PathOf(field), errors_, out);
}

const Json* JsonFields::List(const std::string& field) {
  const Json* value = Find(field);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) {
    errors_->Add(PathOf(field), Brief(*value), " is not a list [...]");
    return nullptr;
  }
  return value;
}

void JsonFields::Finish() {
  for (const auto& item : value_->items()) {
    if (std::find(asked_.begin(), asked_.end(), item.key()) != asked_.end()) continue;
    errors_->Add(PathOf(item.key()), "there is no such field", DidYouMean(item.key(), asked_));
  }
}

}  // namespace dla::machine
