#include "frontend/tensors.h"

#include <charconv>
#include <cstring>
#include <filesystem>

#include "support/checked.h"
#include "support/file.h"

namespace dla::frontend {
namespace {

using onnx::TensorProto;

constexpr int kMostRank = 16;

// The elements of a typed field as `To`, one by one.
template <typename To, typename Field>
std::shared_ptr<const ir::Constant> Convert(const Field& field) {
  ir::Tensor tensor;
  tensor.bytes.resize(static_cast<size_t>(field.size()) * sizeof(To));
  uint8_t* to = tensor.bytes.data();
  for (const auto element : field) {
    const To value = static_cast<To>(element);
    std::memcpy(to, &value, sizeof(To));
    to += sizeof(To);
  }
  return ir::MakeConstant(std::move(tensor));
}

Result<int64_t> ParseCount(const std::string& text, const char* key) {
  int64_t value = -1;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size() || value < 0) {
    return Malformed("external data: ", key, " is '", text, "', not a number of bytes");
  }
  return value;
}

struct ExternalPlace {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

Result<ExternalPlace> ReadPlace(const TensorProto& tensor) {
  ExternalPlace place;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") place.location = entry.value();
    if (entry.key() == "offset") {
      DLA_ASSIGN_OR_RETURN(place.offset, ParseCount(entry.value(), "offset"));
    }
    if (entry.key() == "length") {
      DLA_ASSIGN_OR_RETURN(place.length, ParseCount(entry.value(), "length"));
    }
  }
  if (place.location.empty()) return Malformed("external data: no location is given");
  // Files beside the model or below only: a model must not read what it likes.
  const std::filesystem::path path(place.location);
  bool escapes = path.is_absolute() || place.location.find('\0') != std::string::npos;
  for (const auto& part : path) escapes = escapes || part == "..";
  if (escapes) {
    return Malformed("external data: location '", place.location,
                     "' leaves the folder of the model");
  }
  return place;
}

}  // namespace

Result<ElementType> TypeOfNumber(int number) {
  switch (number) {
    case TensorProto::FLOAT:
      return ElementType::kF32;
    case TensorProto::UINT8:
      return ElementType::kU8;
    case TensorProto::INT8:
      return ElementType::kI8;
    case TensorProto::UINT16:
      return ElementType::kU16;
    case TensorProto::INT16:
      return ElementType::kI16;
    case TensorProto::INT32:
      return ElementType::kI32;
    case TensorProto::INT64:
      return ElementType::kI64;
    case TensorProto::BOOL:
      return ElementType::kBool;
    case TensorProto::FLOAT16:
      return ElementType::kF16;
    case TensorProto::DOUBLE:
      return ElementType::kF64;
    case TensorProto::UINT32:
      return ElementType::kU32;
    case TensorProto::UINT64:
      return ElementType::kU64;
    case TensorProto::BFLOAT16:
      return ElementType::kBF16;
    case TensorProto::STRING:
    case TensorProto::COMPLEX64:
    case TensorProto::COMPLEX128:
      return Unsupported("elements of type ", TensorProto::DataType_Name(number),
                         " are not supported");
    default:
      if (number >= 17 && number <= 26) {
        return Unsupported("elements of ONNX type ", number, " are not supported");
      }
      return Malformed("there is no element type ", number);
  }
}

std::shared_ptr<const ir::Constant> TensorReader::Refer(const void* bytes,
                                                        int64_t size_bytes) const {
  auto constant = std::make_shared<ir::Constant>();
  constant->bytes = static_cast<const uint8_t*>(bytes);
  constant->size_bytes = size_bytes;
  constant->owner = owner_;
  return constant;
}

Result<std::shared_ptr<const ir::Constant>> TensorReader::ReadExternal(const TensorProto& tensor,
                                                                       const ir::TensorType& type) {
  DLA_ASSIGN_OR_RETURN(const ExternalPlace place, ReadPlace(tensor));
  std::shared_ptr<const MappedFile>& file = files_[place.location];
  if (file == nullptr) {
    const auto path = std::filesystem::path(model_path_).parent_path() / place.location;
    DLA_ASSIGN_OR_RETURN(file, MappedFile::Open(path.string()));
  }
  const int64_t wanted = TypeBytes(type.type, ir::ElementCount(type.shape));
  const int64_t available = static_cast<int64_t>(file->bytes().size());
  if (place.length.value_or(wanted) != wanted) {
    return Malformed("external data: length is ", *place.length, ", the shape ",
                     ir::ShapeText(type.shape), " takes ", wanted, " bytes");
  }
  if (place.offset > available || wanted > available - place.offset) {
    return Malformed("external data: '", place.location, "' has ", available, " bytes; ", wanted,
                     " are wanted at offset ", place.offset);
  }
  const uint8_t* bytes = file->bytes().data() + place.offset;
  if (place.offset % 8 != 0) {  // kernels want aligned elements
    ir::Tensor copy;
    copy.bytes.assign(bytes, bytes + wanted);
    return ir::MakeConstant(std::move(copy));
  }
  auto constant = std::make_shared<ir::Constant>();
  constant->bytes = bytes;
  constant->size_bytes = wanted;
  constant->owner = file;
  return std::shared_ptr<const ir::Constant>(constant);
}

