// dlac: ONNX model in, program for the accelerator out.
//
// Arguments in, printing out: everything else is a library call. Exit codes: support/status.h.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/command_line.h"
#include "cmd/dlac_map.h"
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

struct Options {
  std::string model, output;
  std::string target = "edge32";
  std::vector<std::string> memories, dims, shapes, consts;
  std::string optimize = "balanced", residency = "best", fuse = "on", place = "exact",
              cascades = "on", prefetch = "on", order = "best";
  std::string precision = "f32";
  std::string pins, schedule, use_schedule, report, dump_dir, stop_after, print_target, explain;
  std::string search = "exact", space = "all", buffers = "best", multiply = "best";
  std::string cache;
  std::vector<std::string> disabled_rules, start_from;
  int64_t search_budget = scheduler::SearchOptions().budget;
  int64_t inferences = 1;
  size_t top = 5;
  bool check = false, list_targets = false, list_ops = false, no_host = false;
  bool quiet = false, verbose = false;
};

void DescribeBuffers(CLI::App* app, Options* o) {
  app->add_option(
         "--buffers", o->buffers,
         "of operands with more than one tile: best (default, one or two by cost), single, "
         "inputs-double (outputs single) or double; where nothing fits so, as it fits")
      ->type_name("WHICH");
}

void DescribePrefetch(CLI::App* app, Options* o) {
  app->add_option("--prefetch", o->prefetch,
                  "load a group's first tiles while the group before computes, and store the last "
                  "results while the next one does, where there is room: on (default) or off")
      ->type_name("on|off");
}

void Describe(CLI::App* app, Options* o) {
  app->footer(
      "Other commands, each with its own --help: dlac map (maps a list of layer shapes), dlac plan "
      "(plans residency and placement for other compilers), dlac sweep (one model over targets, "
      "memory "
      "sizes and objectives).");
  app->add_option("MODEL", o->model, "the ONNX file");
  app->add_option("-o,--output", o->output,
                  "the program to write; may be left out where something is printed")
      ->type_name("FILE");
  app->add_option("--target", o->target, "the accelerator (default edge32); see --list-targets")
      ->type_name("NAME|FILE");
  app->add_option("--mem", o->memories,
                  "another size of a scratchpad; K, KiB, M, MiB are powers of 1024")
      ->type_name("NAME=BYTES");
  app->add_option("--dim", o->dims, "value of a symbolic dimension")->type_name("NAME=VALUE");
  app->add_option("--shape", o->shapes, "shape of an input")->type_name("INPUT=1x3x224x224");
  app->add_option("--const", o->consts, "fix an input: the elements of an .npy or .pb file")
      ->type_name("INPUT=FILE");
  app->add_option("--optimize", o->optimize, "latency, traffic, energy, edp or balanced (default)")
      ->type_name("WHAT");
  app->add_option(
         "--residency", o->residency,
         "none, one-step, onsram, best (default), exact or infinite (scratchpads without limits)")
      ->type_name("POLICY");
  app->add_option(
         "--search", o->search,
         "of each group's mapping: exact (default), quick, random:N (N samples), reuse (of "
         "the cache's mappings for other sizes) or none (one by rule)")
      ->type_name("METHOD");
  app->add_option("--space", o->space,
                  "block sizes: all (default), even (extent / n rounded up) or strided")
      ->type_name("SPACE");
  DescribeBuffers(app, o);
  app->add_option("--disable-rule", o->disabled_rules,
                  "search without this pruning rule (docs/SCHEDULER.md); slower, same result")
      ->type_name("NAME");
  app->add_option("--cache", o->cache,
                  "keep found mappings in this folder and take those of earlier compilations")
      ->type_name("DIR");
  app->add_option("--multiply", o->multiply,
                  "convolutions in groups: best (default, by cost), array (group by group), packed "
                  "(groups side by side) or vector")
      ->type_name("HOW");
  app->add_option("--search-budget", o->search_budget,
                  "evaluations after which a group's search ends unproven (default 200000)")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  app->add_option("--pins", o->pins,
                  "values that must stay on chip, regions that must stay free; the rest is planned")
      ->type_name("FILE.json");
  app->add_option("--cascades", o->cascades,
                  "chains of groups as one loop over stripes: on (default) or off")
      ->type_name("on|off");
  DescribePrefetch(app, o);
  app->add_option("--order", o->order,
                  "of groups: graph (as the model has them) or best (default, by cost among those "
                  "that keep fewer bytes alive)")
      ->type_name("RULE");
  app->add_option("--inferences", o->inferences,
                  "how many inferences follow one another (default 1): with more, weights may stay "
                  "on chip from the first on; dlarun --repeat runs them")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000000}));
  app->add_option("--place", o->place, "color, best-fit, hill-climb or exact (default)")
      ->type_name("METHOD");
  app->add_option("--fuse", o->fuse, "on (default) or off")->type_name("on|off");
  app->add_option("--precision", o->precision,
                  "f16: store inner f32 values and multiply them as float16; f32 (default): as is")
      ->type_name("f32|f16");
  app->add_option("--schedule", o->schedule, "write the schedule as JSON")->type_name("FILE");
  app->add_option("--use-schedule", o->use_schedule,
                  "take mappings and residents from this schedule, whole or partial")
      ->type_name("FILE");
  app->add_option("--start-from", o->start_from,
                  "take order, cascades and residents of this schedule, perhaps of another target, "
                  "where they cost less; may be given several times")
      ->type_name("FILE");
  app->add_option("--report", o->report, "print a report: text, json or csv")->type_name("FORM");
  app->add_option("--top", o->top, "how many groups worth attention the report names (default 5)")
      ->type_name("N");
  app->add_option("--explain", o->explain,
                  "print how a node is mapped, or why a value stays or not")
      ->type_name("NODE|VALUE");
  app->add_option("--dump-dir", o->dump_dir, "write the graph's text after each pass")
      ->type_name("DIR");
  app->add_option("--stop-after", o->stop_after, "stop after this pass")->type_name("PASS");
  app->add_flag("--check", o->check, "compile nothing, list all problems");
  app->add_flag("--list-targets", o->list_targets, "list the bundled targets");
  app->add_option("--print-target", o->print_target, "print a target with all it inherits")
      ->type_name("NAME|FILE");
  app->add_flag("--list-ops", o->list_ops, "list the operators (Markdown)");
  app->add_flag("--no-host", o->no_host, "refuse work that would run on the host");
  app->add_flag("-q,--quiet", o->quiet, "print errors only");
  app->add_flag("-v,--verbose", o->verbose, "say what is done");
}

