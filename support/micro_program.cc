#include "support/micro_program.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <sstream>

namespace dla {
namespace {

// Sets of value types: bit t for type t of ValueTypeIndex.
constexpr uint8_t kFloats = 0b00011;
constexpr uint8_t kIntegers = 0b01100;
constexpr uint8_t kNumbers = kFloats | kIntegers;
constexpr uint8_t kI64 = 0b00100;
constexpr uint8_t kBools = 0b10000;
constexpr uint8_t kAll = kNumbers | kBools;

// In the order of the enumerators.
constexpr std::array<MicroOpInfo, kMicroOpCount> kOps = {{
    {"accumulator", 0, 0, OpClass::kFree, false, kNumbers},
    {"load", 0, 0, OpClass::kFree, false, kAll},
    {"const", 0, 1, OpClass::kFree, false, kAll},
    {"add", 2, 0, OpClass::kAdd, false, kNumbers},
    {"sub", 2, 0, OpClass::kAdd, false, kNumbers},
    {"mul", 2, 0, OpClass::kMultiply, false, kNumbers},
    {"div", 2, 0, OpClass::kDivide, false, kNumbers},
    {"min", 2, 0, OpClass::kMin, false, kNumbers},
    {"max", 2, 0, OpClass::kMax, false, kNumbers},
    {"pow", 2, 0, OpClass::kPower, false, kNumbers},
    {"neg", 1, 0, OpClass::kNegate, false, kNumbers},
    {"abs", 1, 0, OpClass::kAbs, false, kNumbers},
    {"exp", 1, 0, OpClass::kExp, false, kFloats},
    {"log", 1, 0, OpClass::kLog, false, kFloats},
    {"sqrt", 1, 0, OpClass::kSquareRoot, false, kFloats},
    {"reciprocal", 1, 0, OpClass::kReciprocal, false, kFloats},
    {"tanh", 1, 0, OpClass::kTanh, false, kFloats},
    {"sigmoid", 1, 0, OpClass::kSigmoid, false, kFloats},
    {"erf", 1, 0, OpClass::kErf, false, kFloats},
    {"floor", 1, 0, OpClass::kRound, false, kFloats},
    {"ceil", 1, 0, OpClass::kRound, false, kFloats},
    {"round", 1, 0, OpClass::kRound, false, kFloats},
    {"relu", 1, 0, OpClass::kMax, false, kNumbers},
    {"leaky_relu", 1, 1, OpClass::kMultiplyAdd, false, kFloats},
    {"clamp", 1, 2, OpClass::kClip, false, kNumbers},
    {"copy", 1, 0, OpClass::kCopy, false, kAll},
    {"reduce_sum", 1, 0, OpClass::kAdd, true, kNumbers},
    {"reduce_max", 1, 0, OpClass::kMax, true, kNumbers},
    {"reduce_min", 1, 0, OpClass::kMin, true, kNumbers},
    {"equal", 2, 0, OpClass::kCompare, false, kBools},
    {"less", 2, 0, OpClass::kCompare, false, kBools},
    {"less_or_equal", 2, 0, OpClass::kCompare, false, kBools},
    {"select", 3, 0, OpClass::kSelect, false, kAll},
    {"cast", 1, 0, OpClass::kCast, false, kAll},
    {"wrap", 1, 2, OpClass::kCast, false, kI64},
    {"and", 2, 0, OpClass::kLogic, false, kBools},
    {"or", 2, 0, OpClass::kLogic, false, kBools},
    {"xor", 2, 0, OpClass::kLogic, false, kBools},
    {"not", 1, 0, OpClass::kLogic, false, kBools},
    {"bit_and", 2, 0, OpClass::kLogic, false, kIntegers},
    {"bit_or", 2, 0, OpClass::kLogic, false, kIntegers},
    {"bit_xor", 2, 0, OpClass::kLogic, false, kIntegers},
    {"bit_not", 1, 0, OpClass::kLogic, false, kIntegers},
    {"shift_left", 2, 0, OpClass::kShift, false, kIntegers},
    {"shift_right", 2, 0, OpClass::kShift, false, kIntegers},
    {"mod", 2, 0, OpClass::kRemainder, false, kNumbers},
    {"remainder", 2, 0, OpClass::kRemainder, false, kNumbers},
    {"sign", 1, 0, OpClass::kCompare, false, kNumbers},
    {"is_nan", 1, 0, OpClass::kCompare, false, kBools},
    {"is_inf", 1, 2, OpClass::kCompare, false, kBools},
    {"sin", 1, 0, OpClass::kSine, false, kFloats},
    {"cos", 1, 0, OpClass::kSine, false, kFloats},
    {"tan", 1, 0, OpClass::kSine, false, kFloats},
    {"asin", 1, 0, OpClass::kSine, false, kFloats},
    {"acos", 1, 0, OpClass::kSine, false, kFloats},
    {"atan", 1, 0, OpClass::kSine, false, kFloats},
    {"sinh", 1, 0, OpClass::kSine, false, kFloats},
    {"cosh", 1, 0, OpClass::kSine, false, kFloats},
    {"asinh", 1, 0, OpClass::kSine, false, kFloats},
    {"acosh", 1, 0, OpClass::kSine, false, kFloats},
    {"atanh", 1, 0, OpClass::kSine, false, kFloats},
    {"reduce_product", 1, 0, OpClass::kMultiply, true, kNumbers},
    {"index", 0, 0, OpClass::kFree, false, kI64},
    {"reduce_dot", 2, 0, OpClass::kMultiplyAdd, true, kFloats},
}};

constexpr std::array<std::string_view, kOpClassCount> kOpClasses = {
    "free",   "multiply_add", "add",     "multiply",   "min",         "max",       "compare",
    "select", "abs",          "negate",  "cast",       "copy",        "clip",      "round",
    "shift",  "logic",        "divide",  "reciprocal", "square_root", "remainder", "exp",
    "log",    "tanh",         "sigmoid", "erf",        "power",       "sine"};

// The shortest text that reads back to the same number of the operation's type.
std::string NumberText(ElementType type, double value) {
  char buffer[64];
  char* const last = buffer + sizeof(buffer);
  const auto result = type == ElementType::kF32
                          ? std::to_chars(buffer, last, static_cast<float>(value))
                          : std::to_chars(buffer, last, value);
  return std::string(buffer, result.ptr);
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

// An immediate of an operation of type `type`.
bool ParseImmediate(std::string_view word, ElementType type, double* value) {
  if (type != ElementType::kF32) return ParseNumber(word, value);
  float single = 0;
  if (!ParseNumber(word, &single)) return false;
  *value = static_cast<double>(single);
  return true;
}

// "NAME" or "NAME.TYPE".
bool ParseName(std::string_view name, MicroInstruction* out) {
  const size_t dot = std::min(name.find('.'), name.size());
  const auto op = ParseMicroOp(name.substr(0, dot));
  if (!op) return false;
  out->op = *op;
  if (dot == name.size()) return true;
  const auto type = ParseElementType(name.substr(dot + 1));
  if (!type || !IsValueType(*type)) return false;
  out->type = *type;
  return true;
}

// The number behind a letter: "v12".
template <typename T>
bool ParseReference(std::string_view word, T* number) {
  return word.size() >= 2 && word[0] == 'v' && ParseNumber(word.substr(1), number);
}

// One operation, "vI = NAME ARGS [!]"; false and `error` if it is none.
bool ParseOperation(std::string_view text, size_t index, MicroInstruction* out,
                    std::string* error) {
  int number = -1;
  if (!ParseReference(NextWord(&text), &number) || number != static_cast<int>(index) ||
      NextWord(&text) != "=") {
    *error =
        "operation " + std::to_string(index) + ": 'v" + std::to_string(index) + " = ...' expected";
    return false;
  }
  const std::string_view op_name = NextWord(&text);
  if (!ParseName(op_name, out)) {
    *error = "operation " + std::to_string(index) + ": no operation '" + std::string(op_name) + "'";
    return false;
  }
  const MicroOpInfo& info = Info(out->op);
  bool good = true;
  if (NamesOperand(out->op)) good = ParseNumber(NextWord(&text), &out->operand);
  for (int a = 0; a < info.arguments && good; ++a) {
    uint8_t& argument = out->argument[static_cast<size_t>(a)];
    good = ParseReference(NextWord(&text), &argument) && argument < index;
  }
  for (int i = 0; i < info.immediates && good; ++i) {
    good = ParseImmediate(NextWord(&text), out->type, &out->immediate[static_cast<size_t>(i)]);
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

MicroOp CombiningOp(MicroOp reduction) {
  switch (reduction) {
    case MicroOp::kReduceMax:
      return MicroOp::kMax;
    case MicroOp::kReduceMin:
      return MicroOp::kMin;
    case MicroOp::kReduceProduct:
      return MicroOp::kMul;
    default:
      return MicroOp::kAdd;
  }
}

bool NamesOperand(MicroOp op) { return op == MicroOp::kLoad || op == MicroOp::kIndex; }

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

ElementType ValueType(ElementType stored) {
  switch (stored) {
    case ElementType::kF16:
    case ElementType::kBF16:
      return ElementType::kF32;
    case ElementType::kF32:
    case ElementType::kF64:
    case ElementType::kU64:
    case ElementType::kBool:
      return stored;
    default:
      return ElementType::kI64;
  }
}

int ValueTypeIndex(ElementType value_type) {
  switch (value_type) {
    case ElementType::kF32:
      return 0;
    case ElementType::kF64:
      return 1;
    case ElementType::kI64:
      return 2;
    case ElementType::kU64:
      return 3;
    default:
      return 4;
  }
}

bool TypesFit(const MicroProgram& program, size_t index) {
  const MicroInstruction& op = program.ops[index];
  const auto in = [](ElementType type, uint8_t types) {
    return IsValueType(type) && (types >> ValueTypeIndex(type) & 1) != 0;
  };
  const auto argument = [&](size_t a) { return program.ops[op.argument[a]].type; };
  if (!in(op.type, Info(op.op).results)) return false;
  switch (op.op) {
    case MicroOp::kEqual:
      return argument(0) == argument(1);
    case MicroOp::kLess:
    case MicroOp::kLessOrEqual:
      return argument(0) == argument(1) && in(argument(0), kNumbers);
    case MicroOp::kIsNaN:
    case MicroOp::kIsInf:
      return in(argument(0), kFloats);
    case MicroOp::kSelect:
      return in(argument(0), kBools) && argument(1) == op.type && argument(2) == op.type;
    case MicroOp::kCast:
      return true;
    default:
      for (int a = 0; a < Info(op.op).arguments; ++a) {
        if (argument(static_cast<size_t>(a)) != op.type) return false;
      }
      return true;
  }
}

std::vector<bool> FullValues(const MicroProgram& program, const std::vector<bool>& operand_is_full,
                             uint32_t reduced_dims) {
  std::vector<bool> full(program.ops.size(), false);
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const MicroInstruction& op = program.ops[i];
    const MicroOpInfo& info = Info(op.op);
    if (op.op == MicroOp::kLoad) full[i] = operand_is_full[op.operand];
    if (op.op == MicroOp::kIndex) full[i] = (reduced_dims >> op.operand & 1) != 0;
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
    if (op.type != ElementType::kF32) out << "." << TypeName(op.type);
    if (NamesOperand(op.op)) out << " " << static_cast<int>(op.operand);
    for (int a = 0; a < info.arguments; ++a) {
      out << " v" << static_cast<int>(op.argument[static_cast<size_t>(a)]);
    }
    for (int m = 0; m < info.immediates; ++m) {
      out << " " << NumberText(op.type, op.immediate[static_cast<size_t>(m)]);
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
