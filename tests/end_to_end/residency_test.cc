// Residency policies on the bundled models: every plan is executed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "scheduler/explain_residency.h"
#include "scheduler/pins.h"
#include "scheduler/report.h"
#include "scheduler/traffic_bound.h"
#include "tests/end_to_end/compile_run.h"

namespace dla::testing {
namespace {

using scheduler::ResidencyPolicy;

// none >= one-step >= best >= bound, none >= onsram >= best >= infinite; counts as predicted, every
// byte right.
TEST(Residency, PoliciesAreOrderedAndRunAsPredicted) {
  for (const Bundled& model : {BundledModels()[1]}) {
    const auto inputs = ReadNpz(BundledPath(model.name, "inputs.npz"));
    ASSERT_TRUE(inputs.ok());
    for (const char* target : {"edge32", "onsram"}) {
      SCOPED_TRACE(model.name + " on " + target);
      std::map<ResidencyPolicy, int64_t> bytes;
      for (const ResidencyPolicy policy :
           {ResidencyPolicy::kNone, ResidencyPolicy::kOneStep, ResidencyPolicy::kOnsram,
            ResidencyPolicy::kBest, ResidencyPolicy::kInfinite}) {
        CompileOptions options = {.target = target};
        options.schedule.objective = scheduler::Objective::kTraffic;
        options.schedule.residency = policy;
        const Compiled compiled = MustCompile(model, options);
        if (policy != ResidencyPolicy::kInfinite) {  // shadows of 1 GiB take long
          const Result<Outcome> outcome = RunCompiled(compiled, *inputs, {.check = true});
          ASSERT_TRUE(outcome.ok()) << outcome.status().message();
          ExpectAsPredicted(compiled, outcome->result);
        }
        bytes[policy] = Totals(compiled.schedule).dram_bus_bytes();
        EXPECT_LE(compiled.schedule.residency.bound.dram_bytes,
                  Totals(compiled.schedule).dram_bytes());
      }
      EXPECT_GE(bytes[ResidencyPolicy::kNone], bytes[ResidencyPolicy::kOneStep]);
      EXPECT_GE(bytes[ResidencyPolicy::kOneStep], bytes[ResidencyPolicy::kBest]);
      EXPECT_GE(bytes[ResidencyPolicy::kNone], bytes[ResidencyPolicy::kOnsram]);
      EXPECT_GE(bytes[ResidencyPolicy::kOnsram], bytes[ResidencyPolicy::kBest]);
      EXPECT_GE(bytes[ResidencyPolicy::kBest], bytes[ResidencyPolicy::kInfinite]);
    }
  }
}

TEST(Residency, PinsAreHeldOrRefused) {
  const Bundled model = BundledModels()[1];
  const Compiled planned = MustCompile(model, {.target = "onsram"});
  ASSERT_FALSE(planned.schedule.residents.empty());
  const ir::ValueId root = planned.schedule.residents[0].root;
  const std::string name = planned.graph.values[static_cast<size_t>(root)].name;
  const auto pins =
      scheduler::ParsePins(R"({"hold": [{"value": ")" + name + R"(", "memory": "pool"}]})");
  ASSERT_TRUE(pins.ok()) << pins.status().message();
  CompileOptions options = {.import = model.import, .target = "onsram"};
  options.schedule.residency = ResidencyPolicy::kNone;
  options.schedule.pins = &*pins;
  const auto pinned = CompileModel(BundledPath(model.name, "model.onnx"), options);
  ASSERT_TRUE(pinned.ok()) << pinned.status().message();
  ASSERT_EQ(pinned->schedule.residents.size(), 1U);
  EXPECT_EQ(pinned->schedule.residents[0].root, root);
  const auto why = scheduler::ExplainResidency(pinned->schedule, name);
  ASSERT_TRUE(why.ok());
  EXPECT_NE(why->find("stays in 'pool'"), std::string::npos);

  const scheduler::Pins wrong = {.hold = {{"no such value", "pool"}}};
  options.schedule.pins = &wrong;
  const auto refused = CompileModel(BundledPath(model.name, "model.onnx"), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), ErrorCode::kUsage);
  EXPECT_FALSE(scheduler::ParsePins(R"({"hold": [{"value": "x"}]})").ok());
  EXPECT_FALSE(scheduler::ExplainResidency(pinned->schedule, "no such").ok());
}

// More scratchpad never makes the bound worse, and explanations say what steps of it give.
TEST(Residency, ExplainsWhatMoreWouldGive) {
  const Bundled model = BundledModels()[1];
  CompileOptions options = {.import = model.import, .target = "edge32"};
  options.schedule.cascades = false;
  const Compiled compiled = MustCompile(model, options);
  bool gives = false;
  for (const scheduler::Resident& resident : compiled.schedule.residents) {
    int64_t before = compiled.schedule.residency.bound.dram_bytes;
    for (int64_t more = 0; more <= 4; ++more) {
      const scheduler::BoundWithMore bound =
          scheduler::BoundTrafficWithMore(compiled.schedule, more * 65536, resident.root);
      EXPECT_TRUE(more != 0 || bound.dram_bytes == before);
      EXPECT_LE(bound.dram_bytes, before);
      EXPECT_GE(bound.held, 0);
      EXPECT_LE(bound.held, 1);
      gives = gives || bound.dram_bytes < before;
      before = bound.dram_bytes;
    }
    const auto text = scheduler::ExplainResidency(
        compiled.schedule, compiled.graph.values[static_cast<size_t>(resident.root)].name);
    ASSERT_TRUE(text.ok());
    EXPECT_NE(text->find("with 262144 bytes more: any residency moves at least "),
              std::string::npos)
        << *text;
  }
  EXPECT_TRUE(gives);
}

bool Touches(const machine::OperandDesc& operand, int memory, int64_t begin, int64_t end) {
  return operand.memory == memory && operand.address < end &&
         operand.address + operand.ring_slots * operand.slot_bytes > begin;
}

// Nothing lies in a reserved region, wherever it is; what is impossible is refused with the reason.
TEST(Residency, ReservedRegionsStayFree) {
  const Bundled model = BundledModels()[1];
  const auto inputs = ReadNpz(BundledPath(model.name, "inputs.npz"));
  const auto expected = ReadNpz(BundledPath(model.name, "expected.npz"));
  ASSERT_TRUE(inputs.ok() && expected.ok());
  CompileOptions options = {.import = model.import, .target = "edge32"};
  for (const auto& [address, bytes] :
       {std::pair<int64_t, int64_t>{0, 5000}, {60001, 5535}, {20000, 16000}, {1, 1}}) {
    SCOPED_TRACE(Concat(bytes, " bytes at ", address));
    const scheduler::Pins pins = {
        .reserve = {{"input", address, bytes}, {"weight", address, bytes}}};
    options.schedule.pins = &pins;
    const auto compiled = CompileModel(BundledPath(model.name, "model.onnx"), options);
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    EXPECT_EQ(compiled->program.target.memories[0].bytes, 65536);
    bool used = false;
    for (const machine::Group& group : compiled->program.groups) {
      for (const machine::OperandDesc& operand : group.operands) {
        EXPECT_FALSE(Touches(operand, 0, address, address + bytes)) << group.name;
        EXPECT_FALSE(Touches(operand, 1, address, address + bytes)) << group.name;
        used = used || operand.memory == 0;
      }
    }
    EXPECT_TRUE(used);
    const auto outcome = RunCompiled(*compiled, *inputs, {.check = true});
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    ExpectAsPredicted(*compiled, outcome->result);
    for (const Tensor& tensor : *expected) {
      EXPECT_LT(RelativeError(outcome->outputs.at(tensor.name), tensor), 1e-5);
    }
  }
  const std::pair<scheduler::ReservedRegion, const char*> wrong[] = {
      {{"nowhere", 0, 1}, "there is no such scratchpad"},
      {{"input", 65530, 7}, "the scratchpad has 65536 bytes"},
      {{"input", 0, 65536}, "nothing is left of 'input'"},
      {{"weight", 0, 65520}, "beside the reserved regions: does not fit"}};
  for (const auto& [region, why] : wrong) {
    const scheduler::Pins pins = {.reserve = {region}};
    options.schedule.pins = &pins;
    const auto refused = CompileModel(BundledPath(model.name, "model.onnx"), options);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.status().message().find(why), std::string::npos)
        << refused.status().message();
  }
  EXPECT_FALSE(scheduler::ParsePins(R"({"reserve": [{"memory": "input", "bytes": 5}]})").ok());
  EXPECT_FALSE(
      scheduler::ParsePins(R"({"reserve": [{"memory": "a", "address": -1, "bytes": 5}]})").ok());
}