// NAME=VALUE; the name may hold further '=' signs.
Result<std::pair<std::string, std::string>> SplitPair(const std::string& option,
                                                      const std::string& text) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    return Usage(option, " ", text, ": NAME=VALUE expected");
  }
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

Result<int64_t> ParseExtent(const std::string& where, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    return Usage(where, ": '", text, "' is not an extent (a whole number, 0 or more)");
  }
  return value;
}

Result<frontend::ImportOptions> ImportOptionsOf(const Options& o) {
  frontend::ImportOptions options;
  for (const std::string& text : o.dims) {
    DLA_ASSIGN_OR_RETURN(const auto pair, SplitPair("--dim", text));
    DLA_ASSIGN_OR_RETURN(options.dims[pair.first], ParseExtent("--dim " + text, pair.second));
  }
  for (const std::string& text : o.shapes) {
    DLA_ASSIGN_OR_RETURN(const auto pair, SplitPair("--shape", text));
    std::vector<int64_t> shape;
    std::string rest = pair.second;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find_first_of("x,"), rest.size());
      DLA_ASSIGN_OR_RETURN(const int64_t extent,
                           ParseExtent("--shape " + text, rest.substr(0, end)));
      shape.push_back(extent);
      rest.erase(0, end + 1);
    }
    options.shapes[pair.first] = shape;
  }
  for (const std::string& text : o.consts) {
    // File names may hold '=' signs, too: the first one ends the input's name.
    const size_t at = text.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
      return Usage("--const ", text, ": INPUT=FILE expected");
    }
    DLA_ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(text.substr(at + 1)));
    options.consts[text.substr(0, at)] = {tensor.type, tensor.shape, std::move(tensor.bytes)};
  }
  return options;
}

