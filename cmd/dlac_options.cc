#include "cmd/dlac_options.h"

#include <charconv>
#include <filesystem>
#include <optional>

#include "ir/op.h"
#include "support/tensor_file.h"

namespace dla {
namespace {

Result<int64_t> ParseExtent(const std::string& where, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    return Usage(where, ": '", text, "' is not an extent (a whole number, 0 or more)");
  }
  return value;
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

}  // namespace

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
  app->add_option(
         "--pins", o->pins,
         "values that must stay on chip, regions that must stay free; the rest is planned; "
         "or a plan of dlac plan, whose tensors stay")
      ->type_name("FILE.json");
  app->add_option("--plan-problem", o->plan_problem,
                  "write what may stay on chip, and what that costs, as a problem for dlac plan")
      ->type_name("FILE.json");
  app->add_option("--cascades", o->cascades,
                  "chains of groups as one loop over stripes: on (default) or off")
      ->type_name("on|off");
  app->add_option("--slices", o->slices,
                  "where cascades may be: chains of groups in slices that overlap by what windows "
                  "reach: on (default) or off")
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

Result<std::pair<std::string, std::string>> SplitPair(const std::string& option,
                                                      const std::string& text) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    return Usage(option, " ", text, ": NAME=VALUE expected");
  }
  return std::pair(text.substr(0, at), text.substr(at + 1));
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
  DLA_ASSIGN_OR_RETURN(options.slices, IsOn("--slices", o.slices));
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

}  // namespace dla
