#include "scheduler/map_layer.h"

#include <algorithm>
#include <charconv>

#include "scheduler/predict.h"
#include "scheduler/search.h"
#include "scheduler/search/methods.h"
#include "scheduler/searcher.h"

namespace dla::scheduler {
namespace {

constexpr std::string_view kNest = "GMCEF";  // DNNOPT does not say its own
constexpr uint32_t kSeed = 1;
constexpr int64_t kMostSamples = int64_t{1} << 40;

// The memory that holds the class, or -1 if there are several or none.
int OnlyMemoryOf(const machine::Target& target, OperandClass cls) {
  int found = -1;
  for (size_t m = 0; m < target.memories.size(); ++m) {
    if (!target.memories[m].Holds(cls)) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(m);
  }
  return found;
}

struct Homes {
  int input = -1, weight = -1, output = -1;
};

Homes HomesOf(const machine::Target& target) {
  return {OnlyMemoryOf(target, OperandClass::kInput), OnlyMemoryOf(target, OperandClass::kWeight),
          OnlyMemoryOf(target, OperandClass::kPartial)};
}

bool HasIdealTimes(const machine::Target& target, ElementType type) {
  const auto rate = target.array.rates.find({type, type});
  const auto accumulator = target.array.accumulator.find(type);
  const bool free_memories = std::all_of(
      target.memories.begin(), target.memories.end(),
      [](const machine::Memory& m) { return m.align_bytes == 1 && !m.bytes_per_cycle; });
  return TypeBits(type) == 8 && rate != target.array.rates.end() &&
         rate->second == machine::Rational{1, 1} && accumulator != target.array.accumulator.end() &&
         TypeBits(accumulator->second) == 32 &&
         target.array.dataflow == machine::Dataflow::kOutputStationary &&
         target.dram.latency_cycles == 0 && target.dram.burst_bytes == 1 &&
         target.dram.bytes_per_cycle.denominator == 1 && target.dma_startup_cycles == 0 &&
         free_memories;
}

std::optional<LayerOptimum> LeastBytesBy(const Layer& layer, const IdealMachine& machine,
                                         const MapOptions& o) {
  switch (o.method) {
    case SearchMethod::kExact:
      return LeastBytes(layer, machine, o.space, o.buffers);
    case SearchMethod::kExhaustive:
      return SearchExhaustively(layer, machine);
    case SearchMethod::kStrided:
      return SearchGrid(layer, machine, Grid::kArray, kNest, Exit::kNever);
    case SearchMethod::kEarlyExit:
      return SearchGrid(layer, machine, Grid::kEven, kNest, Exit::kNotFewer);
    case SearchMethod::kDnnopt:
      return SearchGrid(layer, machine, Grid::kArray, kNest, Exit::kNotFewer);
    case SearchMethod::kRandom:
      return SearchRandomly(layer, machine, o.samples, kSeed);
    case SearchMethod::kCompiler:
      break;
  }
  return std::nullopt;
}

// Where operands live and how often, in the compiler's form.
Mapping InPlaces(const LayerOptimum& found, const Homes& homes, bool double_inputs,
                 bool double_output) {
  Mapping mapping;
  mapping.block.assign(found.mapping.block.begin(), found.mapping.block.end());
  mapping.order = found.mapping.order;
  mapping.rolling = found.mapping.rolling;
  mapping.operands = {{.memory = homes.input, .is_double = double_inputs},
                      {.memory = homes.weight, .is_double = double_inputs},
                      {.memory = homes.output, .is_double = double_output}};
  mapping.accumulator = mapping.operands[2];
  return mapping;
}

std::optional<MappedLayer> SearchIdeal(const Layer& layer, const machine::Target& target,
                                       const IdealMachine& machine, const MapOptions& o) {
  const Homes homes = HomesOf(target);
  MappedLayer mapped;
  if (o.is_uneven) {
    mapped.uneven = LeastBytesUneven(layer, machine, o.buffers, o.uneven_budget);
    if (!mapped.uneven) return std::nullopt;
    mapped.points = mapped.uneven->points;
    mapped.proven = mapped.uneven->proven;
    return mapped;
  }
  std::optional<LayerOptimum> found;
  if (o.objective == Objective::kTraffic) {
    found = LeastBytesBy(layer, machine, o);
    if (!found) return std::nullopt;
    mapped.mapping =
        InPlaces(*found, homes, o.buffers != Buffers::kSingle, o.buffers == Buffers::kDouble);
  } else {
    const auto both = LeastCycles(layer, machine, o.space);
    if (!both) return std::nullopt;
    found = o.objective == Objective::kLatency ? both->least_cycles : both->least_bytes;
    mapped.mapping = InPlaces(*found, homes, true, !found->mapping.output_single);
  }
  mapped.points = found->points;
  mapped.proven = o.method == SearchMethod::kExact || o.method == SearchMethod::kExhaustive;
  return mapped;
}

std::optional<MappedLayer> SearchAsCompiler(const ir::Nest& nest, const machine::Target& target,
                                            const MapOptions& o) {
  SearchProblem problem = {.nest = &nest, .target = &target};
  for (const machine::Memory& memory : target.memories) {
    problem.free_bytes.push_back(UsableBytes(memory));
  }
  problem.resident_in.assign(nest.operands.size(), -1);
  problem.objective = o.objective;
  problem.options = o.compiler;
  const auto found = SearchMapping(problem);
  if (!found) return std::nullopt;
  MappedLayer mapped;
  mapped.mapping = found->mapping;
  mapped.points = found->points;
  mapped.proven = found->certificate.proven && found->certificate.all_sizes;
  return mapped;
}

Status CheckUneven(bool is_ideal, const machine::Target& target, const MapOptions& o) {
  const SearchOptions plain;
  if (o.method != SearchMethod::kExact || o.compiler.space != plain.space ||
      o.compiler.rules.mask() != plain.rules.mask()) {
    return Usage("the space uneven has a search of its own; leave out --search and --disable-rule");
  }
  if (o.objective != Objective::kTraffic) {
    return Usage("in the space uneven bytes are minimised; add --optimize traffic");
  }
  if (is_ideal) return {};
  return Usage("the space uneven needs an ideal target and elements of one byte, not ", target.name,
               "; add --target edge32-ideal --type i8");
}

bool IsIdealSearch(const MapOptions& o) {
  if (o.method == SearchMethod::kCompiler) return false;
  return o.objective == Objective::kTraffic || o.objective == Objective::kLatency ||
         o.objective == Objective::kBalanced;
}

Status CheckOptions(bool is_ideal, const machine::Target& target, const MapOptions& o) {
  if (o.is_uneven) return CheckUneven(is_ideal, target, o);
  const SearchOptions plain;
  const bool asks_compiler = o.compiler.space != plain.space ||
                             o.compiler.rules.mask() != plain.rules.mask() ||
                             o.compiler.budget != plain.budget;
  if (asks_compiler && (is_ideal || o.method != SearchMethod::kExact) &&
      o.method != SearchMethod::kCompiler) {
    return Usage("the spaces even and strided, --disable-rule and --search-budget are of the ",
                 "compiler's search; add --search compiler");
  }
  const bool has_buffers =
      o.objective == Objective::kTraffic && o.compiler.buffers != BufferRule::kBest;
  if (o.asks_buffers && is_ideal && !has_buffers) {
    return Usage("--buffers but for --optimize traffic, and --buffers best, are of the compiler's ",
                 "search; add --search compiler");
  }
  if (o.method == SearchMethod::kExact || o.method == SearchMethod::kCompiler) return {};
  if (o.objective != Objective::kTraffic) {
    return Usage(
        "the search methods other than exact and compiler minimise bytes; add --optimize traffic");
  }
  if (o.space != Space::kS0 || o.buffers != Buffers::kDouble) {
    return Usage(
        "the search methods other than exact and compiler look at space s0 with double buffers; "
        "add ",
        "--space s0 --buffers double");
  }
  if (is_ideal) return {};
  return Usage(
      "the search methods other than exact and compiler need an ideal target and elements of one "
      "byte, ",
      "not ", target.name, "; add --target edge32-ideal --type i8");
}

}  // namespace

Status ParseSearchMethod(std::string_view text, MapOptions* options) {
  constexpr std::pair<std::string_view, SearchMethod> kNames[] = {
      {"exact", SearchMethod::kExact},       {"exhaustive", SearchMethod::kExhaustive},
      {"strided", SearchMethod::kStrided},   {"early-exit", SearchMethod::kEarlyExit},
      {"compiler", SearchMethod::kCompiler}, {"dnnopt", SearchMethod::kDnnopt}};
  for (const auto& [name, method] : kNames) {
    if (text != name) continue;
    options->method = method;
    return {};
  }
  constexpr std::string_view kRandomPrefix = "random:";
  if (text.substr(0, kRandomPrefix.size()) == kRandomPrefix) {
    const std::string_view number = text.substr(kRandomPrefix.size());
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), options->samples);
    options->method = SearchMethod::kRandom;
    if (error == std::errc() && end == number.data() + number.size() && options->samples > 0 &&
        options->samples <= kMostSamples) {
      return {};
    }
  }
  return Usage("--search ", text,
               ": exact, exhaustive, strided, early-exit, dnnopt, random:N or compiler expected");
}