// The options that shape the program, as its file records them; no paths.
std::string CommandLineOf(const Options& o) {
  std::string text = "--target " + std::filesystem::path(o.target).stem().string();
  for (const std::string& memory : o.memories) text += " --mem " + memory;
  for (const std::string& dim : o.dims) text += " --dim " + dim;
  for (const std::string& shape : o.shapes) text += " --shape " + shape;
  text += " --optimize " + o.optimize + " --residency " + o.residency + " --cascades " +
          o.cascades + " --prefetch " + o.prefetch + " --place " + o.place + " --fuse " + o.fuse +
          " --precision " + o.precision;
  const Options defaults;
  const auto add = [&text](const char* option, const auto& value, const auto& usual) {
    if (value != usual) text += Concat(" ", option, " ", value);
  };
  add("--search", o.search, defaults.search);
  add("--space", o.space, defaults.space);
  add("--buffers", o.buffers, defaults.buffers);
  for (const std::string& rule : o.disabled_rules) text += " --disable-rule " + rule;
  add("--order", o.order, defaults.order);
  add("--inferences", o.inferences, defaults.inferences);
  add("--multiply", o.multiply, defaults.multiply);
  add("--search-budget", o.search_budget, defaults.search_budget);
  return text;
}

// What the option's text means; `parsed` is nothing if it is none of those expected.
template <typename T>
Result<T> OneOf(const char* option, const std::string& text, const std::optional<T>& parsed,
                const char* expected) {
  if (parsed) return *parsed;
  return Usage(option, " ", text, ": ", expected, " expected");
}

Result<bool> IsOn(const char* option, const std::string& text) {
  if (text == "on" || text == "off") return text == "on";
  return Usage(option, " ", text, ": on or off expected");
}

Result<scheduler::ScheduleOptions> ScheduleOptionsOf(const Options& o) {
  scheduler::ScheduleOptions options;
  DLA_ASSIGN_OR_RETURN(options.objective,
                       OneOf("--optimize", o.optimize, scheduler::ParseObjective(o.optimize),
                             "latency, traffic, energy, edp or balanced"));
  DLA_ASSIGN_OR_RETURN(options.search,
                       scheduler::ParseSearchOptions(o.search, o.space, o.disabled_rules));
  options.search.budget = o.search_budget;
  DLA_ASSIGN_OR_RETURN(options.search.buffers,
                       OneOf("--buffers", o.buffers, scheduler::ParseBufferRule(o.buffers),
                             "best, single, inputs-double or double"));
  DLA_ASSIGN_OR_RETURN(options.multiply,
                       OneOf("--multiply", o.multiply, scheduler::ParseMultiplyBy(o.multiply),
                             "best, array, packed or vector"));
  if (options.search.way == scheduler::SearchWay::kReuse && o.cache.empty()) {
    return Usage("--search reuse: --cache DIR says where the mappings are");
  }
  DLA_ASSIGN_OR_RETURN(options.residency, OneOf("--residency", o.residency,
                                                scheduler::ParseResidencyPolicy(o.residency),
                                                "none, one-step, onsram, best, exact or infinite"));
  DLA_ASSIGN_OR_RETURN(options.cascades, IsOn("--cascades", o.cascades));
  DLA_ASSIGN_OR_RETURN(options.prefetch, IsOn("--prefetch", o.prefetch));
  DLA_ASSIGN_OR_RETURN(options.order, OneOf("--order", o.order, scheduler::ParseOrderRule(o.order),
                                            "graph or best"));
  options.inferences = o.inferences;
  DLA_ASSIGN_OR_RETURN(options.placement.method,
                       OneOf("--place", o.place, scheduler::ParsePlaceMethod(o.place),
                             "color, best-fit, hill-climb or exact"));
  if (!o.quiet && isatty(STDERR_FILENO) != 0) {
    options.progress = [](size_t done, size_t groups) {
      std::fprintf(stderr, done == groups ? "\r\033[K" : "\rmapping layer %zu of %zu", done + 1,
                   groups);
    };
  }
  return options;
}

