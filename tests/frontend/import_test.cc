// What the importer accepts and what it says when it does not.
#include "frontend/import.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "ir/evaluate.h"
#include "ir/tensor.h"
#include "ir/verifier.h"
#include "tests/frontend/onnx_writer.h"

namespace dla::frontend {
namespace {

struct Outcome {
  ErrorCode code = ErrorCode::kOk;
  std::string message;  // without the path
  ir::Graph graph;
};

Outcome Import(const TemporaryModel& file, const ImportOptions& options = {}) {
  const Result<ir::Graph> result = ImportOnnx(file.path(), options);
  Outcome outcome;
  if (result.ok()) {
    outcome.graph = *result;
    EXPECT_EQ(ir::VerifyFaults(*result), std::vector<std::string>());
    return outcome;
  }
  outcome.code = result.status().code();
  outcome.message = result.status().message();
  const std::string prefix = file.path() + ": ";
  for (size_t at = 0; (at = outcome.message.find(prefix)) != std::string::npos;) {
    outcome.message.erase(at, prefix.size());
  }
  return outcome;
}

Outcome Import(const onnx::ModelProto& model, const ImportOptions& options = {}) {
  const TemporaryModel file(model);
  return Import(file, options);
}

TEST(Import, FreeDimensionsNameTheFlags) {
  const auto free = Import(ReluModel({"N", "3", ""}));
  EXPECT_EQ(free.code, ErrorCode::kUnsupported);
  EXPECT_EQ(free.message,
            "input 'x': dimension 0 ('N') is free: --dim N=VALUE\n"
            "input 'x': dimension 2 is free: --shape x=?x3x?");
  const auto bound = Import(ReluModel({"N", "3"}), {.dims = {{"N", 2}}});
  ASSERT_EQ(bound.code, ErrorCode::kOk) << bound.message;
  EXPECT_EQ(bound.graph.values[0].shape, (ir::Shape{2, 3}));
  const auto shaped = Import(ReluModel({"N", ""}), {.shapes = {{"x", {4, 5}}}});
  ASSERT_EQ(shaped.code, ErrorCode::kOk) << shaped.message;
  EXPECT_EQ(shaped.graph.values[0].shape, (ir::Shape{4, 5}));
}

TEST(Import, WrongFlags) {
  const auto fail = [](const ImportOptions& options) {
    const Outcome outcome = Import(ReluModel({"N", "3"}), options);
    EXPECT_EQ(outcome.code, ErrorCode::kUsage);
    return outcome.message;
  };
  EXPECT_EQ(fail({.dims = {{"M", 2}}}), "--dim M: no input has a dimension of this name");
  EXPECT_EQ(fail({.dims = {{"N", -1}}}), "--dim N=-1: a size is 0 or more");
  EXPECT_EQ(fail({.shapes = {{"z", {1}}}}), "--shape z: there is no such input");
  EXPECT_EQ(fail({.shapes = {{"x", {1}}}}), "--shape x=1: input 'x' has rank 2");
  EXPECT_EQ(fail({.shapes = {{"x", {1, 4}}}}),
            "--shape x=1x4: dimension 1 of input 'x' is fixed at 3");
  EXPECT_EQ(fail({.dims = {{"N", 2}}, .shapes = {{"x", {1, 3}}}}),
            "--shape x=1x3: dimension 'N' is 2 by --dim N");
}

TEST(Import, AllProblemsAtOnce) {
  onnx::ModelProto model = ReluModel({"1", "2", "8", "8"});
  AddFloats(&model, "w", {1, 2, 1, 1}, {1, 2});
  onnx::NodeProto* conv = AddNode(&model, "Conv", "conv1", {"x", "w"}, {"c"});
  AddInts(conv, "dilations", {1, 1, 1});
  AddNode(&model, "Relu", "after", {"c"}, {"r"});  // not reported: its operand's node is
  AddNode(&model, "Frobnicate", "", {"x"}, {"f"});
  AddNode(&model, "Fancy", "custom", {"x"}, {"g"})->set_domain("my.ops");
  AddNode(&model, "Add", "lonely", {"x"}, {"l"});
  AddNode(&model, "Neg", "ghostly", {"ghost"}, {"n"});
  AddNode(&model, "Neg", "twice", {"x"}, {"y"});
  AddNode(&model, "HardSwish", "ok", {"x"}, {"h"});
  const auto outcome = Import(model);
  EXPECT_EQ(outcome.code, ErrorCode::kMalformed);
  EXPECT_EQ(
      outcome.message,
      "node 'conv1' (Conv, opset 17): attribute 'dilations' has 3 entries, the input has 2 spatial "
      "axes\n"
      "node 'f' (Frobnicate, opset 17): the operator is not supported\n"
      "node 'custom' (my.ops.Fancy, opset 17): the operator is not supported\n"
      "node 'lonely' (Add, opset 17): it has 1 inputs; 2 to 2 are possible\n"
      "node 'ghostly' (Neg, opset 17): its input 'ghost' is not defined before it\n"
      "node 'twice' (Neg, opset 17): its result 'y' has a name that is taken");
}

TEST(Import, UnsupportedAloneIsUnsupported) {
  onnx::ModelProto model = ReluModel({"4"});
  AddNode(&model, "LSTM", "lstm", {"x"}, {"z"});
  EXPECT_EQ(Import(model).code, ErrorCode::kUnsupported);
  for (int i = 0; i < 200; ++i) {
    AddNode(&model, "LSTM", "more", {"x"}, {"z" + std::to_string(i)});
  }
  const std::string message = Import(model).message;
  EXPECT_LT(message.size(), 6000u);
  EXPECT_NE(message.find("and 151 more"), std::string::npos);
}

TEST(Import, Opsets) {
  EXPECT_EQ(Import(ReluModel({"4"}, 99)).message, "opset 99 is not supported, only 1 to 23");
  EXPECT_EQ(Import(ReluModel({"4"}, 999)).code, ErrorCode::kUnsupported);
  EXPECT_EQ(Import(ReluModel({"4"}, 7)).code, ErrorCode::kOk);
  onnx::ModelProto model = ReluModel({"4"}, 13);
  AddNode(&model, "HardSwish", "h", {"x"}, {"z"});
  EXPECT_EQ(Import(model).message,
            "node 'h' (HardSwish, opset 13): the operator exists since opset 14");
}

TEST(Import, OperatorSetsOfOtherDomains) {
  onnx::ModelProto model = ReluModel({"4"});
  model.clear_opset_import();
  EXPECT_EQ(Import(model).code, ErrorCode::kMalformed);
  EXPECT_EQ(Import(model).message, "the model imports no operator set");

  auto* import = model.add_opset_import();
  import->set_domain("my.ops");
  import->set_version(1);
  EXPECT_EQ(Import(model).code, ErrorCode::kMalformed);
  EXPECT_NE(Import(model).message.find("the model imports no version of the ONNX operators"),
            std::string::npos);

  model.mutable_graph()->mutable_node(0)->set_domain("my.ops");
  EXPECT_EQ(Import(model).code, ErrorCode::kUnsupported);
}

TEST(Import, DamagedFiles) {
  const auto code = [](const std::string& bytes) {
    const TemporaryModel file(bytes);
    return Import(file).code;
  };
  EXPECT_EQ(code(""), ErrorCode::kMalformed);
  EXPECT_EQ(code("{\"not\": \"a model\"}"), ErrorCode::kMalformed);
  EXPECT_EQ(code(std::string(4096, '\0')), ErrorCode::kMalformed);
  const std::string good = ReluModel({"4"}).SerializeAsString();
  EXPECT_EQ(code(good), ErrorCode::kOk);
  EXPECT_EQ(code(good.substr(0, good.size() / 2)), ErrorCode::kMalformed);
  EXPECT_EQ(ImportOnnx("/does/not/exist.onnx", {}).status().code(), ErrorCode::kIo);
}

TEST(Import, EveryPrefixAndFlippedByteIsSurvived) {
  onnx::ModelProto model = ReluModel({"1", "2", "4", "4"});
  AddFloats(&model, "w", {1, 2, 1, 1}, {1, 2});
  AddNode(&model, "Conv", "conv", {"x", "w"}, {"c"});
  const std::string good = model.SerializeAsString();
  int accepted = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x55);
    const TemporaryModel flipped(bad), cut(good.substr(0, i));
    for (const TemporaryModel* file : {&flipped, &cut}) {
      const Result<ir::Graph> result = ImportOnnx(file->path(), {});
      if (!result.ok()) {
        EXPECT_FALSE(result.status().message().empty());
      } else {
        ++accepted;
        EXPECT_TRUE(ir::VerifyFaults(*result).empty());
      }
    }
  }
  EXPECT_GT(accepted, 0);  // names may change
}

