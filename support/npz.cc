// .npz: a zip archive of .npy members; stored and deflated, zip64, sizes from the directory.
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "support/file.h"
#include "support/tensor_file.h"

namespace dla {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr uint32_t kLocalMark = 0x04034b50, kEntryMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr uint32_t kEnd64Mark = 0x06064b50, kLocator64Mark = 0x07064b50;
constexpr size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                 kLocator64Bytes = 20;
constexpr uint32_t kFull32 = 0xffffffff;
constexpr uint64_t kMaxDeflateRatio = 1032;
constexpr int64_t kHeaderAllowance = int64_t{1} << 20;
constexpr uint16_t kStored = 0, kDeflated = 8;

// A little-endian number; the caller has checked that it is there.
uint64_t Get(Bytes file, size_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) value |= uint64_t{file[at + i]} << (8 * i);
  return value;
}
bool Has(Bytes file, uint64_t at, uint64_t bytes) {
  return at <= file.size() && bytes <= file.size() - at;
}

struct Directory {
  uint64_t offset = 0, entries = 0;
};

struct Entry {
  std::string name;
  uint16_t flags = 0, method = 0;
  uint32_t crc = 0;
  uint64_t packed_bytes = 0, bytes = 0, offset = 0;
};

Result<Directory> FindDirectory(Bytes file) {
  if (file.size() < kEndBytes) return Malformed("is no zip archive (too short)");
  const size_t lowest = file.size() - std::min<size_t>(file.size(), kEndBytes + 65535);
  size_t end = file.size() - kEndBytes;
  while (Get(file, end, 4) != kEndMark || !Has(file, end + kEndBytes, Get(file, end + 20, 2))) {
    if (end == lowest) return Malformed("is no zip archive, or cut off (it has no directory)");
    --end;
  }
  Directory directory{Get(file, end + 16, 4), Get(file, end + 10, 2)};
  if (end >= kLocator64Bytes && Get(file, end - kLocator64Bytes, 4) == kLocator64Mark) {
    const uint64_t at = Get(file, end - kLocator64Bytes + 8, 8);
    if (!Has(file, at, kEnd64Bytes) || Get(file, at, 4) != kEnd64Mark) {
      return Malformed("its zip64 directory is damaged");
    }
    directory = {Get(file, at + 48, 8), Get(file, at + 32, 8)};
  }
  return directory;
}

// Takes 64-bit sizes from the entry's extra field where the 32-bit ones are full.
bool ReadExtra64(Bytes extra, Entry* entry) {
  size_t at = 0;
  while (Has(extra, at, 4)) {
    const uint64_t id = Get(extra, at, 2), size = Get(extra, at + 2, 2);
    at += 4;
    if (!Has(extra, at, size)) return false;
    if (id == 1) {
      size_t from = at;
      for (uint64_t* value : {&entry->bytes, &entry->packed_bytes, &entry->offset}) {
        if (*value != kFull32) continue;
        if (from + 8 > at + size) return false;
        *value = Get(extra, from, 8);
        from += 8;
      }
      return true;
    }
    at += size;
  }
  return true;
}

Result<std::vector<Entry>> ReadEntries(Bytes file) {
  DLA_ASSIGN_OR_RETURN(const Directory directory, FindDirectory(file));
  if (!Has(file, directory.offset, 0) ||
      directory.entries > (file.size() - directory.offset) / kEntryBytes) {
    return Malformed("its directory (", directory.entries, " entries at ", directory.offset,
                     ") is not within the file");
  }
  std::vector<Entry> entries;
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (!Has(file, at, kEntryBytes) || Get(file, at, 4) != kEntryMark) {
      return Malformed("entry ", i, " of its directory is damaged");
    }
    const size_t name_bytes = Get(file, at + 28, 2), extra_bytes = Get(file, at + 30, 2),
                 comment_bytes = Get(file, at + 32, 2);
    if (!Has(file, at + kEntryBytes, name_bytes + extra_bytes + comment_bytes)) {
      return Malformed("entry ", i, " of its directory is cut off");
    }
    Entry entry;
    entry.flags = static_cast<uint16_t>(Get(file, at + 8, 2));
    entry.method = static_cast<uint16_t>(Get(file, at + 10, 2));
    entry.crc = static_cast<uint32_t>(Get(file, at + 16, 4));
    entry.packed_bytes = Get(file, at + 20, 4);
    entry.bytes = Get(file, at + 24, 4);
    entry.offset = Get(file, at + 42, 4);
    const Bytes name = file.subspan(at + kEntryBytes, name_bytes);
    entry.name.assign(name.begin(), name.end());
    if (!ReadExtra64(file.subspan(at + kEntryBytes + name_bytes, extra_bytes), &entry)) {
      return Malformed("entry ", i, " of its directory has a damaged extra field");
    }
    entries.push_back(std::move(entry));
    at += kEntryBytes + name_bytes + extra_bytes + comment_bytes;
  }
  return entries;
}