// The parts of a concatenation that stays begin wherever the part before ends, here after 300
// bytes: only the whole is aligned.
TEST(Residency, PartsOfAConcatenationStayUnaligned) {
  Tensor x = {"x", ElementType::kF32, {1, 3, 5, 5}, std::vector<uint8_t>(300)};
  std::vector<float> values(75);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(i * 7 % 23) - 11) / 4;
  }
  std::memcpy(x.bytes.data(), values.data(), x.bytes.size());
  for (const char* target : {"edge32", "edge32-unified", "onsram", "tpu256", "meta-df"}) {
    SCOPED_TRACE(target);
    const Result<Compiled> compiled =
        CompileModel(DLA_SOURCE_DIR "/tests/data/models/odd_concat.onnx", {.target = target});
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    EXPECT_FALSE(compiled->schedule.residents.empty());
    const Result<Outcome> outcome = RunCompiled(*compiled, {x}, {.check = true});
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    ExpectAsPredicted(*compiled, outcome->result);
    std::vector<float> y(50);
    const Tensor& output = outcome->outputs.at("y");
    ASSERT_EQ(output.bytes.size(), 200U);
    std::memcpy(y.data(), output.bytes.data(), 200);
    constexpr float kWeights[] = {1, 2, 3, -1, 0.5F, 4};
    for (size_t i = 0; i < 25; ++i) {
      float sum = 0;
      for (size_t c = 0; c < 3; ++c) {
        sum += kWeights[c] * std::max(values[c * 25 + i], 0.0F) +
               kWeights[c + 3] * std::fabs(values[c * 25 + i]);
      }
      EXPECT_EQ(y[i], sum) << i;
      EXPECT_EQ(y[25 + i], -sum) << i;
    }
  }
}

