#include "support/tensor_file.h"

#include <filesystem>

#include "support/file.h"

namespace dla {

Result<Tensor> ReadTensor(const std::string& path) {
  const bool npy = path.ends_with(".npy");
  if (!npy && !path.ends_with(".pb")) {
    return Usage(path, ": tensors are read from .npy and .pb files");
  }
  DLA_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  return npy ? ParseNpy(file->bytes(), path) : ParseTensorProto(file->bytes(), path);
}

Status WriteTensor(const std::string& path, const Tensor& tensor) {
  if (path.ends_with(".npy")) return WriteFile(path, EncodeNpy(tensor));
  if (path.ends_with(".pb")) return WriteFile(path, EncodeTensorProto(tensor));
  return Usage(path, ": tensors are written to .npy and .pb files");
}

Result<std::vector<Tensor>> ReadDataSet(const std::string& folder, const std::string& prefix) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    return IoError(folder, ": there is no such folder");
  }
  std::vector<Tensor> tensors;
  while (true) {
    const std::string path = Concat(folder, "/", prefix, "_", tensors.size(), ".pb");
    if (!std::filesystem::exists(path, ignored)) return tensors;
    DLA_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(path));
    tensors.push_back(std::move(tensor));
  }
}

}  // namespace dla
