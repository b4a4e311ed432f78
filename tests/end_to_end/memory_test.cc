// Scratchpads of other sizes: small ones still run, too small ones are refused with sizes that
// work.
#include <gtest/gtest.h>

#include <regex>

#include "tests/end_to_end/compile_run.h"

namespace dla::testing {
namespace {

std::vector<std::string> AllAt(const std::string& target, const std::string& size) {
  if (target == "edge32-unified") return {"pool=" + size};
  return {"input=" + size, "weight=" + size, "output=" + size};
}

// Compiles, runs with --check, compares with ONNX Runtime.
void MustMatch(const Bundled& model, CompileOptions options) {
  options.import = model.import;
  const Result<Compiled> compiled = CompileModel(BundledPath(model.name, "model.onnx"), options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  const auto inputs = ReadNpz(BundledPath(model.name, "inputs.npz"));
  const auto expected = ReadNpz(BundledPath(model.name, "expected.npz"));
  ASSERT_TRUE(inputs.ok() && expected.ok());
  const Result<Outcome> outcome = RunCompiled(*compiled, *inputs, {.check = true});
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  for (const Tensor& tensor : *expected) {
    EXPECT_LT(RelativeError(outcome->outputs.at(tensor.name), tensor), 1e-5) << tensor.name;
  }
  ExpectAsPredicted(*compiled, outcome->result);
}

TEST(Memory, SmallAndLargeScratchpads) {
  for (const Bundled& model : BundledModels()) {
    for (const char* target : {"edge32", "edge32-unified"}) {
      for (const char* size : {"16K", "1M", "8M"}) {
        SCOPED_TRACE(model.name + " " + target + " " + size);
        MustMatch(model, {.target = target, .memories = AllAt(target, size)});
      }
    }
  }
}

// The sizes that a refusal names: every "--mem NAME=BYTES" before and after the semicolon.
std::vector<std::string> Sizes(const std::string& text) {
  static const std::regex kSize("--mem ([^ =]+=[0-9]+)");
  std::vector<std::string> sizes;
  for (std::sregex_iterator it(text.begin(), text.end(), kSize), end; it != end; ++it) {
    sizes.push_back((*it)[1]);
  }
  return sizes;
}

TEST(Memory, TooSmallIsRefusedWithSizesThatWork) {
  const Bundled model = BundledModels()[1];
  for (const auto& [target, bytes] : {std::pair("edge32", "16"), {"edge32-unified", "48"}}) {
    SCOPED_TRACE(target);
    CompileOptions options = {.import = model.import, .target = target};
    options.memories = AllAt(target, bytes);
    const std::string path = BundledPath(model.name, "model.onnx");
    const Result<Compiled> refused = CompileModel(path, options);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), ErrorCode::kDoesNotFit);
    const std::string& message = refused.status().message();
    const size_t scale = message.find("all scratchpads times");
    ASSERT_NE(scale, std::string::npos) << message;
    // Each size alone, on top of the others as they are.
    for (const std::string& size : Sizes(message.substr(0, scale))) {
      CompileOptions alone = options;
      alone.memories.push_back(size);
      EXPECT_TRUE(CompileModel(path, alone).ok()) << size;
    }
    CompileOptions scaled = options;
    for (const std::string& size : Sizes(message.substr(scale))) scaled.memories.push_back(size);
    EXPECT_GT(scaled.memories.size(), options.memories.size());
    MustMatch(model, scaled);
  }
}

}  // namespace
}  // namespace dla::testing
