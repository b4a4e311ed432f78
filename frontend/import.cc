#include "frontend/import.h"

#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>

#include "frontend/importer.h"
#include "frontend/onnx_proto.h"
#include "support/file.h"

namespace dla::frontend {
namespace {

// The bytes of a file in pieces. What protobuf has read leaves the memory again: the message has
// copied it, and weights must not lie there twice.
class PiecewiseStream : public google::protobuf::io::ZeroCopyInputStream {
 public:
  // Large weights grow in few steps where pieces are large, which lie in memory beside the message.
  explicit PiecewiseStream(const MappedFile& file)
      : file_(file), piece_bytes_(std::max(size_t{1} << 20, file.bytes().size() / 4)) {}

  bool Next(const void** data, int* size) override {
    const auto bytes = file_.bytes();
    if (at_ == bytes.size()) return false;
    file_.Forget(at_ < piece_bytes_ ? 0 : at_ - piece_bytes_, at_);
    const size_t piece = std::min(piece_bytes_, bytes.size() - at_);
    *data = bytes.data() + at_;
    *size = static_cast<int>(piece);
    at_ += piece;
    return true;
  }
  void BackUp(int count) override { at_ -= static_cast<size_t>(count); }
  bool Skip(int count) override {
    const size_t step = std::min(static_cast<size_t>(count), file_.bytes().size() - at_);
    at_ += step;
    return step == static_cast<size_t>(count);
  }
  int64_t ByteCount() const override { return static_cast<int64_t>(at_); }

 private:
  const MappedFile& file_;
  size_t piece_bytes_;
  size_t at_ = 0;
};

// Parses the file; the message owns all of its bytes.
Result<std::shared_ptr<const onnx::ModelProto>> ParseModel(const std::string& path) {
  DLA_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const size_t size = file->bytes().size();
  if (size > static_cast<size_t>(std::numeric_limits<int>::max())) {
    return Unsupported("the file has ", size,
                       " bytes; ONNX files end at 2 GiB (larger weights "
                       "belong into external data)");
  }
  auto model = std::make_shared<onnx::ModelProto>();
  PiecewiseStream stream(*file);
  // Protobuf would print its own message beside ours.
  const google::protobuf::LogSilencer silence;
  if (!model->ParseFromZeroCopyStream(&stream)) {
    return Malformed("this is no ONNX model, or it is damaged (protobuf cannot parse it)");
  }
  return std::shared_ptr<const onnx::ModelProto>(model);
}

}  // namespace

Result<ir::Graph> ImportOnnx(const std::string& path, const ImportOptions& options) {
  try {
    const auto model = ParseModel(path);
    if (!model.ok()) {
      const bool io = model.status().code() == ErrorCode::kIo;  // names the path already
      return io ? model.status() : model.status().At(path);
    }
    Result<ir::Graph> graph = Importer(**model, path, *model, options).Run();
    if (!graph.ok() && graph.status().code() != ErrorCode::kUsage) return graph.status().At(path);
    return graph;
  } catch (const std::bad_alloc&) {
    return Unsupported(path, ": the model needs more memory than there is");
  } catch (const std::exception& error) {
    return Malformed(path, ": ", error.what());
  }
}

}  // namespace dla::frontend
