// ONNX TensorProto: a reader and writer of the wire format of our own, so that the runtime needs no
// protobuf library. Field numbers are those of onnx.proto.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "support/tensor_file.h"

namespace dla {
namespace {

using Bytes = std::span<const uint8_t>;

enum FieldNumber : uint64_t {
  kDims = 1,
  kDataType = 2,
  kFloatData = 4,
  kInt32Data = 5,
  kStringData = 6,
  kInt64Data = 7,
  kName = 8,
  kRawData = 9,
  kDoubleData = 10,
  kUint64Data = 11,
  kDataLocation = 14,
};
enum WireType : uint64_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

struct TypeNumber {
  uint64_t number;
  ElementType type;
  FieldNumber data;  // the typed field that may hold it
};
constexpr std::array<TypeNumber, kElementTypeCount> kTypes = {{
    {1, ElementType::kF32, kFloatData},
    {2, ElementType::kU8, kInt32Data},
    {3, ElementType::kI8, kInt32Data},
    {4, ElementType::kU16, kInt32Data},
    {5, ElementType::kI16, kInt32Data},
    {6, ElementType::kI32, kInt32Data},
    {7, ElementType::kI64, kInt64Data},
    {9, ElementType::kBool, kInt32Data},
    {10, ElementType::kF16, kInt32Data},
    {11, ElementType::kF64, kDoubleData},
    {12, ElementType::kU32, kUint64Data},
    {13, ElementType::kU64, kUint64Data},
    {16, ElementType::kBF16, kInt32Data},
    {21, ElementType::kU4, kInt32Data},
    {22, ElementType::kI4, kInt32Data},
}};

constexpr size_t kMaxRank = 64;

class WireReader {
 public:
  explicit WireReader(Bytes bytes) : bytes_(bytes) {}
  bool AtEnd() const { return bytes_.empty(); }
  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (size_t i = 0; i < 10 && i < bytes_.size(); ++i) {
      value |= static_cast<uint64_t>(bytes_[i] & 0x7f) << (7 * i);
      if ((bytes_[i] & 0x80) != 0) continue;
      if (i == 9 && bytes_[i] > 1) return std::nullopt;
      bytes_ = bytes_.subspan(i + 1);
      return value;
    }
    return std::nullopt;
  }
  std::optional<uint64_t> Fixed(size_t width) {
    if (bytes_.size() < width) return std::nullopt;
    uint64_t value = 0;
    for (size_t i = 0; i < width; ++i) value |= uint64_t{bytes_[i]} << (8 * i);
    bytes_ = bytes_.subspan(width);
    return value;
  }
  std::optional<Bytes> Block() {
    const auto length = Varint();
    if (!length || *length > bytes_.size()) return std::nullopt;
    const Bytes block = bytes_.first(*length);
    bytes_ = bytes_.subspan(*length);
    return block;
  }