Status ParseSpace(std::string_view text, MapOptions* options) {
  if (text == "even" || text == "strided") {
    options->compiler.space = text == "even" ? SizeSpace::kEven : SizeSpace::kStrided;
    return {};
  }
  if (text == "uneven") {
    options->is_uneven = true;
    return {};
  }
  constexpr std::pair<std::string_view, Space> kNames[] = {
      {"s0", Space::kS0}, {"s0-folds", Space::kS0Folds}, {"s1", Space::kS1}, {"all", Space::kAll}};
  for (const auto& [name, space] : kNames) {
    if (text != name) continue;
    options->space = space;
    return {};
  }
  return Usage("--space ", text, ": s0, s0-folds, s1, all, uneven, even or strided expected");
}

Status DisableRules(const std::vector<std::string>& names, MapOptions* options) {
  DLA_ASSIGN_OR_RETURN(const SearchOptions parsed, ParseSearchOptions("exact", "all", names));
  options->compiler.rules = parsed.rules;
  return {};
}

Status ParseBuffers(std::string_view text, MapOptions* options) {
  const std::optional<BufferRule> rule = ParseBufferRule(text);
  if (!rule) return Usage("--buffers ", text, ": best, single, inputs-double or double expected");
  options->asks_buffers = true;
  options->compiler.buffers = *rule;
  if (*rule == BufferRule::kSingle) options->buffers = Buffers::kSingle;
  if (*rule == BufferRule::kInputsDouble) options->buffers = Buffers::kInputsDouble;
  return {};
}