Result<ir::PassOptions> PassOptionsOf(const Options& o) {
  ir::PassOptions options;
  DLA_ASSIGN_OR_RETURN(options.fuse, IsOn("--fuse", o.fuse));
  if (o.precision != "f32" && o.precision != "f16") {
    return Usage("--precision ", o.precision, ": f32 or f16 expected");
  }
  if (o.precision == "f16") options.precision = ElementType::kF16;
  options.stop_after = o.stop_after;
  bool known = o.stop_after.empty();
  std::string names;
  for (const ir::Pass& pass : ir::PassTable()) {
    known = known || pass.name == o.stop_after;
    names += Concat(names.empty() ? "" : ", ", pass.name);
  }
  if (!known) return Usage("--stop-after ", o.stop_after, ": the passes are ", names);
  return options;
}

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

Result<scheduler::GivenSchedule> ReadGiven(const std::string& path) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  DLA_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMostBytes));
  Result<scheduler::GivenSchedule> given = scheduler::ParseGivenSchedule(text);
  if (!given.ok()) return given.status().At(path);
  return given;
}

Result<scheduler::Pins> ReadPins(const std::string& path) {
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  DLA_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMostBytes));
  Result<scheduler::Pins> pins = scheduler::ParsePins(text);
  if (!pins.ok()) return pins.status().At(path);
  return pins;
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

Status Compile(const Options& o) {
  DLA_ASSIGN_OR_RETURN(const frontend::ImportOptions import_options, ImportOptionsOf(o));
  DLA_ASSIGN_OR_RETURN(scheduler::ScheduleOptions options, ScheduleOptionsOf(o));
  scheduler::GivenSchedule given;
  if (!o.use_schedule.empty()) {
    DLA_ASSIGN_OR_RETURN(given, ReadGiven(o.use_schedule));
    options.given = &given;
  }
  std::deque<scheduler::GivenSchedule> starts;
  for (const std::string& path : o.start_from) {
    if (options.given != nullptr) return Usage("--start-from: --use-schedule says what to do");
    DLA_ASSIGN_OR_RETURN(starts.emplace_back(), ReadGiven(path));
    options.starts.push_back(&starts.back());
  }
  scheduler::Pins pins;
  if (!o.pins.empty()) {
    DLA_ASSIGN_OR_RETURN(pins, ReadPins(o.pins));
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
  Result<scheduler::Schedule> schedule = scheduler::MakeSchedule(graph, target, options);
  if (!o.cache.empty()) CloseCache(o, &cache);
  if (!schedule.ok()) return schedule.status().At(o.model);
  if (const std::string other = scheduler::OtherBuffers(*schedule); !other.empty()) {
    Warn(o.model + ": " + other);
  }
  for (const std::string& warning : schedule->warnings) Warn(o.model + ": " + warning);
  std::string explanation;
  if (!o.explain.empty()) {
    DLA_ASSIGN_OR_RETURN(explanation, scheduler::Explain(graph, *schedule, o.explain));
  }
  Result<machine::Program> program = codegen::Emit(graph, *schedule);
  if (!program.ok()) return program.status().At(o.model);
  program->producer = std::string("dlac ") + DLA_VERSION;
  program->command_line = CommandLineOf(o);
  program->values = codegen::DescribeValues(computed, graph, *schedule);
  if (o.check) return Status();
  if (!o.schedule.empty()) {
    DLA_RETURN_IF_ERROR(WriteTextFile(o.schedule, scheduler::ScheduleJson(graph, *schedule)));
  }
  const Status verified = machine::VerifyProgram(*program, machine::ConstantSpaceBytes(*program));
  DLA_CHECK(verified.ok(), "program: ", verified.message());
  if (!o.output.empty()) {
    DLA_RETURN_IF_ERROR(machine::WriteProgram(
        *program, o.output, [&](size_t region, const machine::ByteSink& append) {
          return codegen::AppendConstant(graph, *schedule, region, append);
        }));
  }
  if (o.report == "json") {
    std::fputs(scheduler::ScheduleJson(graph, *schedule).c_str(), stdout);
  } else if (o.report == "text") {
    std::fputs(scheduler::ReportText(graph, *schedule, o.top).c_str(), stdout);
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
  const bool tells = o.check || !o.stop_after.empty() || !o.report.empty() || !o.explain.empty() ||
                     !o.schedule.empty();
  if (o.output.empty() && !tells) {
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
