#include "cmd/dlac_map.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "cmd/command_line.h"
#include "machine/target_file.h"
#include "scheduler/layer_list.h"
#include "scheduler/map_layer.h"
#include "scheduler/predict.h"
#include "support/file.h"

namespace dla {
namespace {

constexpr const char* kTool = "dlac map";
constexpr int64_t kMostListBytes = int64_t{64} << 20;
constexpr std::string_view kLetters = "NGMCEFRS";

struct Options {
  std::string layers, output;
  std::string target = "edge32-ideal";
  std::vector<std::string> memories;
  std::string type = "i8", optimize = "balanced", search = "exact", space = "s1";
  std::string buffers;
  std::vector<std::string> disabled_rules;
  std::optional<int64_t> search_budget;
  int repeat = 1;
};

void Describe(CLI::App* app, Options* o) {
  app->add_option("LAYERS", o->layers,
                  "a layer a line: name set kind N G M C E F R S stride dilation pad count [H W]")
      ->required();
  app->add_option("-o,--output", o->output, "the CSV to write (default: standard output)")
      ->type_name("FILE");
  app->add_option("--target", o->target, "the accelerator (default edge32-ideal)")
      ->type_name("NAME|FILE");
  app->add_option("--mem", o->memories, "another size of a scratchpad")->type_name("NAME=BYTES");
  app->add_option("--type", o->type, "type of input, weights and output (default i8)")
      ->type_name("TYPE");
  app->add_option("--optimize", o->optimize, "latency, traffic, energy, edp or balanced (default)")
      ->type_name("WHAT");
  app->add_option("--search", o->search,
                  "exact (default), exhaustive, strided, early-exit, dnnopt, random:N or compiler")
      ->type_name("METHOD");
  app->add_option("--space", o->space,
                  "s0, s0-folds, s1 (default), all or uneven (docs/MAPPING.md); of the compiler's "
                  "search all "
                  "(default), even or strided (docs/SCHEDULER.md)")
      ->type_name("SPACE");
  app->add_option("--disable-rule", o->disabled_rules,
                  "the compiler's search without this pruning rule; slower, same result")
      ->type_name("NAME");
  app->add_option(
         "--search-budget", o->search_budget,
         "evaluations after which the compiler's search of a layer, or that of the space uneven, "
         "ends unproven")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  app->add_option("--buffers", o->buffers,
                  "best, single, inputs-double or double: of the compiler's search (default best), "
                  "and but for best of --optimize traffic (default double)")
      ->type_name("WHICH");
  app->add_option("--repeat", o->repeat, "search each layer so often; the time is the median")
      ->check(CLI::Range(1, 10001));
}

Result<scheduler::MapOptions> MapOptionsOf(const Options& o) {
  scheduler::MapOptions options;
  const auto type = ParseElementType(o.type);
  if (!type) return Usage("--type ", o.type, ": an element type expected, such as i8 or f32");
  options.type = *type;
  const auto objective = scheduler::ParseObjective(o.optimize);
  if (!objective) {
    return Usage("--optimize ", o.optimize, ": latency, traffic, energy, edp or balanced expected");
  }
  options.objective = *objective;
  DLA_RETURN_IF_ERROR(scheduler::ParseSearchMethod(o.search, &options));
  DLA_RETURN_IF_ERROR(scheduler::ParseSpace(o.space, &options));
  if (!o.buffers.empty()) DLA_RETURN_IF_ERROR(scheduler::ParseBuffers(o.buffers, &options));
  DLA_RETURN_IF_ERROR(scheduler::DisableRules(o.disabled_rules, &options));
  if (o.search_budget) {
    options.compiler.budget = *o.search_budget;
    options.uneven_budget = *o.search_budget;
  }
  return options;
}

// The mapping as text: the cut loops, outermost first; all block sizes; what rolls.
std::string MappingText(const scheduler::Mapping& mapping) {
  const auto letter = [](int d) { return std::string(1, kLetters[static_cast<size_t>(d)]); };
  std::string text = "order=";
  for (const int d : mapping.order) text += Concat(text == "order=" ? "" : ">", letter(d));
  for (size_t d = 0; d < mapping.block.size(); ++d) {
    text += Concat(" ", letter(static_cast<int>(d)), "=", mapping.block[d]);
  }
  if (mapping.rolling >= 0) text += Concat(" roll=", letter(mapping.rolling));
  if (!mapping.operands[0].is_double) text += " input=single";
  if (!mapping.operands[1].is_double) text += " weight=single";
  if (!mapping.accumulator.is_double) text += " output=single";
  return text;
}

// The loops outside the tiles, outermost first, with their blocks; how many of them are outside
// each operand's tile; what rolls.
std::string MappingText(const scheduler::UnevenMapping& mapping) {
  std::string text = "loops=";
  for (const scheduler::UnevenLoop& loop : mapping.loops) {
    text += Concat(text == "loops=" ? "" : ">",
                   std::string(1, kLetters[static_cast<size_t>(loop.dim)]), ":", loop.block);
  }
  text += Concat(" input@", mapping.outside[0], " weight@", mapping.outside[1], " output@",
                 mapping.outside[2]);
  if (mapping.rolling >= 0) {
    text += Concat(" roll=", std::string(1, kLetters[static_cast<size_t>(mapping.rolling)]));
  }
  return text;
}

struct Timed {
  scheduler::MappedLayer mapped;
  double ms = 0;
};

Result<Timed> MapTimed(const scheduler::Layer& layer, const machine::Target& target,
                       const scheduler::MapOptions& options, int repeat) {
  std::vector<double> times;
  Timed timed;
  for (int i = 0; i < repeat; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    DLA_ASSIGN_OR_RETURN(timed.mapped, scheduler::MapLayer(layer, target, options));
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::sort(times.begin(), times.end());
  timed.ms = times[times.size() / 2];
  scheduler::AddCosts(layer, target, options.type, &timed.mapped);
  return timed;
}

// Names are free of blanks, but not of what CSV quotes.
std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

// An uneven search knows bytes alone; other searches have no bound besides the layer's own.
std::string CostsOf(const scheduler::MappedLayer& mapped, const machine::Target& target,
                    ElementType type) {
  if (mapped.uneven) return Concat(mapped.uneven->bytes, ",,,");
  char text[160];
  std::snprintf(text, sizeof(text), "%" PRId64 ",%" PRId64 ",%" PRId64 ",%.1f",
                mapped.predicted.dram_bytes(), mapped.predicted.dram_bus_bytes(),
                mapped.predicted.cycles, scheduler::EnergyPj(mapped.predicted, target, type));
  return text;
}

std::string RowOf(const scheduler::NamedLayer& named, const Timed& timed,
                  const machine::Target& target, ElementType type) {
  const scheduler::MappedLayer& mapped = timed.mapped;
  char ms[32];
  std::snprintf(ms, sizeof(ms), "%.4f", timed.ms);
  const std::string text =
      mapped.uneven ? MappingText(mapped.uneven->mapping) : MappingText(mapped.mapping);
  const std::string bound = mapped.uneven ? Concat(mapped.uneven->lower_bound) : "";
  return Concat(Quoted(named.name), ",", Quoted(named.set), ",", text, ",", named.count, ",",
                CostsOf(mapped, target, type), ",", mapped.compulsory_bytes, ",",
                mapped.roofline_cycles, ",", mapped.points, ",", mapped.proven ? "yes" : "no", ",",
                ms, ",", bound, "\n");
}

Status Map(const Options& o) {
  DLA_ASSIGN_OR_RETURN(const scheduler::MapOptions options, MapOptionsOf(o));
  DLA_ASSIGN_OR_RETURN(const machine::Target target, machine::LoadTargetWith(o.target, o.memories));
  DLA_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(o.layers, kMostListBytes));
  const auto layers = scheduler::ParseLayerList(text);
  if (!layers.ok()) return layers.status().At(o.layers);
  std::string csv =
      "layer,set,mapping,count,bytes,bus_bytes,cycles,energy_pj,compulsory_bytes,roofline_cycles,"
      "points,proven,ms,bound_bytes\n";
  for (const scheduler::NamedLayer& named : *layers) {
    const Result<Timed> timed = MapTimed(named.layer, target, options, o.repeat);
    if (!timed.ok()) {
      // A wrong option is not the layer's fault.
      if (timed.status().code() == ErrorCode::kUsage) return timed.status();
      // Other methods may miss every mapping that fits: a result to compare, not a failure.
      if (timed.status().code() == ErrorCode::kDoesNotFit &&
          options.method != scheduler::SearchMethod::kExact) {
        csv +=
            Concat(Quoted(named.name), ",", Quoted(named.set), ",,", named.count, ",,,,,,,,no,,\n");
        continue;
      }
      return timed.status().At(Concat(o.layers, ": layer ", named.name));
    }
    csv += RowOf(named, *timed, target, options.type);
  }
  return WriteResult(o.output, csv);
}

}  // namespace

int RunMap(int argc, char** argv) {
  CLI::App app("Maps a plain list of layer shapes onto an accelerator; one CSV row a layer.",
               kTool);
  Options options;
  Describe(&app, &options);
  return RunTool(kTool, &app, argc, argv, [&] { return Fail(kTool, Map(options)); });
}

}  // namespace dla