std::optional<IdealMachine> IdealMachineOf(const machine::Target& target, ElementType type) {
  const Homes homes = HomesOf(target);
  if (!HasIdealTimes(target, type) || homes.input < 0 || homes.weight < 0 || homes.output < 0) {
    return std::nullopt;
  }
  const auto bytes = [&](int memory) { return target.memories[static_cast<size_t>(memory)].bytes; };
  IdealMachine machine = {.weight_bytes = bytes(homes.weight),
                          .input_bytes = bytes(homes.input),
                          .output_bytes = bytes(homes.output),
                          .bytes_per_cycle = target.dram.bytes_per_cycle.numerator,
                          .array_rows = target.array.rows,
                          .array_cols = target.array.cols};
  const bool all_same = homes.input == homes.weight && homes.weight == homes.output;
  const bool all_differ =
      homes.input != homes.weight && homes.weight != homes.output && homes.input != homes.output;
  if (!all_same && !all_differ) return std::nullopt;
  if (all_same) machine.pool_bytes = bytes(homes.input);
  return machine;
}

Result<MappedLayer> MapLayer(const Layer& layer, const machine::Target& target,
                             const MapOptions& options) {
  const auto machine = IsIdealSearch(options) ? IdealMachineOf(target, options.type) : std::nullopt;
  DLA_RETURN_IF_ERROR(CheckOptions(machine.has_value(), target, options));
  if (target.array.rates.count({options.type, options.type}) == 0) {
    return Unsupported("target ", target.name, " has no products of type ", TypeName(options.type),
                       "; take another --type");
  }
  const ir::Nest nest = NestOf(layer, options.type);
  std::optional<MappedLayer> mapped = machine ? SearchIdeal(layer, target, *machine, options)
                                              : SearchAsCompiler(nest, target, options);
  if (!mapped) {
    return DoesNotFit("no mapping that was looked at fits the scratchpads of ", target.name,
                      "; enlarge them (--mem NAME=BYTES)");
  }
  return std::move(*mapped);
}

void AddCosts(const Layer& layer, const machine::Target& target, ElementType type,
              MappedLayer* mapped) {
  const ir::Nest nest = NestOf(layer, type);
  if (!mapped->uneven) mapped->predicted = Predict(nest, mapped->mapping, target);
  mapped->compulsory_bytes = TypeBytes(type, CompulsoryBytes(layer));
  const Homes homes = HomesOf(target);
  Mapping whole = mapped->uneven ? InPlaces({}, homes, false, false) : mapped->mapping;
  const LayerSizes extents = ExtentsOf(layer);
  whole.block.assign(extents.begin(), extents.end());
  whole.order.clear();
  whole.rolling = -1;
  mapped->roofline_cycles =
      std::max(ComputeCycles(nest, whole, target),
               machine::CyclesAtRate(mapped->compulsory_bytes, target.dram.bytes_per_cycle));
}

}  // namespace dla::scheduler
