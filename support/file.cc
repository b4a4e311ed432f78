#include "support/file.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace dla {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

Status ErrnoError(const std::string& path, const char* what) {
  return IoError(path, ": ", what, ": ", std::strerror(errno));
}

// Closes on scope exit.
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

// Keeps signals waiting while a file has its temporary name: it is whole by then, and two calls
// away from its own name.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~HeldSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_;
};

// The descriptor's name in /proc, by which a file without a name can be given one.
std::string LinkOf(int fd) { return Concat("/proc/self/fd/", fd); }

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

// A new file without a name in the folder; -1 where there are none or could not be named later.
int OpenUnnamed(const std::string& folder, mode_t mode) {
  const int fd = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
  if (fd >= 0 && access(LinkOf(fd).c_str(), F_OK) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

// Opens for reading; refuses what is neither a regular file nor a pipe.
Status OpenForReading(const std::string& path, Descriptor* file, struct stat* info) {
  file->fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file->fd < 0) return ErrnoError(path, "cannot open");
  if (fstat(file->fd, info) != 0) return ErrnoError(path, "cannot read");
  if (S_ISDIR(info->st_mode)) return IoError(path, ": is a folder; name a file");
  if (!S_ISREG(info->st_mode) && !S_ISFIFO(info->st_mode)) {
    return IoError(path, ": is neither a file nor a pipe");
  }
  return {};
}

// Reads to the end of the file, whatever its size claims to be.
Status ReadRest(const std::string& path, int fd, int64_t expected_bytes, int64_t max_bytes,
                std::vector<uint8_t>* data) {
  data->resize(static_cast<size_t>(std::min(expected_bytes, max_bytes)));
  size_t used = 0;
  while (true) {
    if (used == data->size()) {
      uint8_t extra[4096];
      const ssize_t got = read(fd, extra, sizeof(extra));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return ErrnoError(path, "cannot read");
      if (got == 0) break;
      if (static_cast<int64_t>(used) + got > max_bytes) {
        return Malformed(path, ": is larger than ", max_bytes, " bytes");
      }
      data->insert(data->end(), extra, extra + got);
      used = data->size();
      data->resize(std::max(used, std::min(2 * used, static_cast<size_t>(max_bytes))));
      continue;
    }
    const ssize_t got = read(fd, data->data() + used, std::min(data->size() - used, kBufferBytes));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(path, "cannot read");
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  data->resize(used);
  return {};
}

}  // namespace

Result<std::vector<uint8_t>> ReadFile(const std::string& path, int64_t max_bytes) {
  Descriptor file;
  struct stat info {};
  DLA_RETURN_IF_ERROR(OpenForReading(path, &file, &info));
  if (info.st_size > max_bytes) {
    return Malformed(path, ": is larger than ", max_bytes, " bytes");
  }
  std::vector<uint8_t> data;
  DLA_RETURN_IF_ERROR(ReadRest(path, file.fd, info.st_size, max_bytes, &data));
  return data;
}

Result<std::string> ReadTextFile(const std::string& path, int64_t max_bytes) {
  DLA_ASSIGN_OR_RETURN(const std::vector<uint8_t> data, ReadFile(path, max_bytes));
  return std::string(data.begin(), data.end());
}

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  Descriptor file;
  struct stat info {};
  DLA_RETURN_IF_ERROR(OpenForReading(path, &file, &info));
  std::shared_ptr<MappedFile> result(new MappedFile);
  if (S_ISREG(info.st_mode) && info.st_size > 0) {
    const size_t size = static_cast<size_t>(info.st_size);
    void* map = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
    if (map != MAP_FAILED) {
      result->map_ = map;
      result->bytes_ = {static_cast<const uint8_t*>(map), size};
      return std::shared_ptr<const MappedFile>(std::move(result));
    }
  }
  DLA_RETURN_IF_ERROR(ReadRest(path, file.fd, info.st_size, INT64_MAX, &result->owned_));
  result->bytes_ = result->owned_;
  return std::shared_ptr<const MappedFile>(std::move(result));
}

void MappedFile::Forget(size_t begin, size_t end) const {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  begin = begin / page * page;
  end = end / page * page;
  if (map_ != nullptr && end > begin) {
    madvise(static_cast<uint8_t*>(map_) + begin, end - begin, MADV_DONTNEED);
  }
}