TEST(Import, InitializersOfTheWrongSize) {
  onnx::ModelProto model = ReluModel({"4"});
  AddFloats(&model, "w", {3}, {1, 2});
  EXPECT_EQ(Import(model).message,
            "initializer 'w': the shape 3 of f32 takes 12 bytes, the data has 8");
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, -3);
  EXPECT_EQ(Import(model).message, "initializer 'w': the shape -3 is not possible");
  model.mutable_graph()->mutable_initializer(0)->set_dims(0, int64_t{1} << 62);
  model.mutable_graph()->mutable_initializer(0)->add_dims(4);
  EXPECT_EQ(Import(model).code, ErrorCode::kMalformed);
}

TEST(Import, WeightsAreNotCopied) {
  onnx::ModelProto model = ReluModel({"1000"});
  AddFloats(&model, "w", {1000}, std::vector<float>(1000, 1.0f));
  onnx::TensorProto* raw = AddFloats(&model, "v", {1000}, {});
  raw->set_raw_data(std::string(4000, '\1'));
  AddNode(&model, "Add", "add", {"y", "w"}, {"p"});
  AddNode(&model, "Mul", "mul", {"p", "v"}, {"z"});
  model.mutable_graph()->mutable_output(0)->set_name("z");
  const auto outcome = Import(model);
  ASSERT_EQ(outcome.code, ErrorCode::kOk) << outcome.message;
  std::set<const void*> owners;
  int constants = 0;
  for (const ir::Value& value : outcome.graph.values) {
    if (value.constant == nullptr) continue;
    ++constants;
    owners.insert(value.constant->owner.get());
  }
  // Both belong to one owner, the message; copies would have one each.
  EXPECT_EQ(constants, 2);
  EXPECT_EQ(owners.size(), 1u);
}

