#include "ir/tensor.h"

#include <cstring>

#include "ir/rounding.h"
#include "support/checked.h"
#include "support/half.h"

namespace dla::ir {
namespace {

template <typename T>
T Load(const TensorView& tensor, int64_t index) {
  T value;
  std::memcpy(&value, tensor.bytes + Idx(index) * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void Store(Tensor* tensor, int64_t index, T value) {
  std::memcpy(tensor->bytes.data() + Idx(index) * sizeof(T), &value, sizeof(T));
}

}  // namespace

Tensor Tensor::Zeros(const TensorType& type) {
  return {type.type, type.shape,
          std::vector<uint8_t>(Idx(TypeBytes(type.type, ElementCount(type.shape))))};
}

Tensor Tensor::Floats(Shape shape, const std::vector<float>& values) {
  Tensor tensor = Zeros({ElementType::kF32, std::move(shape)});
  DLA_CHECK(Idx(tensor.elements()) == values.size());
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

Tensor Tensor::Ints(Shape shape, const std::vector<int64_t>& values) {
  Tensor tensor = Zeros({ElementType::kI64, std::move(shape)});
  DLA_CHECK(Idx(tensor.elements()) == values.size());
  if (!values.empty()) std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}

TensorView Tensor::view() const {
  // An empty tensor is present, too.
  static constexpr uint8_t kNothing = 0;
  return {type, shape, bytes.empty() ? &kNothing : bytes.data()};
}

std::vector<float> Tensor::ToFloats() const {
  std::vector<float> values(Idx(elements()));
  const TensorView source = view();
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(ReadDouble(source, static_cast<int64_t>(i)));
  }
  return values;
}

bool IsReadable(ElementType type) {
  switch (type) {
    case ElementType::kI4:
    case ElementType::kU4:
      return false;
    default:
      return true;
  }
}

double ReadDouble(const TensorView& tensor, int64_t index) {
  if (tensor.type == ElementType::kF32) return Load<float>(tensor, index);
  if (tensor.type == ElementType::kF64) return Load<double>(tensor, index);
  if (tensor.type == ElementType::kU64) return static_cast<double>(Load<uint64_t>(tensor, index));
  if (tensor.type == ElementType::kF16) {
    return static_cast<double>(HalfToFloat(Load<uint16_t>(tensor, index)));
  }
  if (tensor.type == ElementType::kBF16) {
    return static_cast<double>(BFloat16ToFloat(Load<uint16_t>(tensor, index)));
  }
  return static_cast<double>(ReadInt(tensor, index));
}

int64_t ReadInt(const TensorView& tensor, int64_t index) {
  switch (tensor.type) {
    case ElementType::kI8:
      return Load<int8_t>(tensor, index);
    case ElementType::kU8:
    case ElementType::kBool:
      return Load<uint8_t>(tensor, index);
    case ElementType::kI16:
      return Load<int16_t>(tensor, index);
    case ElementType::kU16:
      return Load<uint16_t>(tensor, index);
    case ElementType::kI32:
      return Load<int32_t>(tensor, index);
    case ElementType::kU32:
      return Load<uint32_t>(tensor, index);
    case ElementType::kI64:
      return Load<int64_t>(tensor, index);
    case ElementType::kU64:
      return static_cast<int64_t>(Load<uint64_t>(tensor, index));
    default: {
      DLA_CHECK(IsReadable(tensor.type), TypeName(tensor.type));
      // Out-of-range conversions are undefined in C++: saturate first.
      const double value = ReadDouble(tensor, index);
      if (!(value == value)) return 0;
      if (value >= 9223372036854775807.0) return INT64_MAX;
      if (value <= -9223372036854775808.0) return INT64_MIN;
      return static_cast<int64_t>(value);
    }
  }
}

void WriteInt(Tensor* tensor, int64_t index, int64_t value) {
  switch (tensor->type) {
    case ElementType::kI8:
    case ElementType::kU8:
      return Store(tensor, index, static_cast<uint8_t>(value));
    case ElementType::kBool:
      return Store(tensor, index, static_cast<uint8_t>(value != 0));
    case ElementType::kI16:
    case ElementType::kU16:
      return Store(tensor, index, static_cast<uint16_t>(value));
    case ElementType::kI32:
    case ElementType::kU32:
      return Store(tensor, index, static_cast<uint32_t>(value));
    case ElementType::kI64:
    case ElementType::kU64:
      return Store(tensor, index, value);
    default:
      WriteDouble(tensor, index, static_cast<double>(value));
  }
}

void WriteDouble(Tensor* tensor, int64_t index, double value) {
  if (tensor->type == ElementType::kF32) return Store(tensor, index, static_cast<float>(value));
  if (tensor->type == ElementType::kF64) return Store(tensor, index, value);
  const float single = static_cast<float>(value);
  if (tensor->type == ElementType::kF16) return Store(tensor, index, FloatToHalf(single));
  if (tensor->type == ElementType::kBF16) return Store(tensor, index, FloatToBFloat16(single));
  DLA_CHECK(IsReadable(tensor->type), TypeName(tensor->type));
  if (tensor->type == ElementType::kBool) return WriteInt(tensor, index, value != 0 ? 1 : 0);
  const Tensor wide{ElementType::kF64, {}, std::vector<uint8_t>(sizeof(double))};
  Tensor scratch = wide;
  Store(&scratch, 0, value);
  WriteInt(tensor, index, ReadInt(scratch.view(), 0));
}

std::shared_ptr<const Constant> MakeConstant(Tensor tensor) {
  auto owned = std::make_shared<const std::vector<uint8_t>>(std::move(tensor.bytes));
  auto constant = std::make_shared<Constant>();
  constant->bytes = owned->data();
  constant->size_bytes = static_cast<int64_t>(owned->size());
  constant->owner = owned;
  return constant;
}

TensorView ConstantView(const Graph& graph, ValueId id) {
  if (id == kNoValue) return {};
  const Value& value = graph.values[Idx(id)];
  if (value.constant == nullptr) return {};
  static constexpr uint8_t kNothing = 0;
  return {value.type, value.shape,
          value.constant->size_bytes == 0 ? &kNothing : value.constant->bytes};
}

std::optional<std::vector<int64_t>> ConstantInts(const Graph& graph, ValueId id) {
  const TensorView view = ConstantView(graph, id);
  if (!view.present()) return std::nullopt;
  if (view.type != ElementType::kI64 && view.type != ElementType::kI32) return std::nullopt;
  std::vector<int64_t> values(Idx(view.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = ReadInt(view, static_cast<int64_t>(i));
  return values;
}

std::optional<double> ConstantScalar(const Graph& graph, ValueId id) {
  const TensorView view = ConstantView(graph, id);
  if (!view.present() || view.elements() != 1 || !IsReadable(view.type)) return std::nullopt;
  return ReadDouble(view, 0);
}

std::optional<double> ImmediateOf(const Graph& graph, ValueId id) {
  const std::optional<double> number = ConstantScalar(graph, id);
  constexpr double kExact = 0x1p53;
  const ElementType type = id == kNoValue ? ElementType::kF32 : graph.values[Idx(id)].type;
  if (!number || IsFloat(type) || (*number<kExact&& * number> - kExact)) return number;
  return std::nullopt;
}

Tensor ConvertTensor(const TensorView& tensor, ElementType type) {
  Tensor result = Tensor::Zeros({type, tensor.shape});
  const bool integer = !IsFloat(tensor.type) && !IsFloat(type);
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (integer) {
      WriteInt(&result, i, ReadInt(tensor, i));
    } else {
      WriteDouble(&result, i, ReadDouble(tensor, i));
    }
  }
  return result;
}

std::vector<uint8_t> StoredConstant(const Value& value) {
  const Constant& constant = *value.constant;
  if (value.StoredType() == value.type) {
    return {constant.bytes, constant.bytes + constant.size_bytes};
  }
  const auto [first, end] = value.storage.summed_axes;
  const auto at = [&](int i) { return value.shape.begin() + i; };
  const int64_t outer = ElementCount({value.shape.begin(), at(first)});
  const int64_t summed = ElementCount({at(first), at(end)});
  const int64_t inner = ElementCount({at(end), value.shape.end()});
  std::vector<uint8_t> stored(
      static_cast<size_t>(TypeBytes(value.StoredType(), outer * summed * inner)));
  // Slice by slice, because constants may be large.
  std::vector<float> slice(static_cast<size_t>(summed * inner));
  for (int64_t o = 0; o < outer && !slice.empty(); ++o) {
    const int64_t begin = o * summed * inner;
    std::memcpy(slice.data(), constant.bytes + begin * 4, slice.size() * 4);
    RoundAlong(slice, summed, inner, value.StoredType());
    const TensorView view = {
        ElementType::kF32, {summed * inner}, reinterpret_cast<const uint8_t*>(slice.data())};
    const Tensor converted = ConvertTensor(view, value.StoredType());
    std::memcpy(stored.data() + TypeBytes(value.StoredType(), begin), converted.bytes.data(),
                converted.bytes.size());
  }
  return stored;
}

std::optional<int64_t> CheckedElementCount(const Shape& shape) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t count = 1;
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) return std::nullopt;
    empty = empty || extent == 0;
    // An extent of zero must not hide an overflow of the strides.
    const auto product = CheckedMul(count, std::max<int64_t>(1, extent));
    if (!product || *product > kMost) return std::nullopt;
    count = *product;
  }
  return empty ? 0 : count;
}

std::string ShapeText(const Shape& shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (const int64_t extent : shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(extent);
  }
  return text;
}

}  // namespace dla::ir