Result<Bytes> PackedData(Bytes file, const Entry& entry) {
  if ((entry.flags & 1) != 0) return Malformed("is encrypted");
  if (!Has(file, entry.offset, kLocalBytes) || Get(file, entry.offset, 4) != kLocalMark) {
    return Malformed("its header is not where the directory says (", entry.offset, ")");
  }
  const uint64_t start = entry.offset + kLocalBytes + Get(file, entry.offset + 26, 2) +
                         Get(file, entry.offset + 28, 2);
  if (!Has(file, start, entry.packed_bytes)) {
    return Malformed("its ", entry.packed_bytes, " bytes are not within the file");
  }
  return file.subspan(start, entry.packed_bytes);
}

Result<std::vector<uint8_t>> Inflate(Bytes packed, uint64_t bytes) {
  if (bytes / kMaxDeflateRatio > packed.size()) {
    return Malformed("cannot unpack to ", bytes, " bytes from ", packed.size());
  }
  std::vector<uint8_t> out(bytes + 1);  // one more, to see whether there is more
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return Malformed("cannot be unpacked");
  // zlib's interface takes a pointer to non-const, but does not write there.
  stream.next_in = const_cast<Bytef*>(packed.data());
  stream.next_out = out.data();
  uint64_t in_left = packed.size(), out_left = out.size();
  int result = Z_OK;
  while (result == Z_OK) {
    stream.avail_in = static_cast<uInt>(std::min<uint64_t>(in_left, 1u << 30));
    stream.avail_out = static_cast<uInt>(std::min<uint64_t>(out_left, 1u << 30));
    const uInt in_before = stream.avail_in, out_before = stream.avail_out;
    result = inflate(&stream, Z_NO_FLUSH);
    in_left -= in_before - stream.avail_in;
    out_left -= out_before - stream.avail_out;
    if (in_before == stream.avail_in && out_before == stream.avail_out) break;
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END || out_left != 1) {
    return Malformed("its compressed data is damaged");
  }
  out.pop_back();
  return out;
}

uint32_t ZipCrc(Bytes data) { return static_cast<uint32_t>(crc32_z(0, data.data(), data.size())); }

// The member's array; skipped if the limit says so.
Result<Tensor> ReadMember(Bytes file, const Entry& entry, int64_t limit) {
  DLA_ASSIGN_OR_RETURN(const Bytes packed, PackedData(file, entry));
  if (limit < INT64_MAX - kHeaderAllowance &&
      entry.bytes > static_cast<uint64_t>(limit + kHeaderAllowance)) {
    return Malformed("has ", entry.bytes, " bytes; at most ", limit, " are wanted");
  }
  Bytes data = packed;
  std::vector<uint8_t> unpacked;
  if (entry.method == kDeflated) {
    DLA_ASSIGN_OR_RETURN(unpacked, Inflate(packed, entry.bytes));
    data = unpacked;
  } else if (entry.method != kStored || entry.packed_bytes != entry.bytes) {
    return Malformed("is packed by method ", entry.method, "; only 0 and 8 are known");
  }
  if (ZipCrc(data) != entry.crc) return Malformed("its checksum is wrong: it is damaged");
  DLA_ASSIGN_OR_RETURN(Tensor tensor, ParseNpy(data, ""));
  if (static_cast<int64_t>(tensor.bytes.size()) > limit) {
    return Malformed("has ", tensor.bytes.size(), " bytes; at most ", limit, " are wanted");
  }
  return tensor;
}