 private:
  Bytes bytes_;
};

// What the message says, before it is judged.
struct Message {
  std::vector<int64_t> dims;
  uint64_t data_type = 0;
  std::string name;
  std::optional<Bytes> raw;
  std::vector<uint64_t> values;  // of the typed field
  std::optional<uint64_t> values_field;
  bool has_external = false;
};

std::optional<uint64_t> Scalar(WireReader* reader, uint64_t wire) {
  if (wire == kVarint) return reader->Varint();
  if (wire == kFixed32) return reader->Fixed(4);
  if (wire == kFixed64) return reader->Fixed(8);
  return std::nullopt;
}

// The wire type of one element of a repeated number field.
uint64_t ElementWire(uint64_t field) {
  return field == kFloatData ? kFixed32 : field == kDoubleData ? kFixed64 : kVarint;
}

bool ReadNumbers(WireReader* reader, uint64_t field, uint64_t wire, std::vector<uint64_t>* out) {
  if (wire != kLength) {
    const auto value = wire == ElementWire(field) ? Scalar(reader, wire) : std::nullopt;
    if (value) out->push_back(*value);
    return value.has_value();
  }
  const auto block = reader->Block();
  if (!block) return false;
  WireReader packed(*block);
  while (!packed.AtEnd()) {
    const auto value = Scalar(&packed, ElementWire(field));
    if (!value) return false;
    out->push_back(*value);
  }
  return true;
}

bool ReadField(WireReader* reader, Message* message) {
  const auto tag = reader->Varint();
  if (!tag) return false;
  const uint64_t field = *tag >> 3, wire = *tag & 7;
  switch (field) {
    case kDims: {
      std::vector<uint64_t> dims;
      if (!ReadNumbers(reader, field, wire, &dims)) return false;
      for (const uint64_t dim : dims) message->dims.push_back(static_cast<int64_t>(dim));
      return message->dims.size() <= kMaxRank;
    }
    case kFloatData:
    case kInt32Data:
    case kInt64Data:
    case kDoubleData:
    case kUint64Data:
      message->values_field = field;
      return ReadNumbers(reader, field, wire, &message->values);
    case kDataType:
    case kDataLocation: {
      const auto value = wire == kVarint ? reader->Varint() : std::nullopt;
      if (!value) return false;
      if (field == kDataType) message->data_type = *value;
      if (field == kDataLocation) message->has_external = *value == 1;
      return true;
    }
    case kName:
    case kRawData: {
      const auto block = wire == kLength ? reader->Block() : std::nullopt;
      if (!block) return false;
      if (field == kName) message->name.assign(block->begin(), block->end());
      if (field == kRawData) message->raw = *block;
      return true;
    }
    default:
      return field != 0 &&
             (wire == kLength ? reader->Block().has_value() : Scalar(reader, wire).has_value());
  }
}

// The typed values, as the bytes of the elements.
Result<std::vector<uint8_t>> FromValues(const Message& message, const TypeNumber& row,
                                        int64_t elements) {
  if (TypeBits(row.type) < 8 && !message.values.empty()) {
    return Unsupported("4-bit elements that are not raw data");
  }
  if (message.values_field && *message.values_field != row.data) {
    return Malformed("its data is not in the field of type ", TypeName(row.type));
  }
  if (static_cast<int64_t>(message.values.size()) != elements) {
    return Malformed("its shape needs ", elements, " elements, it has ", message.values.size());
  }
  const auto width = static_cast<size_t>(TypeBits(row.type) / 8);
  std::vector<uint8_t> bytes;
  for (const uint64_t value : message.values) {
    for (size_t i = 0; i < width; ++i) bytes.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }
  return bytes;
}

Result<Tensor> Parse(Bytes file) {
  Message message;
  WireReader reader(file);
  while (!reader.AtEnd()) {
    if (!ReadField(&reader, &message)) return Malformed("is no TensorProto, or damaged");
  }
  const auto row = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeNumber& type) {
    return type.number == message.data_type;
  });
  if (message.data_type == 0) return Malformed("is no TensorProto (it has no element type)");
  if (row == kTypes.end()) return Malformed("element type ", message.data_type, " is unknown");
  if (message.has_external) return Unsupported("data outside of the file");
  Tensor tensor{.name = message.name, .type = row->type, .shape = message.dims, .bytes = {}};
  const auto elements = CountElements(message.dims);
  if (!elements) return Malformed("its shape is impossible or too large");
  if (message.raw && !message.values_field) {
    tensor.bytes.assign(message.raw->begin(), message.raw->end());
  } else if (message.raw && !message.raw->empty()) {
    return Malformed("it has raw and typed data");
  } else {
    DLA_ASSIGN_OR_RETURN(tensor.bytes, FromValues(message, *row, *elements));
  }
  const int64_t bytes = TypeBytes(row->type, *elements);
  if (bytes != static_cast<int64_t>(tensor.bytes.size())) {
    return Malformed("its shape needs ", bytes, " bytes of data, it has ", tensor.bytes.size());
  }
  if (row->type == ElementType::kBool) {
    for (uint8_t& byte : tensor.bytes) byte = byte != 0 ? 1 : 0;
  }
  return tensor;
}

void PutVarint(uint64_t value, std::vector<uint8_t>* out) {
  for (; value >= 128; value >>= 7) out->push_back(static_cast<uint8_t>(value | 128));
  out->push_back(static_cast<uint8_t>(value));
}
void PutTag(uint64_t field, uint64_t wire, std::vector<uint8_t>* out) {
  PutVarint(field << 3 | wire, out);
}

}  // namespace

Result<Tensor> ParseTensorProto(std::span<const uint8_t> file, const std::string& where) {
  Result<Tensor> tensor = Parse(file);
  if (!tensor.ok()) return tensor.status().At(where);
  return tensor;
}

std::vector<uint8_t> EncodeTensorProto(const Tensor& tensor) {
  std::vector<uint8_t> out;
  for (const int64_t dim : tensor.shape) {
    PutTag(kDims, kVarint, &out);
    PutVarint(static_cast<uint64_t>(dim), &out);
  }
  for (const TypeNumber& row : kTypes) {
    if (row.type != tensor.type) continue;
    PutTag(kDataType, kVarint, &out);
    PutVarint(row.number, &out);
  }
  if (!tensor.name.empty()) {
    PutTag(kName, kLength, &out);
    PutVarint(tensor.name.size(), &out);
    out.insert(out.end(), tensor.name.begin(), tensor.name.end());
  }
  PutTag(kRawData, kLength, &out);
  PutVarint(tensor.bytes.size(), &out);
  out.insert(out.end(), tensor.bytes.begin(), tensor.bytes.end());
  return out;
}

}  // namespace dla
