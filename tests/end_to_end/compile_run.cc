#include "tests/end_to_end/compile_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codegen/emit.h"
#include "codegen/values.h"
#include "ir/evaluate.h"
#include "ir/pass.h"
#include "machine/assembly.h"
#include "machine/target_file.h"
#include "machine/verifier.h"
#include "runtime/named_tensors.h"
#include "scheduler/given_schedule.h"
#include "scheduler/residency.h"
#include "scheduler/schedule_json.h"
#include "tests/ir/graph_builder.h"

namespace dla::testing {

Result<Compiled> CompileModel(const std::string& path, const CompileOptions& options) {
  DLA_ASSIGN_OR_RETURN(ir::Graph graph, frontend::ImportOnnx(path, options.import));
  return CompileGraph(std::move(graph), options);
}

Result<Compiled> CompileGraph(ir::Graph graph, const CompileOptions& options) {
  DLA_ASSIGN_OR_RETURN(machine::Target target, machine::LoadTarget(options.target, {}));
  if (options.machine) target = *options.machine;
  for (const std::string& memory : options.memories) {
    DLA_RETURN_IF_ERROR(machine::OverrideMemory(&target, memory));
  }
  Compiled compiled;
  compiled.graph = std::move(graph);
  const std::vector<ir::ComputedValue> computed = ir::ComputedValues(compiled.graph);
  DLA_RETURN_IF_ERROR(
      ir::RunPasses(&compiled.graph, {.fuse = options.fuse, .precision = options.precision}));
  DLA_ASSIGN_OR_RETURN(compiled.schedule,
                       scheduler::MakeSchedule(compiled.graph, target, options.schedule));
  DLA_ASSIGN_OR_RETURN(compiled.program, codegen::Emit(compiled.schedule));
  compiled.program.values = codegen::DescribeValues(computed, compiled.schedule);
  compiled.program.constants =
      machine::ConstantData::Own(codegen::ConstantSpace(compiled.schedule, compiled.program));
  DLA_RETURN_IF_ERROR(machine::VerifyProgram(compiled.program));
  return compiled;
}

std::vector<Bundled> BundledModels() {
  return {{"blazeface_front", {}},
          {"ppocr_v2_cls",
           {.dims = {{"p2o.DynamicDimension.0", 1},
                     {"p2o.DynamicDimension.1", 48},
                     {"p2o.DynamicDimension.2", 192}}}}};
}

std::string BundledPath(const std::string& name, const std::string& file) {
  return std::string(DLA_SOURCE_DIR) + "/models/" + name + "/" + file;
}

Result<Outcome> RunCompiled(const Compiled& compiled, const std::vector<Tensor>& inputs,
                            const runtime::RunOptions& options) {
  DLA_ASSIGN_OR_RETURN(const std::vector<Tensor> matched,
                       runtime::MatchInputs(compiled.program, inputs));
  DLA_ASSIGN_OR_RETURN(runtime::RunResult result, runtime::Run(compiled.program, options, matched));
  Outcome outcome;
  for (const Tensor& output : result.outputs) outcome.outputs[output.name] = output;
  outcome.result = std::move(result);
  return outcome;
}

Compiled MustCompile(const Bundled& model, const CompileOptions& options) {
  CompileOptions with_dims = options;
  with_dims.import = model.import;
  Result<Compiled> compiled = CompileModel(BundledPath(model.name, "model.onnx"), with_dims);
  EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  return compiled.ok() ? std::move(*compiled) : Compiled{};
}

std::vector<Tensor> PatternTensors(const ir::Graph& graph) {
  std::vector<Tensor> tensors;
  for (const auto& [name, t] : ir::PatternInputs(graph)) {
    tensors.push_back({name, t.type, t.shape, t.bytes});
  }
  return tensors;
}

Outcome ExpectRuns(const Compiled& compiled, uint64_t jitter, int64_t repeat) {
  const auto back = machine::Assemble(machine::Disassemble(compiled.program));
  EXPECT_TRUE(back.ok() && back->groups == compiled.program.groups) << back.status().message();
  const auto expected = ir::Evaluate(compiled.graph, ir::PatternInputs(compiled.graph));
  const std::vector<Tensor> inputs = PatternTensors(compiled.graph);
  Result<Outcome> checked = RunCompiled(compiled, inputs, {.check = true, .repeat = repeat});
  const Result<Outcome> delayed =
      RunCompiled(compiled, inputs, {.check = true, .jitter = jitter, .repeat = repeat});
  for (const Status& status : {expected.status(), checked.status(), delayed.status()}) {
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) return {};
  }
  ExpectAsPredicted(compiled, checked->result);
  for (const auto& [name, tensor] : checked->outputs) {
    const ir::Tensor& value = expected->at(name);
    EXPECT_LE(RelativeError(tensor, {name, value.type, value.shape, value.bytes}), 1e-5) << name;
    EXPECT_EQ(tensor.bytes, delayed->outputs.at(name).bytes) << name;
  }
  return std::move(*checked);
}

