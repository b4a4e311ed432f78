// The stored cases with one number replaced by an extreme one: an attribute, an entry of a small
// constant, an extent of an input. Each is refused with a message, or is a graph that the verifier
// accepts after every pass (broken invariants stop the test; sanitisers see overflows).
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <random>
#include <sstream>

#include "frontend/import.h"
#include "ir/pass.h"
#include "tests/frontend/onnx_writer.h"
#include "tests/frontend/stored_cases.h"

namespace dla::frontend {
namespace {

constexpr int64_t kIntegers[] = {std::numeric_limits<int64_t>::min(),
                                 -(int64_t{1} << 31) - 1,
                                 -1,
                                 0,
                                 1,
                                 (int64_t{1} << 31) - 1,
                                 int64_t{1} << 31,
                                 int64_t{1} << 32,
                                 int64_t{1} << 62,
                                 std::numeric_limits<int64_t>::max()};
constexpr float kFloats[] = {std::numeric_limits<float>::quiet_NaN(),
                             std::numeric_limits<float>::infinity(),
                             -std::numeric_limits<float>::max(),
                             std::numeric_limits<float>::denorm_min(),
                             -1,
                             0};

onnx::ModelProto ReadModel(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes.str())) << path;
  return model;
}

// Every model that differs from the given one in one number, as it stands in place.
class Extremes {
 public:
  Extremes(onnx::ModelProto* model, std::function<void()> visit)
      : model_(*model), visit_(std::move(visit)) {}

  void Run() {
    for (auto& node : *model_.mutable_graph()->mutable_node()) {
      for (auto& attribute : *node.mutable_attribute()) Attribute(&attribute);
    }
    for (auto& tensor : *model_.mutable_graph()->mutable_initializer()) Constant(&tensor);
    for (auto& input : *model_.mutable_graph()->mutable_input()) {
      for (auto& dim :
           *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
        const int64_t old = dim.dim_value();
        for (const int64_t value : kIntegers) {
          dim.set_dim_value(value);
          visit_();
        }
        dim.set_dim_value(old);
      }
    }
  }

 private:
  void Attribute(onnx::AttributeProto* attribute) {
    const onnx::AttributeProto old = *attribute;
    if (old.type() == onnx::AttributeProto::INT) {
      for (const int64_t value : kIntegers) {
        attribute->set_i(value);
        visit_();
      }
    } else if (old.type() == onnx::AttributeProto::FLOAT) {
      for (const float value : kFloats) {
        attribute->set_f(value);
        visit_();
      }
    }
    for (int i = 0; i < old.ints_size(); ++i) {
      for (const int64_t value : kIntegers) {
        attribute->set_ints(i, value);
        visit_();
      }
      attribute->set_ints(i, old.ints(i));
    }
    *attribute = old;
  }

  template <typename T, size_t kCount>
  void Entries(onnx::TensorProto* tensor, const T (&values)[kCount]) {
    const std::string old = tensor->raw_data();
    for (size_t at = 0; at + sizeof(T) <= old.size(); at += sizeof(T)) {
      for (const T value : values) {
        std::memcpy(tensor->mutable_raw_data()->data() + at, &value, sizeof(T));
        visit_();
      }
      tensor->set_raw_data(old);
    }
  }

  void Constant(onnx::TensorProto* tensor) {
    if (tensor->raw_data().size() > 64) return;
    if (tensor->data_type() == onnx::TensorProto::INT64) Entries(tensor, kIntegers);
    if (tensor->data_type() == onnx::TensorProto::FLOAT) Entries(tensor, kFloats);
  }

  onnx::ModelProto& model_;
  std::function<void()> visit_;
};

TEST(Import, ExtremeNumbersAreRefusedOrRight) {
  constexpr uint32_t kSeed = 1, kOneOf = 4;
  std::mt19937 random(kSeed);
  int refused = 0, accepted = 0;
  for (const std::string& name : dla::testing::StoredCases()) {
    SCOPED_TRACE(::testing::Message() << name << ", seed " << kSeed);
    onnx::ModelProto model = ReadModel(dla::testing::StoredCasePath(name, "model.onnx"));
    Extremes(&model, [&] {
      if (random() % kOneOf != 0) return;
      const TemporaryModel file(model);
      auto graph = ImportOnnx(file.path(), {});
      if (graph.ok() && ir::RunPasses(&*graph, {}).ok()) {
        ++accepted;
      } else {
        ++refused;
        if (!graph.ok()) {
          EXPECT_GT(graph.status().message().size(), file.path().size() + 2);
        }
      }
    }).Run();
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace dla::frontend
