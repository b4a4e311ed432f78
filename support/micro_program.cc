#include "support/micro_program.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <sstream>

namespace dla {
namespace {

// In the order of the enumerators.
constexpr std::array<MicroOpInfo, kMicroOpCount> kOps = {{
    {"accumulator", 0, 0, OpClass::kFree, false},
    {"load", 0, 0, OpClass::kFree, false},
    {"const", 0, 1, OpClass::kFree, false},
    {"add", 2, 0, OpClass::kAdd, false},
    {"sub", 2, 0, OpClass::kAdd, false},
    {"mul", 2, 0, OpClass::kMultiply, false},
    {"div", 2, 0, OpClass::kDivide, false},
    {"min", 2, 0, OpClass::kMin, false},
    {"max", 2, 0, OpClass::kMax, false},
    {"pow", 2, 0, OpClass::kPower, false},
    {"neg", 1, 0, OpClass::kNegate, false},
    {"abs", 1, 0, OpClass::kAbs, false},
    {"exp", 1, 0, OpClass::kExp, false},
    {"log", 1, 0, OpClass::kLog, false},
    {"sqrt", 1, 0, OpClass::kSquareRoot, false},
    {"reciprocal", 1, 0, OpClass::kReciprocal, false},
    {"tanh", 1, 0, OpClass::kTanh, false},
    {"sigmoid", 1, 0, OpClass::kSigmoid, false},
    {"erf", 1, 0, OpClass::kErf, false},
    {"floor", 1, 0, OpClass::kRound, false},
    {"ceil", 1, 0, OpClass::kRound, false},
    {"round", 1, 0, OpClass::kRound, false},
    {"relu", 1, 0, OpClass::kMax, false},
    {"leaky_relu", 1, 1, OpClass::kMultiplyAdd, false},
    {"clamp", 1, 2, OpClass::kClip, false},
    {"copy", 1, 0, OpClass::kCopy, false},
    {"reduce_sum", 1, 0, OpClass::kAdd, true},
    {"reduce_max", 1, 0, OpClass::kMax, true},
    {"reduce_min", 1, 0, OpClass::kMin, true},
}};

constexpr std::array<std::string_view, kOpClassCount> kOpClasses = {
    "free",   "multiply_add", "add",     "multiply",   "min",         "max",       "compare",
    "select", "abs",          "negate",  "cast",       "copy",        "clip",      "round",
    "shift",  "logic",        "divide",  "reciprocal", "square_root", "remainder", "exp",
    "log",    "tanh",         "sigmoid", "erf",        "power",       "sine"};

std::string FloatText(float value) {
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  return std::string(buffer, end);
}

// Splits off the next word (up to a blank); `text` keeps the rest.
std::string_view NextWord(std::string_view* text) {
  while (!text->empty() && text->front() == ' ') text->remove_prefix(1);
  const size_t end = std::min(text->find(' '), text->size());
  const std::string_view word = text->substr(0, end);
  text->remove_prefix(end);
  return word;
}

template <typename T>
bool ParseNumber(std::string_view word, T* value) {
  const auto result = std::from_chars(word.data(), word.data() + word.size(), *value);
  return result.ec == std::errc() && result.ptr == word.data() + word.size() && !word.empty();
}

// One operation, "vI = NAME ARGS [!]"; false and `error` if it is none.
bool ParseOperation(std::string_view text, size_t index, MicroInstruction* out,
                    std::string* error) {
  const std::string_view name = NextWord(&text);
  int number = -1;
  if (name.size() < 2 || name[0] != 'v' || !ParseNumber(name.substr(1), &number) ||
      number != static_cast<int>(index) || NextWord(&text) != "=") {
    *error =
        "operation " + std::to_string(index) + ": 'v" + std::to_string(index) + " = ...' expected";
    return false;
  }
  const std::string_view op_name = NextWord(&text);
  const auto op = ParseMicroOp(op_name);
  if (!op) {
    *error = "operation " + std::to_string(index) + ": no operation '" + std::string(op_name) + "'";
    return false;
  }
  out->op = *op;
  bool good = true;
  if (*op == MicroOp::kLoad) good = ParseNumber(NextWord(&text), &out->operand);
  for (int a = 0; a < Info(*op).arguments && good; ++a) {
    const std::string_view word = NextWord(&text);
    uint8_t& argument = out->argument[static_cast<size_t>(a)];
    good = word.size() >= 2 && word[0] == 'v' && ParseNumber(word.substr(1), &argument) &&
           argument < index;
  }
  for (int i = 0; i < Info(*op).immediates && good; ++i) {
    good = ParseNumber(NextWord(&text), &out->immediate[static_cast<size_t>(i)]);
  }
  std::string_view mark = NextWord(&text);
  if (good && mark == "!") {
    out->stage = true;
    mark = NextWord(&text);
  }
  if (!good || !mark.empty()) {
    *error = "operation " + std::to_string(index) + " (" + std::string(op_name) +
             "): arguments are missing, wrong or too many";
    return false;
  }
  return true;
}

}  // namespace

const MicroOpInfo& Info(MicroOp op) { return kOps[static_cast<size_t>(op)]; }

std::string_view OpClassName(OpClass op_class) { return kOpClasses[static_cast<size_t>(op_class)]; }

std::optional<MicroOp> ParseMicroOp(std::string_view name) {
  for (size_t i = 0; i < kOps.size(); ++i) {
    if (kOps[i].name == name) return static_cast<MicroOp>(i);
  }
  return std::nullopt;
}

std::optional<OpClass> ParseOpClass(std::string_view name) {
  for (size_t i = 0; i < kOpClasses.size(); ++i) {
    if (kOpClasses[i] == name) return static_cast<OpClass>(i);
  }
  return std::nullopt;
}

std::vector<bool> FullValues(const MicroProgram& program,
                             const std::vector<bool>& operand_is_full) {
  std::vector<bool> full(program.ops.size(), false);
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const MicroInstruction& op = program.ops[i];
    const MicroOpInfo& info = Info(op.op);
    if (op.op == MicroOp::kLoad) full[i] = operand_is_full[op.operand];
    if (info.reduces) continue;
    for (int a = 0; a < info.arguments; ++a) {
      if (full[op.argument[static_cast<size_t>(a)]]) full[i] = true;
    }
  }
  return full;
}

std::string ToText(const MicroProgram& program) {
  std::ostringstream out;
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const MicroInstruction& op = program.ops[i];
    const MicroOpInfo& info = Info(op.op);
    out << (i == 0 ? "" : "; ") << "v" << i << " = " << info.name;
    if (op.op == MicroOp::kLoad) out << " " << static_cast<int>(op.operand);
    for (int a = 0; a < info.arguments; ++a) {
      out << " v" << static_cast<int>(op.argument[static_cast<size_t>(a)]);
    }
    for (int m = 0; m < info.immediates; ++m) {
      out << " " << FloatText(op.immediate[static_cast<size_t>(m)]);
    }
    if (op.stage) out << " !";
  }
  return out.str();
}

std::optional<MicroProgram> ParseMicroProgram(std::string_view text, std::string* error) {
  MicroProgram program;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    MicroInstruction op;
    if (!ParseOperation(text.substr(0, end), program.ops.size(), &op, error)) return std::nullopt;
    program.ops.push_back(op);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (program.ops.size() > kMaxMicroOps) {
      *error = "more than " + std::to_string(kMaxMicroOps) + " operations";
      return std::nullopt;
    }
  }
  return program;
}

}  // namespace dla
