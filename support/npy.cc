// .npy: magic, version, a header that is a Python dictionary literal, the data.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "support/tensor_file.h"

namespace dla {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeaderBytes = size_t{1} << 20;
constexpr size_t kMaxRank = 64;

struct TypeCode {
  std::string_view code;
  ElementType type;
};
constexpr std::array<TypeCode, 12> kTypeCodes = {{{"f4", ElementType::kF32},
                                                  {"f2", ElementType::kF16},
                                                  {"f8", ElementType::kF64},
                                                  {"i1", ElementType::kI8},
                                                  {"u1", ElementType::kU8},
                                                  {"i2", ElementType::kI16},
                                                  {"u2", ElementType::kU16},
                                                  {"i4", ElementType::kI32},
                                                  {"u4", ElementType::kU32},
                                                  {"i8", ElementType::kI64},
                                                  {"u8", ElementType::kU64},
                                                  {"b1", ElementType::kBool}}};

struct Header {
  std::string descr;
  bool has_order = false, fortran_order = false, has_shape = false;
  std::vector<int64_t> shape;
};

// Reads just the literals that numpy writes: {'key': 'text' | True | False | (numbers), ...}.
class LiteralReader {
 public:
  explicit LiteralReader(std::string_view text) : text_(text) {}

  bool Read(Header* header) {
    if (!Take('{')) return false;
    while (!Take('}')) {
      std::string key;
      if (!Text(&key) || !Take(':') || !Value(key, header)) return false;
      if (!Take(',') && !Peek('}')) return false;
    }
    Blanks();
    return text_.empty();
  }

