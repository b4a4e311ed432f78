// `--buffers`: with every rule a model computes the same and costs what is predicted.
#include <gtest/gtest.h>

#include "scheduler/mapping_fault.h"
#include "scheduler/report.h"
#include "tests/end_to_end/compile_run.h"

namespace dla::testing {
namespace {

using scheduler::BufferRule;

constexpr BufferRule kRules[] = {BufferRule::kBest, BufferRule::kSingle, BufferRule::kInputsDouble,
                                 BufferRule::kDouble};

void CompileAndRun(const Bundled& model, const std::string& target, BufferRule rule,
                   int64_t* cycles) {
  SCOPED_TRACE(Concat(model.name, " on ", target, " ", BufferRuleName(rule)));
  CompileOptions options = {.import = model.import, .target = target};
  options.schedule.objective = scheduler::Objective::kLatency;
  options.schedule.residency = scheduler::ResidencyPolicy::kNone;
  options.schedule.search.buffers = rule;
  const auto compiled = CompileModel(BundledPath(model.name, "model.onnx"), options);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  EXPECT_EQ(scheduler::OtherBuffers(compiled->schedule), "");
  for (const scheduler::ScheduledGroup& group : compiled->schedule.groups) {
    EXPECT_TRUE(KeepsTo(rule, group.nest, group.mapping)) << group.name;
  }
  const auto inputs = ReadNpz(BundledPath(model.name, "inputs.npz"));
  const auto expected = ReadNpz(BundledPath(model.name, "expected.npz"));
  ASSERT_TRUE(inputs.ok() && expected.ok());
  const auto outcome = RunCompiled(*compiled, *inputs, {.check = true, .jitter = 1});
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  for (const Tensor& tensor : *expected) {
    EXPECT_LT(RelativeError(outcome->outputs.at(tensor.name), tensor), 1e-5);
  }
  const auto timed = RunCompiled(*compiled, *inputs, {.mode = runtime::Mode::kTimed});
  ASSERT_TRUE(timed.ok()) << timed.status().message();
  ExpectAsPredicted(*compiled, timed->result);
  *cycles = timed->result.total.counters.cycles;
}

TEST(Buffers, AllRulesRunAsPredictedAndTheBestIsNoSlower) {
  for (const Bundled& model : BundledModels()) {
    for (const char* target : {"edge32", "edge32-unified", "onsram"}) {
      int64_t best = 0;
      for (const BufferRule rule : kRules) {
        int64_t cycles = 0;
        CompileAndRun(model, target, rule, &cycles);
        if (rule == BufferRule::kBest) best = cycles;
        EXPECT_LE(best, cycles) << model.name << " on " << target << " " << BufferRuleName(rule);
      }
    }
  }
}

// Group by group, with nothing on chip between them: what is proven best is no worse than what any
// rule finds. (`balanced` has another limit of cycles with each rule.)
TEST(Buffers, NoRuleBetterThanTheBestByAnyObjective) {
  using scheduler::Objective;
  int compared = 0;
  for (const Objective objective :
       {Objective::kLatency, Objective::kTraffic, Objective::kEnergy, Objective::kEdp}) {
    CompileOptions options = {.import = BundledModels()[1].import};
    options.schedule.objective = objective;
    options.schedule.residency = scheduler::ResidencyPolicy::kNone;
    options.schedule.multiply = scheduler::MultiplyBy::kArray;
    const Compiled best = MustCompile(BundledModels()[1], options);
    for (const BufferRule rule : kRules) {
      options.schedule.search.buffers = rule;
      const Compiled other = MustCompile(BundledModels()[1], options);
      ASSERT_EQ(other.schedule.groups.size(), best.schedule.groups.size());
      for (size_t g = 0; g < best.schedule.groups.size(); ++g) {
        const scheduler::ScheduledGroup& group = best.schedule.groups[g];
        if (!group.certificate.proven) continue;
        const double value = scheduler::ValueOf(group, best.schedule);
        EXPECT_LE(value, (1 + 1e-9) * ValueOf(other.schedule.groups[g], other.schedule))
            << group.name << " " << ObjectiveName(objective) << " " << BufferRuleName(rule);
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 500);
}

}  // namespace
}  // namespace dla::testing