std::string FloatBytes(const std::vector<float>& values) {
  std::string bytes(values.size() * 4, '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

onnx::ModelProto ExternalModel(const std::string& location, const std::string& offset) {
  onnx::ModelProto model = ReluModel({"2"});
  onnx::TensorProto* tensor = AddFloats(&model, "w", {2}, {});
  tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  const std::pair<std::string, std::string> entries[] = {{"location", location},
                                                         {"offset", offset}};
  for (const auto& [key, value] : entries) {
    onnx::StringStringEntryProto* entry = tensor->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  AddNode(&model, "Add", "add", {"x", "w"}, {"z"});
  model.mutable_graph()->mutable_output(0)->set_name("z");
  return model;
}

TEST(Import, ExternalData) {
  for (const char* offset : {"8", "5"}) {  // aligned or not
    const TemporaryModel file(ExternalModel("weights.bin", offset));
    file.AddFile("weights.bin",
                 std::string(static_cast<size_t>(std::atoi(offset)), 'x') + FloatBytes({1.5f, -2}));
    const auto outcome = Import(file);
    ASSERT_EQ(outcome.code, ErrorCode::kOk) << outcome.message;
    const auto result = ir::Evaluate(outcome.graph, {{"x", ir::Tensor::Floats({2}, {1, 1})}});
    ASSERT_TRUE(result.ok());
    EXPECT_EQ(result->at("z").ToFloats(), (std::vector<float>{2.5f, -1}));
  }
}

TEST(Import, ExternalDataStaysInItsFolder) {
  const auto message = [](const std::string& location, const std::string& offset) {
    const TemporaryModel file(ExternalModel(location, offset));
    file.AddFile("weights.bin", FloatBytes({1, 2}));
    return Import(file).message;
  };
  EXPECT_EQ(
      message("../weights.bin", "0"),
      "initializer 'w': external data: location '../weights.bin' leaves the folder of the model");
  EXPECT_NE(message("/dev/zero", "0").find("leaves the folder"), std::string::npos);
  EXPECT_EQ(message("weights.bin", "4"),
            "initializer 'w': external data: 'weights.bin' has 8 bytes; 8 are wanted at offset 4");
  EXPECT_EQ(message("weights.bin", "-4"),
            "initializer 'w': external data: offset is '-4', not a number of bytes");
  EXPECT_NE(message("missing.bin", "0").find("missing.bin"), std::string::npos);
}

TEST(Import, ConstantNodesOfAllForms) {
  onnx::ModelProto model = ReluModel({"2"});
  const auto constant = [&](const std::string& name, auto set) {
    onnx::AttributeProto* attribute = AddNode(&model, "Constant", "", {}, {name})->add_attribute();
    set(attribute);
  };
  constant("a", [](onnx::AttributeProto* a) {
    a->set_name("value_float");
    a->set_type(onnx::AttributeProto::FLOAT);
    a->set_f(0.5f);
  });
  constant("b", [](onnx::AttributeProto* a) {
    a->set_name("value_floats");
    a->set_type(onnx::AttributeProto::FLOATS);
    a->add_floats(1);
    a->add_floats(2);
  });
  constant("c", [](onnx::AttributeProto* a) {
    a->set_name("value_ints");
    a->set_type(onnx::AttributeProto::INTS);
    a->add_ints(2);
    a->add_ints(1);
  });
  AddNode(&model, "Mul", "mul", {"y", "a"}, {"p"});
  AddNode(&model, "Add", "add", {"p", "b"}, {"q"});
  AddNode(&model, "Reshape", "reshape", {"q", "c"}, {"z"});
  model.mutable_graph()->mutable_output(0)->set_name("z");
  const auto outcome = Import(model);
  ASSERT_EQ(outcome.code, ErrorCode::kOk) << outcome.message;
  const ir::Value& z = outcome.graph.values[ir::Idx(outcome.graph.outputs[0])];
  EXPECT_EQ(z.name, "z");
  EXPECT_EQ(z.shape, (ir::Shape{2, 1}));
}

// Equal parts are counted with those that nobody names.
TEST(Import, SplitCountsPartsWithoutAName) {
  onnx::ModelProto model = ReluModel({"6"}, 12);
  AddNode(&model, "Split", "", {"y"}, {"a", "b", ""});
  model.mutable_graph()->mutable_output(0)->set_name("b");
  const auto outcome = Import(model);
  ASSERT_EQ(outcome.code, ErrorCode::kOk) << outcome.message;
  EXPECT_EQ(outcome.graph.values[ir::Idx(outcome.graph.outputs[0])].shape, ir::Shape{2});
}

// Outputs that no kernel entry meets are the bias, whose type may be another one in a broken model.
TEST(Import, ConvTransposeOfOperandsOfSeveralTypes) {
  for (const char* columns : {"0", "2"}) {
    for (const int type : {onnx::TensorProto::FLOAT, onnx::TensorProto::UINT8,
                           onnx::TensorProto::FLOAT16, onnx::TensorProto::DOUBLE}) {
      SCOPED_TRACE(testing::Message() << columns << " columns of type " << type);
      onnx::ModelProto model = ReluModel({"1"});
      onnx::GraphProto* graph = model.mutable_graph();
      onnx::ValueInfoProto* picture = graph->add_input();
      picture->set_name("picture");
      picture->mutable_type()->mutable_tensor_type()->set_elem_type(type);
      *picture->mutable_type()->mutable_tensor_type()->mutable_shape() =
          ReluModel({"1", "1", "2", columns}).graph().input(0).type().tensor_type().shape();
      AddFloats(&model, "w", {1, 1, 2, 2}, {1, 2, 3, 4});
      AddFloats(&model, "b", {1}, {5});
      onnx::NodeProto* node = AddNode(&model, "ConvTranspose", "up", {"picture", "w", "b"}, {"z"});
      AddInts(node, "output_shape", {9, 9});
      AddInts(node, "strides", {3, 3});
      graph->add_output()->set_name("z");
      const auto outcome = Import(model);
      if (type == onnx::TensorProto::FLOAT) {
        EXPECT_EQ(outcome.code, ErrorCode::kOk) << outcome.message;
      } else {
        EXPECT_EQ(outcome.code, ErrorCode::kUnsupported) << outcome.message;
      }
    }
  }
}

// A name can be listed once, be it an input's, a constant's or that of a result.
TEST(Import, OutputsListedTwice) {
  for (const char* name : {"x", "y"}) {
    onnx::ModelProto model = ReluModel({"2"});
    onnx::GraphProto* graph = model.mutable_graph();
    graph->clear_output();
    for (int i = 0; i < 3; ++i) graph->add_output()->set_name(name);
    const auto outcome = Import(model);
    EXPECT_EQ(outcome.code, ErrorCode::kUnsupported) << name;
    EXPECT_NE(outcome.message.find("listed twice"), std::string::npos) << outcome.message;
  }
}

// An input without elements that is an output keeps its name at both ends.
TEST(Import, AnEmptyInputMayBeAnOutput) {
  onnx::ModelProto model = ReluModel({"0"});
  model.mutable_graph()->add_output()->set_name("x");
  const auto outcome = Import(model);
  ASSERT_EQ(outcome.code, ErrorCode::kOk) << outcome.message;
  const ir::Graph& graph = outcome.graph;
  ASSERT_EQ(graph.inputs.size(), 1U);
  ASSERT_EQ(graph.outputs.size(), 2U);
  EXPECT_EQ(graph.values[ir::Idx(graph.inputs[0])].name, "x");
  EXPECT_EQ(graph.values[ir::Idx(graph.outputs[1])].name, "x");
}

// Results without a name are absent: no later node can read them, and there may be many.
TEST(Import, ResultsWithoutANameAreAbsent) {
  onnx::ModelProto model = ReluModel({"2"});
  for (int i = 0; i < 2; ++i) {
    onnx::AttributeProto* value = AddNode(&model, "Constant", "", {}, {""})->add_attribute();
    value->set_name("value_float");
    value->set_type(onnx::AttributeProto::FLOAT);
    value->set_f(1);
    AddNode(&model, "Relu", "", {"x"}, {""});
  }
  const TemporaryModel file(model);
  const auto graph = ImportOnnx(file.path(), {});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->outputs.size(), 1U);
}

TEST(Import, InitializersListedAsInputsAreConstants) {
  onnx::ModelProto model = ReluModel({"2"});
  AddFloats(&model, "w", {2}, {1, 2});
  *model.mutable_graph()->add_input() = model.graph().input(0);
  model.mutable_graph()->mutable_input(1)->set_name("w");
  AddNode(&model, "Add", "add", {"y", "w"}, {"z"});
  model.mutable_graph()->mutable_output(0)->set_name("z");
  const auto outcome = Import(model);
  ASSERT_EQ(outcome.code, ErrorCode::kOk) << outcome.message;
  EXPECT_EQ(outcome.graph.inputs.size(), 1u);
}

TEST(Import, TinyFilesDoNotMakeHugeConstants) {
  onnx::ModelProto model = ReluModel({"2"});
  onnx::TensorProto* shape = model.mutable_graph()->add_initializer();
  shape->set_name("s");
  shape->set_data_type(onnx::TensorProto::INT64);
  shape->add_dims(1);
  shape->add_int64_data(int64_t{1} << 39);
  AddNode(&model, "ConstantOfShape", "fill", {"s"}, {"f"});
  const auto outcome = Import(model);
  EXPECT_EQ(outcome.message,
            "node 'fill' (ConstantOfShape, opset 17): a constant of shape 549755813888 takes more "
            "than 268435456 bytes");
}

}  // namespace
}  // namespace dla::frontend