 private:
  void Blanks() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t')) {
      text_.remove_prefix(1);
    }
  }
  bool Peek(char letter) {
    Blanks();
    return !text_.empty() && text_[0] == letter;
  }
  bool Take(char letter) {
    if (!Peek(letter)) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool Word(std::string_view word) {
    Blanks();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  bool Text(std::string* out) {
    const char quote = Peek('\'') ? '\'' : '"';
    if (!Take(quote)) return false;
    const size_t end = text_.find(quote);
    if (end == std::string_view::npos) return false;
    *out = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return out->find('\\') == std::string::npos;
  }
  bool Number(int64_t* out) {
    Blanks();
    const auto result = std::from_chars(text_.data(), text_.data() + text_.size(), *out);
    if (result.ec != std::errc()) return false;
    text_.remove_prefix(static_cast<size_t>(result.ptr - text_.data()));
    if (!text_.empty() && text_[0] == 'L') text_.remove_prefix(1);  // Python 2
    return true;
  }
  bool Value(const std::string& key, Header* header) {
    if (key == "descr") return header->descr.empty() && Text(&header->descr);
    if (key == "fortran_order" && !header->has_order) {
      header->has_order = true;
      header->fortran_order = Word("True");
      return header->fortran_order || Word("False");
    }
    if (key != "shape" || header->has_shape || !Take('(')) return false;
    header->has_shape = true;
    while (!Take(')')) {
      if (header->shape.size() == kMaxRank || !Number(&header->shape.emplace_back())) return false;
      if (!Take(',') && !Peek(')')) return false;
    }
    return true;
  }

  std::string_view text_;
};

// The header's text; `*data` is what follows.
Result<std::string_view> HeaderText(Bytes file, Bytes* data) {
  if (file.size() < 10 || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0) {
    return Malformed("is no .npy array (it does not begin with '\\x93NUMPY')");
  }
  const int version = file[6];
  if (version < 1 || version > 3) return Malformed("has .npy version ", version, "; 1 to 3 exist");
  const size_t length_bytes = version == 1 ? 2 : 4;
  if (file.size() < 8 + length_bytes) return Malformed("is cut off in its header");
  size_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= size_t{file[8 + i]} << (8 * i);
  const Bytes rest = file.subspan(8 + length_bytes);
  if (length > rest.size() || length > kMaxHeaderBytes) {
    return Malformed("its header has ", length, " bytes, ", rest.size(), " remain");
  }
  *data = rest.subspan(length);
  return std::string_view(reinterpret_cast<const char*>(rest.data()), length);
}

// The type of a descr such as "<f4"; `*swap`: the data is big-endian.
Result<ElementType> ParseDescr(const std::string& descr, bool* swap) {
  const std::string_view order = std::string_view(descr).substr(0, 1);
  if (descr.size() == 3 && std::string_view("<>=|").find(order) != std::string_view::npos) {
    for (const TypeCode& row : kTypeCodes) {
      if (row.code != std::string_view(descr).substr(1)) continue;
      *swap = order == ">" && TypeBits(row.type) > 8;
      if (order == "|" && TypeBits(row.type) > 8) break;
      return row.type;
    }
  }
  return Malformed("type '", descr.substr(0, 40),
                   "' is not one that tensors have (f2, f4, f8, i1 to i8, u1 to u8, b1)");
}

// Column-major -> row-major.
std::vector<uint8_t> Transposed(const std::vector<uint8_t>& data, const std::vector<int64_t>& shape,
                                size_t width) {
  std::vector<uint8_t> out(data.size());
  std::vector<size_t> index(shape.size(), 0), stride(shape.size(), width);
  for (size_t a = 1; a < shape.size(); ++a) {
    stride[a] = stride[a - 1] * static_cast<size_t>(shape[a - 1]);
  }
  size_t source = 0;
  for (size_t to = 0; to < out.size(); to += width) {
    std::memcpy(out.data() + to, data.data() + source, width);
    for (size_t a = shape.size(); a-- > 0;) {
      source += stride[a];
      if (++index[a] < static_cast<size_t>(shape[a])) break;
      source -= index[a] * stride[a];
      index[a] = 0;
    }
  }
  return out;
}

Result<Tensor> Parse(Bytes file) {
  Bytes data;
  DLA_ASSIGN_OR_RETURN(const std::string_view text, HeaderText(file, &data));
  Header header;
  if (!LiteralReader(text).Read(&header) || header.descr.empty() || !header.has_order ||
      !header.has_shape) {
    return Malformed(
        "its header is not {'descr': '...', 'fortran_order': True or False, 'shape': (...)}");
  }
  Tensor tensor;
  bool swap = false;
  DLA_ASSIGN_OR_RETURN(tensor.type, ParseDescr(header.descr, &swap));
  const auto elements = CountElements(header.shape);
  if (!elements) return Malformed("its shape is impossible or too large");
  const int64_t bytes = TypeBytes(tensor.type, *elements);
  if (bytes != static_cast<int64_t>(data.size())) {
    return Malformed("its shape needs ", bytes, " bytes of data, it has ", data.size());
  }
  tensor.shape = std::move(header.shape);
  tensor.bytes.assign(data.begin(), data.end());
  const auto width = static_cast<size_t>(TypeBits(tensor.type) / 8);
  if (swap) {
    for (size_t i = 0; i < tensor.bytes.size(); i += width) {
      std::reverse(tensor.bytes.begin() + static_cast<ptrdiff_t>(i),
                   tensor.bytes.begin() + static_cast<ptrdiff_t>(i + width));
    }
  }
  if (tensor.type == ElementType::kBool) {
    for (uint8_t& byte : tensor.bytes) byte = byte != 0 ? 1 : 0;
  }
  if (header.fortran_order && tensor.shape.size() > 1) {
    tensor.bytes = Transposed(tensor.bytes, tensor.shape, width);
  }
  return tensor;
}

std::string_view CodeOf(ElementType type) {
  if (type == ElementType::kBF16) return "u2";
  if (type == ElementType::kI4) return "i1";
  if (type == ElementType::kU4) return "u1";
  for (const TypeCode& row : kTypeCodes) {
    if (row.type == type) return row.code;
  }
  return "";
}

// Two elements a byte, low half first -> one.
std::vector<uint8_t> Unpacked(const Tensor& tensor) {
  const int64_t elements = CountElements(tensor.shape).value_or(0);
  std::vector<uint8_t> out;
  for (int64_t i = 0; i < elements; ++i) {
    const unsigned byte = tensor.bytes[static_cast<size_t>(i / 2)];
    unsigned value = i % 2 == 0 ? byte & 15u : byte >> 4;
    if (tensor.type == ElementType::kI4 && value > 7) value |= 0xf0u;
    out.push_back(static_cast<uint8_t>(value));
  }
  return out;
}

}  // namespace

Result<Tensor> ParseNpy(std::span<const uint8_t> file, const std::string& where) {
  Result<Tensor> tensor = Parse(file);
  if (!tensor.ok() && !where.empty()) return tensor.status().At(where);
  return tensor;
}

std::vector<uint8_t> EncodeNpy(const Tensor& tensor) {
  const std::string_view code = CodeOf(tensor.type);
  std::string header = Concat("{'descr': '", code[1] == '1' ? '|' : '<', code,
                              "', 'fortran_order': False, 'shape': (");
  for (size_t a = 0; a < tensor.shape.size(); ++a) {
    header += Concat(a == 0 ? "" : " ", tensor.shape[a], ",");
  }
  // numpy writes (2, 3) and (2,).
  if (tensor.shape.size() > 1) header.pop_back();
  header += "), }";
  const size_t prefix = kMagic.size() + 4;
  while ((prefix + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::vector<uint8_t> out(kMagic.begin(), kMagic.end());
  for (const size_t byte : {size_t{1}, size_t{0}, header.size() & 255, header.size() >> 8}) {
    out.push_back(static_cast<uint8_t>(byte));
  }
  out.insert(out.end(), header.begin(), header.end());
  const std::vector<uint8_t> unpacked =
      TypeBits(tensor.type) == 4 ? Unpacked(tensor) : std::vector<uint8_t>();
  const std::vector<uint8_t>& data = TypeBits(tensor.type) == 4 ? unpacked : tensor.bytes;
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

}  // namespace dla
