#include "runtime/named_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <sstream>

#include "support/half.h"
#include "support/suggest.h"

namespace dla::runtime {
namespace {

using machine::Port;
using machine::Program;

const Port* FindPort(const std::vector<Port>& ports, const std::string& name) {
  for (const Port& port : ports) {
    if (port.name == name) return &port;
  }
  return nullptr;
}

void AddLine(std::string* lines, const std::string& line) {
  if (!lines->empty()) *lines += '\n';
  *lines += line;
}

// Why `tensor` cannot be the input, or "".
std::string Mismatch(const Port& port, const Tensor& tensor) {
  const bool bits = port.type == ElementType::kBF16 && tensor.type == ElementType::kU16;
  if ((tensor.type == port.type || bits) && tensor.shape == port.shape) return "";
  return Concat("input '", port.name, "' is ", TypeAndShape(tensor.type, tensor.shape),
                "; the program wants ", TypeAndShape(port.type, port.shape));
}

// Element `i` of the tensor as a double, for types that doubles hold well enough to compare.
std::optional<double> Element(const Tensor& tensor, int64_t i) {
  const uint8_t* at = tensor.bytes.data() + i * TypeBytes(tensor.type, 1);
  const auto as = [at](auto value) {
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  switch (tensor.type) {
    case ElementType::kF32:
      return static_cast<double>(as(float{}));
    case ElementType::kF64:
      return as(double{});
    case ElementType::kF16:
      return static_cast<double>(HalfToFloat(as(uint16_t{})));
    case ElementType::kBF16:
      return static_cast<double>(BFloat16ToFloat(as(uint16_t{})));
    case ElementType::kI8:
      return as(int8_t{});
    case ElementType::kU8:
    case ElementType::kBool:
      return as(uint8_t{});
    case ElementType::kI16:
      return as(int16_t{});
    case ElementType::kU16:
      return as(uint16_t{});
    case ElementType::kI32:
      return as(int32_t{});
    case ElementType::kU32:
      return as(uint32_t{});
    case ElementType::kI64:
      return static_cast<double>(as(int64_t{}));
    case ElementType::kU64:
      return static_cast<double>(as(uint64_t{}));
    default:
      return std::nullopt;
  }
}

std::string IndexText(int64_t i, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t a = shape.size(); a-- > 0;) {
    index[a] = i % shape[a];
    i /= shape[a];
  }
  std::string text = "[";
  for (size_t a = 0; a < index.size(); ++a) {
    if (a > 0) text += ", ";
    text += std::to_string(index[a]);
  }
  return text + "]";
}

// How far apart two elements are beyond what is allowed; <= 0: close enough.
double Excess(double value, double expected, double allowed) {
  if (std::isnan(value) || std::isnan(expected)) {
    return std::isnan(value) && std::isnan(expected) ? 0 : INFINITY;
  }
  if (value == expected) return 0;
  if (std::isinf(value) || std::isinf(expected)) return INFINITY;
  return std::fabs(value - expected) - allowed;
}

}  // namespace

std::string TypeAndShape(ElementType type, const std::vector<int64_t>& shape) {
  std::string text(TypeName(type));
  text += ' ';
  if (shape.empty()) return text + "scalar";
  for (size_t a = 0; a < shape.size(); ++a) {
    if (a > 0) text += 'x';
    text += std::to_string(shape[a]);
  }
  return text;
}

std::string FirstElements(const Tensor& tensor) {
  constexpr int64_t kShown = 8;
  int64_t elements = 1;
  for (const int64_t extent : tensor.shape) elements *= extent;
  std::ostringstream out;
  for (int64_t i = 0; i < std::min(elements, kShown); ++i) {
    const std::optional<double> element = Element(tensor, i);
    out << (i == 0 ? "" : " ");
    if (element) out << *element;
    if (!element) out << "?";
  }
  if (elements > kShown) out << " ...";
  return out.str();
}

Result<std::vector<Tensor>> MatchInputs(const Program& program, std::vector<Tensor> tensors) {
  std::vector<std::string> names;
  for (const Port& port : program.inputs) names.push_back(port.name);
  std::vector<std::optional<Tensor>> matched(program.inputs.size());
  std::string faults;
  for (Tensor& tensor : tensors) {
    const Port* port = FindPort(program.inputs, tensor.name);
    if (port == nullptr) {
      AddLine(&faults, Concat("the program has no input '", tensor.name, "'",
                              DidYouMean(tensor.name, names)));
      continue;
    }
    const auto i = static_cast<size_t>(port - program.inputs.data());
    const std::string mismatch = Mismatch(*port, tensor);
    if (!mismatch.empty()) AddLine(&faults, mismatch);
    if (matched[i]) AddLine(&faults, Concat("input '", port->name, "' is given twice"));
    tensor.type = port->type;
    matched[i] = std::move(tensor);
  }
  for (size_t i = 0; i < matched.size(); ++i) {
    if (matched[i]) continue;
    const Port& port = program.inputs[i];
    AddLine(&faults,
            Concat("input '", port.name, "' is missing: ", TypeAndShape(port.type, port.shape)));
  }
  if (!faults.empty()) return Usage(faults);
  std::vector<Tensor> inputs;
  for (auto& tensor : matched) inputs.push_back(std::move(*tensor));
  return inputs;
}

Result<Difference> Compare(const Tensor& output, const Tensor& expected,
                           const Tolerance& tolerance) {
  const bool bits = output.type == ElementType::kBF16 && expected.type == ElementType::kU16;
  if ((output.type != expected.type && !bits) || output.shape != expected.shape) {
    return Usage("output '", output.name, "' is ", TypeAndShape(output.type, output.shape),
                 ", expected is ", TypeAndShape(expected.type, expected.shape));
  }
  Difference difference;
  difference.elements = CountElements(output.shape).value_or(0);
  Tensor reference = expected;
  reference.type = output.type;
  double most = 0;
  for (int64_t i = 0; i < difference.elements; ++i) {
    const auto value = Element(output, i);
    const auto wanted = Element(reference, i);
    if (!value || !wanted) {
      return Unsupported("output '", output.name, "': comparing ", TypeName(output.type));
    }
    const double allowed =
        IsFloat(output.type) ? tolerance.absolute + tolerance.relative * std::fabs(*wanted) : 0;
    const double excess = Excess(*value, *wanted, allowed);
    if (!(excess > 0)) continue;
    ++difference.differing;
    if (difference.differing > 1 && excess <= most) continue;
    most = excess;
    difference.worst = Concat("at ", IndexText(i, output.shape), " ", *value, ", expected ",
                              *wanted, " (allowed difference ", allowed, ")");
  }
  return difference;
}

}  // namespace dla::runtime