void ExpectComesBack(const ir::Graph& graph, CompileOptions options,
                     const scheduler::Schedule& schedule) {
  const auto given = scheduler::ParseGivenSchedule(scheduler::ScheduleJson(schedule));
  ASSERT_TRUE(given.ok()) << given.status().message();
  options.schedule.given = &*given;
  const Result<Compiled> back = CompileGraph(graph, options);
  ASSERT_TRUE(back.ok()) << back.status().message();
  ASSERT_EQ(back->schedule.groups.size(), schedule.groups.size());
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    EXPECT_EQ(back->schedule.groups[g].name, schedule.groups[g].name);
    EXPECT_EQ(back->schedule.groups[g].cascade, schedule.groups[g].cascade);
  }
  EXPECT_EQ(back->schedule.slicings, schedule.slicings);
  EXPECT_EQ(back->schedule.cascades.size(), schedule.cascades.size());
  EXPECT_TRUE(Totals(back->schedule) == Totals(schedule));
}

double CostOf(const scheduler::Schedule& schedule) {
  double cost = 0;
  for (const scheduler::ScheduledGroup& group : schedule.groups) {
    cost +=
        scheduler::AdditiveCost(group.predicted, group.nest, schedule.target, schedule.objective);
  }
  return cost;
}

double RelativeError(const Tensor& actual, const Tensor& expected) {
  if (actual.shape != expected.shape || actual.type != expected.type) return INFINITY;
  double largest = 0;
  double error = 0;
  for (size_t i = 0; i + 4 <= expected.bytes.size(); i += 4) {
    float a = 0;
    float e = 0;
    std::memcpy(&a, actual.bytes.data() + i, 4);
    std::memcpy(&e, expected.bytes.data() + i, 4);
    if (std::isnan(a) != std::isnan(e)) return INFINITY;
    error = std::max(error, std::fabs(static_cast<double>(a) - static_cast<double>(e)));
    largest = std::max(largest, std::fabs(static_cast<double>(e)));
  }
  return error / std::max(largest, 1e-12);
}

double SignalToNoise(const Tensor& actual, const Tensor& expected) {
  if (actual.shape != expected.shape || actual.type != expected.type) return -INFINITY;
  double signal = 0;
  double noise = 0;
  for (size_t i = 0; i + 4 <= expected.bytes.size(); i += 4) {
    float a = 0;
    float e = 0;
    std::memcpy(&a, actual.bytes.data() + i, 4);
    std::memcpy(&e, expected.bytes.data() + i, 4);
    signal += static_cast<double>(e) * static_cast<double>(e);
    noise += (static_cast<double>(a) - static_cast<double>(e)) *
             (static_cast<double>(a) - static_cast<double>(e));
  }
  return 10 * std::log10(signal / noise);
}

void ExpectAsPredicted(const Compiled& compiled, const runtime::RunResult& result) {
  ASSERT_EQ(result.groups.size(), compiled.schedule.groups.size());
  for (size_t g = 0; g < result.groups.size(); ++g) {
    const machine::Counters& counted = result.groups[g].counters;
    const machine::Counters& predicted = compiled.schedule.groups[g].predicted;
    SCOPED_TRACE("group " + compiled.schedule.groups[g].name);
    EXPECT_EQ(counted.cycles, predicted.cycles);
    EXPECT_EQ(counted.dram_bytes(), predicted.dram_bytes());
    EXPECT_EQ(counted.dram_bus_bytes(), predicted.dram_bus_bytes());
    EXPECT_TRUE(counted == predicted);
  }
}

}  // namespace dla::testing
