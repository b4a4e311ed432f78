#include "tests/frontend/onnx_writer.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace dla::frontend {
namespace {

void SetType(onnx::ValueInfoProto* value, const std::string& name) {
  value->set_name(name);
  value->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
}

}  // namespace

TemporaryModel::TemporaryModel(const std::string& bytes) {
  std::string pattern = (std::filesystem::temp_directory_path() / "dla_onnx_XXXXXX").string();
  folder_ = mkdtemp(pattern.data());
  path_ = folder_ + "/model.onnx";
  AddFile("model.onnx", bytes);
}

TemporaryModel::TemporaryModel(const onnx::ModelProto& model)
    : TemporaryModel(model.SerializeAsString()) {}

TemporaryModel::~TemporaryModel() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

void TemporaryModel::AddFile(const std::string& name, const std::string& bytes) const {
  std::ofstream file(folder_ + "/" + name, std::ios::binary);
  file << bytes;
}

onnx::ModelProto ReluModel(const std::vector<std::string>& dims, int opset) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(opset);
  onnx::GraphProto* graph = model.mutable_graph();
  graph->set_name("test");
  SetType(graph->add_input(), "x");
  onnx::TensorShapeProto* shape =
      graph->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const std::string& dim : dims) {
    onnx::TensorShapeProto::Dimension* d = shape->add_dim();
    const bool number = !dim.empty() && std::all_of(dim.begin(), dim.end(),
                                                    [](char c) { return c >= '0' && c <= '9'; });
    if (number) {
      d->set_dim_value(std::stoll(dim));
    } else if (!dim.empty()) {
      d->set_dim_param(dim);
    }
  }
  AddNode(&model, "Relu", "relu", {"x"}, {"y"});
  SetType(graph->add_output(), "y");
  return model;
}

onnx::NodeProto* AddNode(onnx::ModelProto* model, const std::string& op, const std::string& name,
                         const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs) {
  onnx::NodeProto* node = model->mutable_graph()->add_node();
  node->set_op_type(op);
  node->set_name(name);
  for (const std::string& input : inputs) node->add_input(input);
  for (const std::string& output : outputs) node->add_output(output);
  return node;
}

onnx::TensorProto* AddFloats(onnx::ModelProto* model, const std::string& name,
                             const std::vector<int64_t>& dims, const std::vector<float>& values) {
  onnx::TensorProto* tensor = model->mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  for (const int64_t dim : dims) tensor->add_dims(dim);
  for (const float value : values) tensor->add_float_data(value);
  return tensor;
}

void AddInts(onnx::NodeProto* node, const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto* attribute = node->add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (const int64_t value : values) attribute->add_ints(value);
}

}  // namespace dla::frontend
