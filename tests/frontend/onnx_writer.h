// Writes small ONNX files in tests, valid and broken.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "frontend/onnx_proto.h"

namespace dla::frontend {

// A file in a new temporary folder that is removed with the object.
class TemporaryModel {
 public:
  explicit TemporaryModel(const onnx::ModelProto& model);
  explicit TemporaryModel(const std::string& bytes);
  ~TemporaryModel();
  TemporaryModel(const TemporaryModel&) = delete;
  TemporaryModel& operator=(const TemporaryModel&) = delete;

  const std::string& path() const { return path_; }
  // Writes another file beside the model.
  void AddFile(const std::string& name, const std::string& bytes) const;

 private:
  std::string folder_, path_;
};

// y = Relu(x) with x of the dimensions given: numbers, or names of free dimensions ("" for none).
onnx::ModelProto ReluModel(const std::vector<std::string>& dims, int opset = 17);

// Adds nodes, initializers and attributes.
onnx::NodeProto* AddNode(onnx::ModelProto* model, const std::string& op, const std::string& name,
                         const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs);
onnx::TensorProto* AddFloats(onnx::ModelProto* model, const std::string& name,
                             const std::vector<int64_t>& dims, const std::vector<float>& values);
void AddInts(onnx::NodeProto* node, const std::string& name, const std::vector<int64_t>& values);

}  // namespace dla::frontend
