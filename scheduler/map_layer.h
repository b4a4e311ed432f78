// One plain layer on one target: the search that applies, and the mapping in the compiler's form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/counters.h"
#include "machine/target.h"
#include "scheduler/layer.h"
#include "scheduler/mapping.h"
#include "scheduler/objective.h"
#include "scheduler/search/layer_optimum.h"
#include "scheduler/search/uneven.h"
#include "scheduler/search_options.h"
#include "support/status.h"

namespace dla::scheduler {

enum class SearchMethod {
  kExact,
  kExhaustive,
  kStrided,
  kEarlyExit,
  kDnnopt,
  kRandom,
  kCompiler,  // what groups of models get (search.h)
};

struct MapOptions {
  ElementType type = ElementType::kI8;
  Objective objective = Objective::kBalanced;
  Space space = Space::kS1;
  bool is_uneven = false;  // operands cut at different loops, instead of `space`
  int64_t uneven_budget = 200'000'000;
  bool asks_buffers = false;           // `buffers` or compiler.buffers were asked for
  Buffers buffers = Buffers::kDouble;  // of traffic; the others choose
  SearchMethod method = SearchMethod::kExact;
  int64_t samples = 0;     // of kRandom
  SearchOptions compiler;  // of the compiler's search: sizes, rules, budget
};

// "exact", "exhaustive", "strided", "early-exit", "dnnopt" (the last two together),
// "random:N" or "compiler".
Status ParseSearchMethod(std::string_view text, MapOptions* options);
// "s0", "s0-folds", "s1"; "all"; "uneven"; of the compiler's search alone "even" and "strided".
Status ParseSpace(std::string_view text, MapOptions* options);
// Names of rules that the compiler's search goes without.
Status DisableRules(const std::vector<std::string>& names, MapOptions* options);
Status ParseBuffers(std::string_view text, MapOptions* options);

struct MappedLayer {
  Mapping mapping;
  // Of an uneven search, which knows bytes alone: `mapping` and `predicted` stay empty.
  std::optional<UnevenOptimum> uneven;
  machine::Counters predicted;
  int64_t compulsory_bytes = 0;
  int64_t roofline_cycles = 0;  // compute of the layer as one tile, or compulsory bytes on the bus
  int64_t points = 0;           // block vectors whose cost or bound was computed
  bool proven = false;          // no mapping of the space is better
};

// The machine of the proofs, if the target is one: elements of one byte, no burst, latency or
// start-up, output stationary, one scratchpad a class or one for all.
std::optional<IdealMachine> IdealMachineOf(const machine::Target& target, ElementType type);

// The search alone, without costs; fails with kDoesNotFit or kUnsupported. Targets
// that are not ideal, and objectives of energy, take the compiler's search, which
// has every integer block size and does not roll.
Result<MappedLayer> MapLayer(const Layer& layer, const machine::Target& target,
                             const MapOptions& options);

// Fills in `predicted` (of even mappings) and the two lower bounds.
void AddCosts(const Layer& layer, const machine::Target& target, ElementType type,
              MappedLayer* mapped);

}  // namespace dla::scheduler