Result<std::shared_ptr<const ir::Constant>> TensorReader::ReadFields(const TensorProto& tensor,
                                                                     const ir::TensorType& type) {
  if (tensor.has_raw_data()) {
    return Refer(tensor.raw_data().data(), static_cast<int64_t>(tensor.raw_data().size()));
  }
  const auto whole = [&](const auto& field) {
    return Refer(field.data(),
                 static_cast<int64_t>(static_cast<size_t>(field.size()) * sizeof(field.data()[0])));
  };
  switch (type.type) {
    case ElementType::kF32:
      return whole(tensor.float_data());
    case ElementType::kF64:
      return whole(tensor.double_data());
    case ElementType::kI64:
      return whole(tensor.int64_data());
    case ElementType::kI32:
      return whole(tensor.int32_data());
    case ElementType::kU64:
      return whole(tensor.uint64_data());
    case ElementType::kU32:
      return Convert<uint32_t>(tensor.uint64_data());
    case ElementType::kI16:
    case ElementType::kU16:
    case ElementType::kF16:
    case ElementType::kBF16:
      return Convert<uint16_t>(tensor.int32_data());
    default:
      return Convert<uint8_t>(tensor.int32_data());
  }
}

Result<ImportedTensor> TensorReader::Read(const TensorProto& tensor) {
  ImportedTensor result;
  DLA_ASSIGN_OR_RETURN(result.type.type, TypeOfNumber(tensor.data_type()));
  if (tensor.has_segment()) return Unsupported("tensors in segments are not supported");
  if (tensor.dims_size() > kMostRank) {
    return Unsupported("rank ", tensor.dims_size(), " is not supported (at most ", kMostRank, ")");
  }
  result.type.shape.assign(tensor.dims().begin(), tensor.dims().end());
  const auto count = ir::CheckedElementCount(result.type.shape);
  if (!count) return Malformed("the shape ", ir::ShapeText(result.type.shape), " is not possible");
  const bool external = tensor.data_location() == TensorProto::EXTERNAL;
  DLA_ASSIGN_OR_RETURN(result.constant, external ? ReadExternal(tensor, result.type)
                                                 : ReadFields(tensor, result.type));
  const int64_t wanted = TypeBytes(result.type.type, *count);
  if (result.constant->size_bytes != wanted) {
    return Malformed("the shape ", ir::ShapeText(result.type.shape), " of ",
                     TypeName(result.type.type), " takes ", wanted, " bytes, the data has ",
                     result.constant->size_bytes);
  }
  return result;
}

Result<ImportedTensor> TensorReader::ReadSparse(const onnx::SparseTensorProto& tensor) {
  // A few bytes may not become more than this.
  constexpr int64_t kMostBytes = int64_t{1} << 28;
  DLA_ASSIGN_OR_RETURN(const ImportedTensor values, Read(tensor.values()));
  DLA_ASSIGN_OR_RETURN(const ImportedTensor indices, Read(tensor.indices()));
  ImportedTensor result;
  result.type = {values.type.type, {tensor.dims().begin(), tensor.dims().end()}};
  const auto count = ir::CheckedElementCount(result.type.shape);
  if (!count || result.type.shape.empty() || values.type.shape.size() != 1 ||
      indices.type.type != ElementType::kI64) {
    return Malformed("a sparse tensor of shape ", ir::ShapeText(result.type.shape), " with values ",
                     ir::ShapeText(values.type.shape), " is not possible");
  }
  if (TypeBits(result.type.type) < 8 || TypeBytes(result.type.type, *count) > kMostBytes) {
    return Unsupported("sparse tensors of this type or size are not supported");
  }
  const int64_t given = values.type.shape[0];
  const int64_t rank = static_cast<int64_t>(result.type.shape.size());
  const bool linear = indices.type.shape == ir::Shape{given};
  if (!linear && indices.type.shape != ir::Shape{given, rank}) {
    return Malformed("the indices of a sparse tensor have shape ",
                     ir::ShapeText(indices.type.shape));
  }
  const ir::TensorView places{ElementType::kI64, indices.type.shape, indices.constant->bytes};
  const ir::Shape strides = ir::DenseStrides(result.type.shape);
  ir::Tensor dense = ir::Tensor::Zeros(result.type);
  const int64_t bytes = TypeBytes(result.type.type, 1);
  for (int64_t i = 0; i < given; ++i) {
    int64_t place = 0;
    for (int64_t a = 0; a < (linear ? 1 : rank); ++a) {
      const int64_t at = ir::ReadInt(places, linear ? i : i * rank + a);
      const int64_t extent = linear ? *count : result.type.shape[ir::Idx(a)];
      if (at < 0 || at >= extent) return Malformed("index ", at, " of a sparse tensor is outside");
      place += at * (linear ? 1 : strides[ir::Idx(a)]);
    }
    std::memcpy(dense.bytes.data() + place * bytes, values.constant->bytes + i * bytes,
                static_cast<size_t>(bytes));
  }
  result.constant = ir::MakeConstant(std::move(dense));
  return result;
}

}  // namespace dla::frontend
