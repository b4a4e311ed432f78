// dlac: ONNX model in, program for the accelerator out.
//
// Arguments in, printing out: everything else is a library call. Exit codes: support/status.h.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cinttypes>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/command_line.h"
#include "cmd/dlac_map.h"
#include "cmd/dlac_options.h"
#include "cmd/dlac_plan.h"
#include "codegen/emit.h"
#include "codegen/values.h"
#include "frontend/import.h"
#include "ir/op.h"
#include "ir/pass.h"
#include "ir/text.h"
#include "machine/program_file.h"
#include "machine/target_file.h"
#include "machine/verifier.h"
#include "scheduler/mapping_cache.h"
#include "scheduler/predict.h"
#include "scheduler/report.h"
#include "scheduler/schedule_json.h"
#include "scheduler/scheduler.h"
#include "support/file.h"
#include "support/tensor_file.h"

namespace dla {
namespace {

// Runs the passes; with --dump-dir writes the graph after each as NN_PASS.txt.
Status RunAllPasses(const Options& o, ir::Graph* graph) {
  DLA_ASSIGN_OR_RETURN(ir::PassOptions options, PassOptionsOf(o));
  Status dumped;
  int number = 0;
  if (!o.dump_dir.empty()) {
    std::error_code error;
    std::filesystem::create_directories(o.dump_dir, error);
    if (error) return IoError(o.dump_dir, ": cannot be made: ", error.message());
    options.dump = [&](std::string_view name, const ir::Graph& g) {
      char prefix[8];
      std::snprintf(prefix, sizeof(prefix), "%02d_", number++);
      const std::string path = o.dump_dir + "/" + prefix + std::string(name) + ".txt";
      if (dumped.ok()) dumped = WriteTextFile(path, ir::PrintGraph(g));
    };
  }
  DLA_RETURN_IF_ERROR(ir::RunPasses(graph, options).At(o.model));
  return dumped;
}

// A file of JSON as `parse` has it.
template <typename Parsed>
Result<Parsed> ReadAs(const std::string& path, Result<Parsed> (*parse)(std::string_view)) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  DLA_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMostBytes));
  Result<Parsed> parsed = parse(text);
  if (!parsed.ok()) return parsed.status().At(path);
  return parsed;
}

void Warn(const std::string& text) {
  std::fputs(Concat("dlac: warning: ", text, "\n").c_str(), stderr);
}

// A cache that cannot be read or written costs time, nothing else.
void CloseCache(const Options& o, scheduler::MappingCache* cache) {
  const Status saved = cache->Save();
  for (const std::string& warning : cache->warnings()) Warn(warning);
  if (!saved.ok()) Warn(saved.message());
  if (!o.verbose) return;
  const scheduler::MappingCache::Use& use = cache->use();
  std::fputs(
      Concat("cache: ", use.found, " mappings taken, ", use.searched, " searched, ", use.adapted,
             " of other sizes tried (", use.illegal, " did not fit as they were)\n")
          .c_str(),
      stderr);
}

Status WritePlanProblem(const Options& o, const ir::Graph& graph, const machine::Target& target,
                        const scheduler::ScheduleOptions& options) {
  const Result<std::string> problem = scheduler::MakePlanProblem(graph, target, options);
  if (!problem.ok()) return problem.status().At(o.model);
  return WriteTextFile(o.plan_problem, *problem);
}

// Is there anything to do for which groups are scheduled?
bool MakesSchedule(const Options& o) {
  return o.check || !o.output.empty() || !o.report.empty() || !o.explain.empty() ||
         !o.schedule.empty();
}