// --explain: a node's mapping, a value's place, and a clear word where there is neither. --report
// csv: a header and a row a group.
TEST(Report, ExplainsNodesAndValues) {
  const Result<Compiled> compiled =
      CompileModel(DLA_SOURCE_DIR "/tests/data/models/odd_concat.onnx", {.target = "onsram"});
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  const auto node = scheduler::Explain(compiled->schedule, "conv");
  ASSERT_TRUE(node.ok()) << node.status().message();
  EXPECT_NE(node->find("(Conv)"), std::string::npos) << *node;
  EXPECT_NE(node->find("vector 'c': stays whole in pool"), std::string::npos) << *node;
  const Compiled model = MustCompile(BundledModels()[1], {});
  for (const scheduler::ScheduledGroup& group : model.schedule.groups) {
    const auto explained = scheduler::Explain(model.schedule, group.name);
    ASSERT_TRUE(explained.ok()) << explained.status().message();
    EXPECT_EQ(explained->find("partial sums: ") != std::string::npos,
              group.nest.anchor == ir::Anchor::kContraction)
        << *explained;
  }
  const auto value = scheduler::Explain(compiled->schedule, "c");
  ASSERT_TRUE(value.ok()) << value.status().message();
  EXPECT_NE(value->find("stays in 'pool'"), std::string::npos) << *value;
  const auto neither = scheduler::Explain(compiled->schedule, "no such");
  ASSERT_FALSE(neither.ok());
  EXPECT_EQ(neither.status().code(), ErrorCode::kUsage);
  const std::string csv = scheduler::ReportCsv(compiled->schedule);
  EXPECT_EQ(static_cast<size_t>(std::count(csv.begin(), csv.end(), '\n')),
            compiled->schedule.groups.size() + 1);
  const std::string text = scheduler::ReportText(compiled->schedule, 2);
  EXPECT_NE(text.find("groups worth attention"), std::string::npos) << text;
}

}  // namespace
}  // namespace dla::testing
