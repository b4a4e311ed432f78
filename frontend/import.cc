#include "frontend/import.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

#include <limits>
#include <memory>
#include <new>

#include "frontend/importer.h"
#include "frontend/onnx_proto.h"
#include "support/file.h"

namespace dla::frontend {
namespace {

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
  google::protobuf::io::CodedInputStream stream(file->bytes().data(), static_cast<int>(size));
  // Protobuf would print its own message beside ours.
  const google::protobuf::LogSilencer silence;
  if (!model->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage()) {
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