Status Compile(const Options& o) {
  DLA_ASSIGN_OR_RETURN(const frontend::ImportOptions import_options, ImportOptionsOf(o));
  DLA_ASSIGN_OR_RETURN(scheduler::ScheduleOptions options, ScheduleOptionsOf(o));
  scheduler::GivenSchedule given;
  if (!o.use_schedule.empty()) {
    DLA_ASSIGN_OR_RETURN(given, ReadAs(o.use_schedule, scheduler::ParseGivenSchedule));
    options.given = &given;
  }
  std::deque<scheduler::GivenSchedule> starts;
  for (const std::string& path : o.start_from) {
    if (options.given != nullptr) return Usage("--start-from: --use-schedule says what to do");
    DLA_ASSIGN_OR_RETURN(starts.emplace_back(), ReadAs(path, scheduler::ParseGivenSchedule));
    options.starts.push_back(&starts.back());
  }
  scheduler::Pins pins;
  if (!o.pins.empty()) {
    DLA_ASSIGN_OR_RETURN(pins, ReadAs(o.pins, scheduler::ParsePins));
    options.pins = &pins;
  }
  DLA_ASSIGN_OR_RETURN(const machine::Target target, machine::LoadTargetWith(o.target, o.memories));
  DLA_ASSIGN_OR_RETURN(ir::Graph graph, frontend::ImportOnnx(o.model, import_options));
  const std::vector<ir::ComputedValue> computed = ir::ComputedValues(graph);
  DLA_RETURN_IF_ERROR(RunAllPasses(o, &graph));
  if (!o.stop_after.empty()) return Status();
  for (const std::string& text : ir::OverflowingConstants(graph)) Warn(o.model + ": " + text);
  scheduler::MappingCache cache(o.cache, std::string("dlac ") + DLA_VERSION);
  if (!o.cache.empty()) options.cache = &cache;
  if (!o.plan_problem.empty()) {
    DLA_RETURN_IF_ERROR(WritePlanProblem(o, graph, target, options));
    if (!MakesSchedule(o)) {
      if (!o.cache.empty()) CloseCache(o, &cache);
      return Status();
    }
  }
  Result<scheduler::Schedule> schedule = scheduler::MakeSchedule(graph, target, options);
  if (!o.cache.empty()) CloseCache(o, &cache);
  if (!schedule.ok()) return schedule.status().At(o.model);
  if (const std::string other = scheduler::OtherBuffers(*schedule); !other.empty()) {
    Warn(o.model + ": " + other);
  }
  for (const std::string& warning : schedule->warnings) Warn(o.model + ": " + warning);
  std::string explanation;
  if (!o.explain.empty()) {
    DLA_ASSIGN_OR_RETURN(explanation, scheduler::Explain(*schedule, o.explain));
  }
  Result<machine::Program> program = codegen::Emit(*schedule);
  if (!program.ok()) return program.status().At(o.model);
  program->producer = std::string("dlac ") + DLA_VERSION;
  program->command_line = CommandLineOf(o);
  program->values = codegen::DescribeValues(computed, *schedule);
  if (o.check) return Status();
  if (!o.schedule.empty()) {
    DLA_RETURN_IF_ERROR(WriteTextFile(o.schedule, scheduler::ScheduleJson(*schedule)));
  }
  const Status verified = machine::VerifyProgram(*program, machine::ConstantSpaceBytes(*program));
  DLA_CHECK(verified.ok(), "program: ", verified.message());
  if (!o.output.empty()) {
    DLA_RETURN_IF_ERROR(machine::WriteProgram(
        *program, o.output, [&](size_t region, const machine::ByteSink& append) {
          return codegen::AppendConstant(*schedule, region, append);
        }));
  }
  if (o.report == "json") {
    std::fputs(scheduler::ScheduleJson(*schedule).c_str(), stdout);
  } else if (o.report == "text") {
    std::fputs(scheduler::ReportText(*schedule, o.top).c_str(), stdout);
  } else if (o.report == "csv") {
    std::fputs(scheduler::ReportCsv(*schedule).c_str(), stdout);
  }
  std::fputs(explanation.c_str(), stdout);
  if (o.report.empty() && o.explain.empty() && !o.quiet) {
    std::fputs(scheduler::SummaryLine(*schedule).c_str(), stdout);
  }
  return Status();
}

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// All combinations of one value of each "NAME=A,B,...".
Result<std::vector<std::vector<std::string>>> MemoryChoicesOf(const Options& o) {
  std::vector<std::vector<std::string>> choices(1);
  for (const std::string& text : o.memories) {
    DLA_ASSIGN_OR_RETURN(const auto pair, SplitPair("--mem", text));
    std::vector<std::vector<std::string>> longer;
    for (const std::vector<std::string>& choice : choices) {
      for (const std::string& size : SplitAtCommas(pair.second)) {
        longer.push_back(choice);
        longer.back().push_back(Concat(pair.first, "=", size));
      }
    }
    choices = std::move(longer);
  }
  return choices;
}

// A row of the sweep's CSV; one that does not fit has its status instead of figures.
Result<std::string> SweepRow(const ir::Graph& graph, const Options& o) {
  DLA_ASSIGN_OR_RETURN(const machine::Target target, machine::LoadTargetWith(o.target, o.memories));
  DLA_ASSIGN_OR_RETURN(const scheduler::ScheduleOptions options, ScheduleOptionsOf(o));
  std::string row = target.name + ",";
  for (const machine::Memory& memory : target.memories) {
    row += Concat(&memory == target.memories.data() ? "" : " ", memory.name, "=", memory.bytes);
  }
  row += Concat(",", o.optimize, ",");
  const Result<scheduler::Schedule> schedule = scheduler::MakeSchedule(graph, target, options);
  if (!schedule.ok()) {
    if (schedule.status().code() != ErrorCode::kDoesNotFit) return schedule.status();
    return row + "does not fit,,,,,,,,\n";
  }
  const machine::Counters totals = scheduler::Totals(*schedule);
  double energy = 0, value = 0, least = 0;
  for (const scheduler::ScheduledGroup& group : schedule->groups) {
    energy += scheduler::EnergyPj(group.predicted, target, group.nest.operands[0].ReadType());
    value += scheduler::ValueOf(group, *schedule);
    least += group.certificate.least;
  }
  const scheduler::TrafficBound& bound = schedule->residency.bound;
  char numbers[256];
  std::snprintf(numbers, sizeof(numbers), "%.0f,%" PRId64 ",%" PRId64 ",%.6f\n", energy,
                bound.dram_bytes, bound.cycles, least > 0 ? value / least - 1 : 0.0);
  return Concat(row, "ok,", totals.cycles, ",", totals.dram_bytes(), ",", totals.dram_bus_bytes(),
                ",", numbers);
}

