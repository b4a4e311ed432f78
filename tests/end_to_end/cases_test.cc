// The small models of tests/data/cases through the whole product: compiled for one target or
// another, executed with every check, against what ONNX Runtime gave.
#include <gtest/gtest.h>

#include "tests/end_to_end/compile_run.h"
#include "tests/frontend/stored_cases.h"

namespace dla::testing {
namespace {

constexpr const char* kTargets[] = {"edge32",  "edge32-unified", "onsram",   "tpu256",
                                    "meta-df", "edge32-ws",      "edge32-is"};

TEST(Cases, MatchOnnxRuntimeAndThePrediction) {
  size_t number = 0;
  for (const std::string& name : StoredCases()) {
    const std::string target = kTargets[number++ % std::size(kTargets)];
    SCOPED_TRACE(Concat(name, " on ", target));
    const Result<Compiled> compiled =
        CompileModel(StoredCasePath(name, "model.onnx"), {.target = target});
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    std::vector<dla::Tensor> inputs;
    for (const auto& [input, t] : ReadTensors(StoredCasePath(name, "inputs.npz"))) {
      inputs.push_back({input, t.type, t.shape, t.bytes});
    }
    const Result<Outcome> outcome = RunCompiled(*compiled, inputs, {.check = true});
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    ExpectAsPredicted(*compiled, outcome->result);
    Tensors got;
    for (const auto& [output, t] : outcome->outputs) got[output] = {t.type, t.shape, t.bytes};
    ExpectClose(ReadTensors(StoredCasePath(name, "expected.npz")), got, 1e-4F);
  }
  EXPECT_GT(number, 800U);
}

}  // namespace
}  // namespace dla::testing
