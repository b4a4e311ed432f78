// Compile and run in one process, for end-to-end tests: what dlac and dlarun do, without files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/import.h"
#include "ir/graph.h"
#include "machine/program.h"
#include "runtime/emulator.h"
#include "scheduler/schedule.h"
#include "scheduler/scheduler.h"
#include "support/tensor_file.h"

namespace dla::testing {

struct Compiled {
  ir::Graph graph;
  scheduler::Schedule schedule;
  machine::Program program;  // verified, with constants
};

struct CompileOptions {
  frontend::ImportOptions import;
  std::string target = "edge32";
  std::optional<machine::Target> machine;  // instead of a target by name
  std::vector<std::string> memories;       // as --mem
  scheduler::ScheduleOptions schedule;
  bool fuse = true;
  ElementType precision = ElementType::kF32;
};

// Imports, runs all passes, schedules, emits and verifies.
Result<Compiled> CompileModel(const std::string& path, const CompileOptions& options);

// The same for a graph in ONNX form.
Result<Compiled> CompileGraph(ir::Graph graph, const CompileOptions& options);

// The bundled models and the dimensions that they need.
struct Bundled {
  std::string name;
  frontend::ImportOptions import;
};
std::vector<Bundled> BundledModels();
std::string BundledPath(const std::string& name, const std::string& file);
// Compiles it with the dimensions that it needs; a gtest failure where that fails.
Compiled MustCompile(const Bundled& model, const CompileOptions& options);

// Runs on tensors by name; the outputs by name.
struct Outcome {
  std::map<std::string, Tensor> outputs;
  runtime::RunResult result;
};
Result<Outcome> RunCompiled(const Compiled& compiled, const std::vector<Tensor>& inputs,
                            const runtime::RunOptions& options);

// The pattern inputs of a graph, as a run takes them.
std::vector<Tensor> PatternTensors(const ir::Graph& graph);

// Runs with --check, and again with jitter: gtest failures unless counters are as predicted, both
// give the same bits, these are within 1e-5 of the reference evaluator, and the program's text is
// the program. The first run's outcome.
Outcome ExpectRuns(const Compiled& compiled, uint64_t jitter, int64_t repeat = 1);

// Written to schedule.json and given back, a schedule of the graph is the same: gtest failures
// unless groups, slices, cascades and counts are.
void ExpectComesBack(const ir::Graph& graph, CompileOptions options,
                     const scheduler::Schedule& schedule);

// The sum of AdditiveCost over the groups, as they run beside one another.
double CostOf(const scheduler::Schedule& schedule);

// Largest |a - b| relative to the largest |b| of a tensor of f32.
double RelativeError(const Tensor& actual, const Tensor& expected);

// 10 log10 of the power of `expected` over that of the difference, in dB, of tensors of f32.
double SignalToNoise(const Tensor& actual, const Tensor& expected);

// gtest failures where any counter of any group differs from its prediction.
void ExpectAsPredicted(const Compiled& compiled, const runtime::RunResult& result);

}  // namespace dla::testing