MappedFile::~MappedFile() {
  if (map_ != nullptr) munmap(map_, bytes_.size());
}

Result<std::unique_ptr<AtomicFile>> AtomicFile::Create(const std::string& path) {
  std::unique_ptr<AtomicFile> file(new AtomicFile);
  file->path_ = path;
  file->final_path_ = path;
  mode_t mode = 0666;
  struct stat info {};
  const bool exists = stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return IoError(path, ": is a folder; name a file");
  if (exists && !S_ISREG(info.st_mode)) {
    file->fd_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file->fd_ < 0) return ErrnoError(path, "cannot write");
    file->is_direct_ = true;
    return file;
  }
  if (exists) {
    mode = info.st_mode & 0777;
    if (char* resolved = realpath(path.c_str(), nullptr)) {
      file->final_path_ = resolved;
      std::free(resolved);
    }
  }
  file->fd_ = OpenUnnamed(FolderOf(file->final_path_), mode);
  if (file->fd_ < 0) {
    // O_EXCL: never write into a file that somebody else is making.
    DLA_RETURN_IF_ERROR(file->TakeTemporaryName([&](const char* name) {
      file->fd_ = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
      return file->fd_ < 0 ? -1 : 0;
    }));
  }
  file->buffer_.reserve(kBufferBytes);
  return file;
}

Status AtomicFile::TakeTemporaryName(const std::function<int(const char*)>& give) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string name = Concat(final_path_, ".tmp", getpid(), ".", attempt);
    if (give(name.c_str()) == 0) {
      temporary_path_ = std::move(name);
      return {};
    }
    if (errno != EEXIST) break;
  }
  return ErrnoError(path_, "cannot write");
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_path_.empty()) unlink(temporary_path_.c_str());
}

Status AtomicFile::WriteFully(std::span<const uint8_t> data) {
  while (!data.empty()) {
    const ssize_t done = write(fd_, data.data(), std::min(data.size(), size_t{1} << 30));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return ErrnoError(path_, "cannot write");
    data = data.subspan(static_cast<size_t>(done));
  }
  return {};
}

Status AtomicFile::Flush() {
  DLA_RETURN_IF_ERROR(WriteFully(buffer_));
  buffer_.clear();
  return {};
}

Status AtomicFile::Write(std::span<const uint8_t> data) {
  size_bytes_ += static_cast<int64_t>(data.size());
  if (buffer_.size() + data.size() > kBufferBytes) DLA_RETURN_IF_ERROR(Flush());
  if (data.size() >= kBufferBytes) return WriteFully(data);
  buffer_.insert(buffer_.end(), data.begin(), data.end());
  return {};
}

Status AtomicFile::WriteAt(int64_t offset, std::span<const uint8_t> data) {
  DLA_CHECK(offset >= 0 && offset <= size_bytes_ - static_cast<int64_t>(data.size()), path_);
  DLA_RETURN_IF_ERROR(Flush());
  while (!data.empty()) {
    const ssize_t done = pwrite(fd_, data.data(), data.size(), offset);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return ErrnoError(path_, "cannot write");
    offset += done;
    data = data.subspan(static_cast<size_t>(done));
  }
  return {};
}

Status AtomicFile::Commit() {
  DLA_RETURN_IF_ERROR(Flush());
  if (!is_direct_ && fsync(fd_) != 0) return ErrnoError(path_, "cannot write");
  const HeldSignals held;
  if (!is_direct_ && temporary_path_.empty()) {
    const std::string unnamed = LinkOf(fd_);
    DLA_RETURN_IF_ERROR(TakeTemporaryName([&](const char* name) {
      return linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW);
    }));
  }
  const int closed = close(fd_);
  fd_ = -1;
  if (closed != 0) return ErrnoError(path_, "cannot write");
  if (is_direct_) return {};
  if (rename(temporary_path_.c_str(), final_path_.c_str()) != 0) {
    return ErrnoError(path_, "cannot rename the temporary file");
  }
  temporary_path_.clear();
  return {};
}

Status WriteFile(const std::string& path, std::span<const uint8_t> data) {
  DLA_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  DLA_RETURN_IF_ERROR(file->Write(data));
  return file->Commit();
}

Status WriteTextFile(const std::string& path, std::string_view text) {
  return WriteFile(path, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

}  // namespace dla