Result<std::vector<Tensor>> Parse(Bytes file, const TensorLimit& limit) {
  DLA_ASSIGN_OR_RETURN(const std::vector<Entry> entries, ReadEntries(file));
  std::vector<Tensor> tensors;
  std::set<std::string> names;
  for (const Entry& entry : entries) {
    std::string name = entry.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (!names.insert(name).second) return Malformed("array '", name, "' is there twice");
    const int64_t most = limit ? limit(name) : INT64_MAX;
    if (most < 0) continue;
    Result<Tensor> tensor = ReadMember(file, entry, most);
    if (!tensor.ok()) return tensor.status().At("array '" + name + "'");
    tensor->name = name;
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

// Bytes of a zip header, little-endian.
class Record {
 public:
  Record& Put(uint64_t value, size_t width) {
    for (size_t i = 0; i < width; ++i) bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
    return *this;
  }
  Record& Put(const std::string& text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    return *this;
  }
  Bytes bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

bool Is64(const Entry& e) { return e.bytes >= kFull32 || e.offset >= kFull32; }

// The fields that local header and directory entry share, from "version needed" on.
void PutCommon(const Entry& entry, size_t extra_bytes, Record* record) {
  constexpr uint64_t kFirstDate = 0x21;  // 1980-01-01: no time in the output
  const uint64_t bytes = Is64(entry) ? kFull32 : entry.bytes;
  record->Put(Is64(entry) ? 45 : 20, 2).Put(entry.flags, 2).Put(kStored, 2).Put(0, 2);
  record->Put(kFirstDate, 2).Put(entry.crc, 4).Put(bytes, 4).Put(bytes, 4);
  record->Put(entry.name.size(), 2).Put(extra_bytes, 2);
}

Status WriteMember(AtomicFile* file, const Tensor& tensor, Entry* entry) {
  const std::vector<uint8_t> data = EncodeNpy(tensor);
  entry->name = tensor.name + ".npy";
  if (entry->name.size() > 65535) return Usage("the name of an array is too long for an archive");
  const bool ascii = std::all_of(entry->name.begin(), entry->name.end(),
                                 [](char c) { return static_cast<unsigned char>(c) < 128; });
  entry->flags = ascii ? 0 : 0x800;  // the name is UTF-8
  entry->crc = ZipCrc(data);
  entry->bytes = entry->packed_bytes = data.size();
  entry->offset = static_cast<uint64_t>(file->size_bytes());
  Record local;
  local.Put(kLocalMark, 4);
  PutCommon(*entry, Is64(*entry) ? 20 : 0, &local);
  local.Put(entry->name);
  if (Is64(*entry)) local.Put(1, 2).Put(16, 2).Put(entry->bytes, 8).Put(entry->bytes, 8);
  DLA_RETURN_IF_ERROR(file->Write(local.bytes()));
  return file->Write(data);
}

Status WriteDirectory(AtomicFile* file, const std::vector<Entry>& entries) {
  const auto start = static_cast<uint64_t>(file->size_bytes());
  for (const Entry& entry : entries) {
    Record record;
    record.Put(kEntryMark, 4).Put(45, 2);
    PutCommon(entry, Is64(entry) ? 28 : 0, &record);
    record.Put(0, 2).Put(0, 2).Put(0, 2).Put(0, 4);
    record.Put(Is64(entry) ? kFull32 : entry.offset, 4).Put(entry.name);
    if (Is64(entry)) {
      record.Put(1, 2).Put(24, 2).Put(entry.bytes, 8).Put(entry.bytes, 8).Put(entry.offset, 8);
    }
    DLA_RETURN_IF_ERROR(file->Write(record.bytes()));
  }
  const auto end = static_cast<uint64_t>(file->size_bytes());
  const bool is64 = start >= kFull32 || end - start >= kFull32 || entries.size() >= 65535;
  Record record;
  if (is64) {
    record.Put(kEnd64Mark, 4).Put(kEnd64Bytes - 12, 8).Put(45, 2).Put(45, 2).Put(0, 4).Put(0, 4);
    record.Put(entries.size(), 8).Put(entries.size(), 8).Put(end - start, 8).Put(start, 8);
    record.Put(kLocator64Mark, 4).Put(0, 4).Put(end, 8).Put(1, 4);
  }
  const uint64_t count = is64 ? 65535 : entries.size();
  record.Put(kEndMark, 4).Put(0, 2).Put(0, 2).Put(count, 2).Put(count, 2);
  record.Put(is64 ? kFull32 : end - start, 4).Put(is64 ? kFull32 : start, 4).Put(0, 2);
  return file->Write(record.bytes());
}

}  // namespace

Result<std::vector<Tensor>> ParseNpz(std::span<const uint8_t> file, const std::string& where,
                                     const TensorLimit& limit) {
  Result<std::vector<Tensor>> tensors = Parse(file, limit);
  if (!tensors.ok()) return tensors.status().At(where);
  return tensors;
}

Result<std::vector<Tensor>> ReadNpz(const std::string& path, const TensorLimit& limit) {
  DLA_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  return ParseNpz(file->bytes(), path, limit);
}

Status WriteNpz(const std::string& path, std::span<const Tensor> tensors) {
  DLA_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  std::vector<Entry> entries(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    DLA_RETURN_IF_ERROR(WriteMember(file.get(), tensors[i], &entries[i]));
  }
  DLA_RETURN_IF_ERROR(WriteDirectory(file.get(), entries));
  return file->Commit();
}

}  // namespace dla