// dlac sweep: one model over targets, memory sizes and objectives.
Status Sweep(const Options& o) {
  DLA_ASSIGN_OR_RETURN(const frontend::ImportOptions import_options, ImportOptionsOf(o));
  DLA_ASSIGN_OR_RETURN(const auto memories, MemoryChoicesOf(o));
  DLA_ASSIGN_OR_RETURN(ir::Graph graph, frontend::ImportOnnx(o.model, import_options));
  DLA_RETURN_IF_ERROR(RunAllPasses(o, &graph));
  std::string csv =
      "target,memories,objective,status,cycles,dram_bytes,dram_bus_bytes,energy_pj,"
      "bound_dram_bytes,bound_cycles,mapping_gap\n";
  for (const std::string& target : SplitAtCommas(o.target)) {
    for (const std::vector<std::string>& sizes : memories) {
      for (const std::string& objective : SplitAtCommas(o.optimize)) {
        Options one = o;
        one.target = target;
        one.memories = sizes;
        one.optimize = objective;
        one.quiet = true;
        const Result<std::string> row = SweepRow(graph, one);
        if (!row.ok()) return row.status().At(o.model);
        csv += *row;
      }
    }
  }
  return WriteResult(o.output, csv);
}

void DescribeSweep(CLI::App* app, Options* o) {
  app->add_option("MODEL", o->model, "the ONNX file")->type_name("FILE.onnx")->required();
  app->add_option("-o,--output", o->output, "the CSV to write (default: stdout)")
      ->type_name("FILE.csv");
  app->add_option("--target", o->target, "accelerators, separated by commas (default edge32)")
      ->type_name("NAME|FILE,...");
  app->add_option("--mem", o->memories,
                  "sizes of a scratchpad, separated by commas; all combinations are compiled")
      ->type_name("NAME=BYTES,...");
  app->add_option("--optimize", o->optimize,
                  "objectives, separated by commas: latency, traffic, energy, edp, balanced "
                  "(default)")
      ->type_name("WHAT,...");
  app->add_option("--dim", o->dims, "value of a symbolic dimension")->type_name("NAME=VALUE");
  app->add_option("--shape", o->shapes, "shape of an input")->type_name("INPUT=1x3x224x224");
  app->add_option("--residency", o->residency,
                  "none, one-step, onsram, best (default), exact or infinite")
      ->type_name("POLICY");
  app->add_option("--precision", o->precision, "f32 (default) or f16")->type_name("f32|f16");
  DescribeBuffers(app, o);
  DescribePrefetch(app, o);
}

Status Run(const Options& o) {
  if (o.list_targets) {
    for (const machine::TargetEntry& entry : machine::ListTargets({})) {
      std::printf("%-22s %s\n", entry.name.c_str(), entry.comment.c_str());
    }
    return Status();
  }
  if (!o.print_target.empty()) {
    Options named = o;
    named.target = o.print_target;
    DLA_ASSIGN_OR_RETURN(const machine::Target target,
                         machine::LoadTargetWith(named.target, named.memories));
    std::fputs(machine::TargetJson(target).c_str(), stdout);
    return Status();
  }
  if (o.list_ops) {
    std::fputs(ir::OperatorsMarkdown().c_str(), stdout);
    return Status();
  }
  if (o.model.empty()) return Usage("no model given; usage: dlac MODEL.onnx -o MODEL.bin");
  if (!MakesSchedule(o) && o.stop_after.empty() && o.plan_problem.empty()) {
    return Usage("no output given; add -o ", std::filesystem::path(o.model).stem().string(),
                 ".bin");
  }
  if (!o.stop_after.empty() && (!o.report.empty() || !o.explain.empty() || !o.schedule.empty())) {
    return Usage("--stop-after ", o.stop_after,
                 " makes no schedule for --report, --explain or --schedule");
  }
  if (!o.report.empty() && o.report != "text" && o.report != "json" && o.report != "csv") {
    return Usage("--report ", o.report, ": text, json or csv expected");
  }
  return Compile(o);
}

}  // namespace
}  // namespace dla

int main(int argc, char** argv) {
  // A model of that name is still compiled as ./map.
  if (argc > 1 && std::string_view(argv[1]) == "map") return dla::RunMap(argc - 1, argv + 1);
  if (argc > 1 && std::string_view(argv[1]) == "plan") return dla::RunPlan(argc - 1, argv + 1);
  dla::Options options;
  if (argc > 1 && std::string_view(argv[1]) == "sweep") {
    CLI::App app("Compiles a model for several targets, memory sizes and objectives.",
                 "dlac sweep");
    dla::DescribeSweep(&app, &options);
    return dla::RunTool("dlac", &app, argc - 1, argv + 1,
                        [&] { return dla::Fail("dlac", dla::Sweep(options)); });
  }
  CLI::App app("Compiles an ONNX model for a deep-learning accelerator.", "dlac");
  dla::Describe(&app, &options);
  return dla::RunTool("dlac", &app, argc, argv,
                      [&] { return dla::Fail("dlac", dla::Run(options)); });
}
