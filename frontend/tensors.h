// TensorProto -> constant: all the ways in which ONNX stores elements.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "frontend/onnx_proto.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "support/status.h"

namespace dla {
class MappedFile;
}

namespace dla::frontend {

// The element type of an ONNX number; kUnsupported for strings and complex numbers, kMalformed for
// numbers that are none.
Result<ElementType> TypeOfNumber(int number);

struct ImportedTensor {
  ir::TensorType type;
  std::shared_ptr<const ir::Constant> constant;
};

// Reads tensors of one model. Elements are not copied where their stored form is the wanted one:
// constants then refer to the message (kept alive by `owner`) or to a mapped external file.
class TensorReader {
 public:
  TensorReader(std::string model_path, std::shared_ptr<const void> owner)
      : model_path_(std::move(model_path)), owner_(std::move(owner)) {}

  Result<ImportedTensor> Read(const onnx::TensorProto& tensor);
  // A tensor of zeros with some elements given, by number or by coordinates.
  Result<ImportedTensor> ReadSparse(const onnx::SparseTensorProto& tensor);

 private:
  Result<std::shared_ptr<const ir::Constant>> ReadExternal(const onnx::TensorProto& tensor,
                                                           const ir::TensorType& type);
  Result<std::shared_ptr<const ir::Constant>> ReadFields(const onnx::TensorProto& tensor,
                                                         const ir::TensorType& type);
  std::shared_ptr<const ir::Constant> Refer(const void* bytes, int64_t size_bytes) const;

  std::string model_path_;
  std::shared_ptr<const void> owner_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;  // by location
};

}  // namespace dla::frontend
