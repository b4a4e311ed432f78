// The bundled networks on all targets: ONNX Runtime's stored outputs, the reference evaluator, and
// every counter of every group as predicted.
#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/emit.h"
#include "ir/evaluate.h"
#include "machine/assembly.h"
#include "machine/verifier.h"
#include "scheduler/schedule_json.h"
#include "tests/end_to_end/compile_run.h"

namespace dla::testing {
namespace {

class Models : public ::testing::TestWithParam<std::string> {};

std::vector<Tensor> MustRead(const Bundled& model, const std::string& file) {
  Result<std::vector<Tensor>> tensors = ReadNpz(BundledPath(model.name, file));
  EXPECT_TRUE(tensors.ok()) << tensors.status().message();
  return tensors.ok() ? *tensors : std::vector<Tensor>{};
}

TEST_P(Models, MatchOnnxRuntimeAndThePrediction) {
  for (const Bundled& model : BundledModels()) {
    for (const bool fuse : {true, false}) {
      SCOPED_TRACE(model.name + (fuse ? " fused" : " unfused"));
      const Compiled compiled = MustCompile(model, {.target = GetParam(), .fuse = fuse});
      const Result<Outcome> outcome =
          RunCompiled(compiled, MustRead(model, "inputs.npz"), {.check = true});
      ASSERT_TRUE(outcome.ok()) << outcome.status().message();
      for (const Tensor& expected : MustRead(model, "expected.npz")) {
        ASSERT_EQ(outcome->outputs.count(expected.name), 1U);
        EXPECT_LT(RelativeError(outcome->outputs.at(expected.name), expected), 1e-5);
      }
      ExpectAsPredicted(compiled, outcome->result);
    }
  }
}

// Invariant 3: the machine computes what the IR means.
TEST_P(Models, MatchTheReferenceEvaluator) {
  for (const Bundled& model : BundledModels()) {
    const Compiled compiled = MustCompile(model, {.target = GetParam()});
    const std::vector<Tensor> inputs = MustRead(model, "inputs.npz");
    std::map<std::string, ir::Tensor> by_name;
    for (const Tensor& input : inputs) by_name[input.name] = {input.type, input.shape, input.bytes};
    const auto evaluated = ir::Evaluate(compiled.graph, by_name);
    ASSERT_TRUE(evaluated.ok()) << evaluated.status().message();
    const Result<Outcome> outcome = RunCompiled(compiled, inputs, {});
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    ASSERT_FALSE(evaluated->empty());
    for (const auto& [name, value] : *evaluated) {
      const Tensor expected = {name, value.type, value.shape, value.bytes};
      EXPECT_LT(RelativeError(outcome->outputs.at(name), expected), 1e-5) << name;
    }
  }
}

// --precision f16: half-precision values between groups, 40 dB and more from the f32 answer, and
// the machine rounds where the evaluator does. (Sums in another order may round the other way:
// 2^-11 of a value, a few times over.)
TEST_P(Models, HalfPrecision) {
  for (const Bundled& model : BundledModels()) {
    for (const bool fuse : {true, false}) {
      SCOPED_TRACE(model.name + (fuse ? " fused" : " unfused"));
      const Compiled compiled =
          MustCompile(model, {.target = GetParam(), .fuse = fuse, .precision = ElementType::kF16});
      const std::vector<Tensor> inputs = MustRead(model, "inputs.npz");
      const Result<Outcome> outcome = RunCompiled(compiled, inputs, {.check = true});
      ASSERT_TRUE(outcome.ok()) << outcome.status().message();
      ExpectAsPredicted(compiled, outcome->result);
      std::map<std::string, ir::Tensor> by_name;
      for (const Tensor& input : inputs) {
        by_name[input.name] = {input.type, input.shape, input.bytes};
      }
      const auto evaluated = ir::Evaluate(compiled.graph, by_name);
      ASSERT_TRUE(evaluated.ok()) << evaluated.status().message();
      for (const Tensor& expected : MustRead(model, "expected.npz")) {
        const Tensor& actual = outcome->outputs.at(expected.name);
        EXPECT_GT(SignalToNoise(actual, expected), 40) << expected.name;
        const ir::Tensor& value = evaluated->at(expected.name);
        EXPECT_LT(RelativeError(actual, {"", value.type, value.shape, value.bytes}), 4e-3);
      }
    }
  }
}

// Invariant 6: delays change no value.
TEST_P(Models, JitterChangesNoValue) {
  const Bundled model = BundledModels()[1];
  const Compiled compiled = MustCompile(model, {.target = GetParam()});
  const std::vector<Tensor> inputs = MustRead(model, "inputs.npz");
  const Result<Outcome> steady = RunCompiled(compiled, inputs, {});
  ASSERT_TRUE(steady.ok());
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Result<Outcome> jittered = RunCompiled(compiled, inputs, {.check = true, .jitter = seed});
    ASSERT_TRUE(jittered.ok()) << jittered.status().message();
    for (const auto& [name, tensor] : steady->outputs) {
      EXPECT_EQ(jittered->outputs.at(name).bytes, tensor.bytes) << "seed " << seed;
    }
  }
}

// Invariant 7: same input and options, same bytes; the text form assembles back.
TEST_P(Models, RoundTrips) {
  for (const Bundled& model : BundledModels()) {
    const Compiled first = MustCompile(model, {.target = GetParam()});
    const Compiled second = MustCompile(model, {.target = GetParam()});
    EXPECT_EQ(scheduler::ScheduleJson(first.schedule), scheduler::ScheduleJson(second.schedule));
    const std::string text = machine::Disassemble(first.program);
    EXPECT_EQ(text, machine::Disassemble(second.program));
    const Result<machine::Program> assembled = machine::Assemble(text);
    ASSERT_TRUE(assembled.ok()) << assembled.status().message();
    EXPECT_TRUE(assembled->groups == first.program.groups);
    EXPECT_TRUE(assembled->regions == first.program.regions);
    EXPECT_TRUE(assembled->predicted == first.program.predicted);
    EXPECT_TRUE(assembled->target == first.program.target);
  }
}

std::string SuiteName(const ::testing::TestParamInfo<std::string>& parameter) {
  std::string name = parameter.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Targets, Models,
                         ::testing::Values("edge32", "edge32-unified", "edge32-ideal",
                                           "edge32-ideal-unified", "edge32-ws", "edge32-is",
                                           "onsram", "tpu256", "meta-df"),
                         SuiteName);

}  // namespace
}  // namespace dla::testing
