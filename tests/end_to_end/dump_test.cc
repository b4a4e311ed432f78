// What a run shows of its inside: values by their ONNX names, and what each engine did when.
#include "runtime/dump.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <set>

#include "ir/evaluate.h"
#include "ir/pass.h"
#include "runtime/trace.h"
#include "support/file.h"
#include "tests/end_to_end/compile_run.h"

namespace dla::testing {
namespace {

// Every value that lies somewhere, on chip or in DRAM, is what the evaluator computes before
// anything is folded, fused or laid out.
TEST(Dump, ValuesAreThoseOfTheModel) {
  for (const Bundled& model : BundledModels()) {
    auto graph = frontend::ImportOnnx(BundledPath(model.name, "model.onnx"), model.import);
    const auto inputs = ReadNpz(BundledPath(model.name, "inputs.npz"));
    ASSERT_TRUE(graph.ok() && inputs.ok());
    ASSERT_TRUE(ir::RunPasses(&*graph, {.stop_after = "canonicalise"}).ok());
    std::map<std::string, ir::Tensor> wanted_inputs;
    for (const Tensor& tensor : *inputs) {
      wanted_inputs[tensor.name] = {tensor.type, tensor.shape, tensor.bytes};
    }
    const auto wanted = ir::Evaluate(*graph, wanted_inputs, {.all_values = true});
    ASSERT_TRUE(wanted.ok()) << wanted.status().message();
    for (const bool fuse : {true, false}) {
      for (const char* target : {"edge32", "onsram"}) {
        SCOPED_TRACE(Concat(model.name, " on ", target, fuse ? " fused" : " not fused"));
        const Compiled compiled = MustCompile(model, {.target = target, .fuse = fuse});
        const auto dump = runtime::FindValues(compiled.program, {"all"});
        ASSERT_TRUE(dump.ok());
        const auto outcome = RunCompiled(compiled, *inputs, {.dump = *dump});
        ASSERT_TRUE(outcome.ok()) << outcome.status().message();
        ASSERT_EQ(outcome->result.dumped.size(), dump->size());
        int64_t on_chip = 0;
        for (size_t i = 0; i < dump->size(); ++i) {
          const machine::ValueDesc& desc = compiled.program.values[(*dump)[i]];
          const Tensor& value = outcome->result.dumped[i];
          const ir::Tensor& expected = wanted->at(desc.name);
          on_chip += desc.place == machine::ValuePlace::kMemory ? 1 : 0;
          ASSERT_EQ(value.shape, expected.shape) << desc.name;
          ASSERT_EQ(value.type, expected.type) << desc.name;
          if (value.type != ElementType::kF32) continue;
          EXPECT_LE(
              RelativeError(value, {desc.name, expected.type, expected.shape, expected.bytes}),
              1e-4)
              << desc.name;
        }
        // Most survive even when fused, and some of them on chip only.
        EXPECT_GT(2 * dump->size(), compiled.schedule.groups.size());
        EXPECT_GT(on_chip, 0);
        EXPECT_EQ(runtime::CountFusedAway(compiled.program),
                  static_cast<int64_t>(compiled.program.values.size() - dump->size()));
      }
    }
  }
}

TEST(Dump, SaysWhyAValueCannotBeShown) {
  const Compiled compiled = MustCompile(BundledModels()[0], {});
  std::string fused;
  for (const machine::ValueDesc& value : compiled.program.values) {
    if (value.place == machine::ValuePlace::kNowhere && value.group >= 0) fused = value.name;
  }
  ASSERT_FALSE(fused.empty());
  const auto found =
      runtime::FindValues(compiled.program, {fused, compiled.program.inputs[0].name, "no such"});
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.status().code(), ErrorCode::kUsage);
  const std::string& message = found.status().message();
  EXPECT_NE(message.find("value '" + fused + "' of node '"), std::string::npos) << message;
  EXPECT_NE(message.find("was fused into group '"), std::string::npos) << message;
  EXPECT_NE(message.find("is an input of the program"), std::string::npos) << message;
  EXPECT_NE(message.find("'no such' is not computed by any node"), std::string::npos) << message;
}

// The events of an engine follow one another without a gap from the program's start to its end, and
// add up to the counters.
TEST(Trace, EventsTileTheTimeOfEachEngine) {
  const Bundled model = BundledModels()[1];
  const auto inputs = ReadNpz(BundledPath(model.name, "inputs.npz"));
  ASSERT_TRUE(inputs.ok());
  const Compiled compiled = MustCompile(model, {});
  std::array<int64_t, machine::kEngineCount> now{}, busy{};
  int64_t events = 0;
  runtime::RunOptions options;
  options.trace = [&](const runtime::TraceEvent& event) {
    const auto e = static_cast<size_t>(event.engine);
    EXPECT_EQ(event.begin, now[e]);
    EXPECT_LT(event.begin, event.end);
    now[e] = event.end;
    if (!event.stall) busy[e] += event.end - event.begin;
    ++events;
  };
  const auto outcome = RunCompiled(compiled, *inputs, options);
  ASSERT_TRUE(outcome.ok());
  EXPECT_GT(events, 1000);
  for (size_t e = 0; e < now.size(); ++e) {
    EXPECT_EQ(now[e], outcome->result.total.counters.cycles);
    EXPECT_EQ(busy[e], outcome->result.total.engines[e].busy);
  }
}

TEST(Trace, FileIsJsonWithNodeNames) {
  const Bundled model = BundledModels()[1];
  const Compiled compiled = MustCompile(model, {});
  const std::string path = ::testing::TempDir() + "dla_" + std::to_string(getpid()) + "_trace.json";
  auto trace = runtime::TraceFile::Create(path, compiled.program);
  ASSERT_TRUE(trace.ok());
  runtime::RunOptions options = {.mode = runtime::Mode::kTimed};
  options.trace = [&](const runtime::TraceEvent& event) { (*trace)->Add(event); };
  const auto result = runtime::Run(compiled.program, options, {});
  ASSERT_TRUE(result.ok() && (*trace)->Commit(*result, 1).ok());
  const auto text = ReadTextFile(path);
  ASSERT_TRUE(text.ok());
  const auto json = nlohmann::json::parse(*text);
  // Groups alone and cascades, as one entry each, have every node and all the time.
  std::map<std::string, int> nodes;
  double total = 0;
  for (const auto& event : json) {
    const std::string kind = event.value("cat", "");
    if (kind != "group" && kind != "cascade") continue;
    total += event["dur"].get<double>();
    for (const auto& node : event["args"]["nodes"]) ++nodes[node];
  }
  std::map<std::string, std::set<int>> entries;  // of each node: one a slice of its group
  int entry = 0;
  for (size_t g = 0; g < compiled.program.groups.size(); ++g) {
    const machine::Group& group = compiled.program.groups[g];
    const bool goes_on =
        g > 0 && group.cascade >= 0 && group.cascade == compiled.program.groups[g - 1].cascade;
    if (!goes_on) ++entry;
    for (const std::string& node : group.onnx_nodes) entries[node].insert(entry);
  }
  for (const auto& [node, in] : entries) {
    EXPECT_EQ(nodes[node], static_cast<int>(in.size())) << node;
  }
  EXPECT_NEAR(total, static_cast<double>(result->total.counters.cycles) / 1000, 1e-3);
  unlink(path.c_str());
}

}  // namespace
}  // namespace dla::testing
