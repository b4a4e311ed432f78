// Files: read whole, map read-only, write under a temporary name and rename.
//
// An output file is never seen half written: AtomicFile writes a file without a name in the same
// folder, gives it a temporary name when everything is on disk, and renames it; whatever happens
// before, failure or signal, the old file stays and nothing is left behind. (Signals wait
// during the renaming; a kill just there leaves the whole file under its temporary name. Where the
// file system knows no files without names, it has that name from the start, and a signal leaves
// it.) Large files are streamed through it. Errors are kIo and name the path.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/status.h"

namespace dla {

// The whole file. `max_bytes` bounds what is read (kMalformed beyond it).
Result<std::vector<uint8_t>> ReadFile(const std::string& path, int64_t max_bytes = INT64_MAX);
Result<std::string> ReadTextFile(const std::string& path, int64_t max_bytes = INT64_MAX);

// A file's bytes, mapped read-only for as long as the object lives. What cannot be mapped (a pipe)
// is read into memory instead.
class MappedFile {
 public:
  static Result<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const uint8_t> bytes() const { return bytes_; }
  // Gives back the memory of these bytes; where they are read again, they are loaded again.
  void Forget(size_t begin, size_t end) const;

 private:
  MappedFile() = default;
  std::span<const uint8_t> bytes_;
  void* map_ = nullptr;  // null: `owned_` holds the bytes
  std::vector<uint8_t> owned_;
};

// A file in the making. Devices and pipes (/dev/null) are written directly.
class AtomicFile {
 public:
  static Result<std::unique_ptr<AtomicFile>> Create(const std::string& path);
  ~AtomicFile();  // removes the temporary file unless Commit() has succeeded
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // Appends. The data is buffered; errors may show up later, at the latest in Commit().
  Status Write(std::span<const uint8_t> data);
  // Overwrites bytes that were written before.
  Status WriteAt(int64_t offset, std::span<const uint8_t> data);
  int64_t size_bytes() const { return size_bytes_; }
  // Flushes to the disk and gives the file its name.
  Status Commit();

 private:
  AtomicFile() = default;
  Status Flush();
  // Makes `give(name)` return 0 for a temporary name that nobody has taken.
  Status TakeTemporaryName(const std::function<int(const char*)>& give);
  Status WriteFully(std::span<const uint8_t> data);

  std::string path_;            // as the user named it, for messages
  std::string final_path_;      // symbolic links resolved
  std::string temporary_path_;  // empty: has no name (yet)
  bool is_direct_ = false;      // a device or pipe
  int fd_ = -1;
  int64_t size_bytes_ = 0;
  std::vector<uint8_t> buffer_;
};

Status WriteFile(const std::string& path, std::span<const uint8_t> data);
Status WriteTextFile(const std::string& path, std::string_view text);

}  // namespace dla
