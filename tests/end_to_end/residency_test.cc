// Residency policies on the bundled models: every plan is executed.
#include <gtest/gtest.h>

#include <algorithm>

#include "scheduler/explain_residency.h"
#include "scheduler/pins.h"
#include "tests/end_to_end/compile_run.h"

namespace dla::testing {
namespace {

using scheduler::ResidencyPolicy;

Compiled MustCompile(const Bundled& model, const CompileOptions& options) {
  CompileOptions with_dims = options;
  with_dims.import = model.import;
  Result<Compiled> compiled = CompileModel(BundledPath(model.name, "model.onnx"), with_dims);
  EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  return compiled.ok() ? std::move(*compiled) : Compiled{};
}

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
  const auto why = scheduler::ExplainResidency(pinned->graph, pinned->schedule, name);
  ASSERT_TRUE(why.ok());
  EXPECT_NE(why->find("stays in 'pool'"), std::string::npos);

  const scheduler::Pins wrong = {.hold = {{"no such value", "pool"}}};
  options.schedule.pins = &wrong;
  const auto refused = CompileModel(BundledPath(model.name, "model.onnx"), options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), ErrorCode::kUsage);
  EXPECT_FALSE(scheduler::ParsePins(R"({"hold": [{"value": "x"}]})").ok());
  EXPECT_FALSE(scheduler::ExplainResidency(pinned->graph, pinned->schedule, "no such").ok());
}

}  // namespace
}  // namespace dla::testing
