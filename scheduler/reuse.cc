#include "scheduler/reuse.h"

#include <algorithm>
#include <cmath>

#include "scheduler/mapping_fault.h"
#include "scheduler/memory_assignment.h"
#include "scheduler/predict.h"
#include "scheduler/transfers.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

enum class Reading { kAbsolute, kFraction, kMultiple };

// Blocks of the donor's sizes, read for those of the nest.
std::vector<int64_t> ReadBlocks(const SearchProblem& problem, const MappingCache::Answer& donor,
                                Reading reading) {
  const ir::Nest& nest = *problem.nest;
  const int64_t side = problem.target->array.cols;
  std::vector<int64_t> blocks;
  for (size_t d = 0; d < nest.dimensions.size(); ++d) {
    const int64_t extent = nest.dimensions[d].extent, block = donor.mapping.block[d];
    int64_t size = std::min(block, extent);
    if (reading != Reading::kAbsolute) {
      const int64_t blocks_of_donor = CeilDiv(donor.extents[d], block);
      size = CeilDiv(extent, std::min(blocks_of_donor, extent));
      if (reading == Reading::kMultiple && size > side) size = size / side * side;
    }
    if (!MayCut(nest, static_cast<int>(d))) {
      size = static_cast<int>(d) == nest.pass_dimension ? 1 : extent;
    }
    blocks.push_back(size);
  }
  return blocks;
}

// The donor's order for what is cut now; what it did not cut goes outside.
std::vector<int> ReadOrder(const ir::Nest& nest, const std::vector<int>& donor,
                           const Mapping& mapping) {
  uint32_t left = CutMask(nest, mapping);
  std::vector<int> order;
  for (const int d : donor) {
    if ((left >> d & 1U) == 0) continue;
    order.push_back(d);
    left &= ~(uint32_t{1} << d);
  }
  std::vector<int> outside;
  for (size_t d = 0; d < nest.dimensions.size(); ++d) {
    if (left >> d & 1U) outside.push_back(static_cast<int>(d));
  }
  order.insert(order.begin(), outside.begin(), outside.end());
  if (nest.pass_dimension >= 0) {
    const auto rank = [&](int d) {
      return d == nest.pass_dimension ? 1 : (nest.reduce_mask >> d & 1U) != 0 ? 2 : 0;
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return rank(a) < rank(b); });
  }
  return order;
}

std::vector<BufferNeed> NeedsOf(const SearchProblem& problem, const Mapping& mapping) {
  const ir::Nest& nest = *problem.nest;
  std::vector<BufferNeed> needs;
  for (int o = 0; o <= nest.output(); ++o) {
    needs.push_back({TileBytes(nest, mapping, *problem.target, o), RingSlots(nest, mapping, o)});
  }
  needs.push_back({});
  if (nest.anchor == ir::Anchor::kContraction) {
    needs.back() = {TileBytes(nest, mapping, *problem.target, kAccumulator),
                    RingSlots(nest, mapping, kAccumulator)};
  }
  return needs;
}

// Scratchpads for the mapping's buffers; false if they do not fit.
bool Assign(const SearchProblem& problem, Mapping* mapping) {
  const std::vector<BufferNeed> needs = NeedsOf(problem, *mapping);
  return AssignMemories(*problem.nest, *problem.target, problem.free_bytes, problem.resident_in,
                        needs, mapping);
}

// Halves the block whose halving leaves the fewest bytes of tiles; false if none can be halved.
bool Shrink(const SearchProblem& problem, Mapping* mapping) {
  int best = -1;
  int64_t least = 0;
  for (size_t d = 0; d < mapping->block.size(); ++d) {
    if (mapping->block[d] == 1 || !MayCut(*problem.nest, static_cast<int>(d))) continue;
    Mapping smaller = *mapping;
    smaller.block[d] = CeilDiv(smaller.block[d], 2);
    int64_t bytes = 0;
    for (const BufferNeed& need : NeedsOf(problem, smaller)) bytes += need.tile_bytes;
    if (best < 0 || bytes < least) best = static_cast<int>(d), least = bytes;
  }
  if (best < 0) return false;
  mapping->block[At(best)] = CeilDiv(mapping->block[At(best)], 2);
  return true;
}

void SetBuffers(bool inputs_double, bool output_double, Mapping* mapping) {
  for (OperandPlace& place : mapping->operands) place.is_double = inputs_double;
  mapping->operands.back().is_double = output_double;
  mapping->accumulator.is_double = output_double;
}

// The mappings with the buffers to try, in this order: as they are, then single; or as asked for.
std::vector<Mapping> WithBuffers(BufferRule rule, const Mapping& mapping) {
  std::vector<Mapping> mappings(rule == BufferRule::kBest ? 2 : 1, mapping);
  const bool inputs_double = rule == BufferRule::kInputsDouble || rule == BufferRule::kDouble;
  SetBuffers(inputs_double, rule == BufferRule::kDouble, &mappings.back());
  return mappings;
}

// Finishes a mapping that has blocks and buffers: order, scratchpads, smaller blocks where it must.
bool Repair(const SearchProblem& problem, const std::vector<int>& order, Mapping* mapping,
            bool* was_legal) {
  *was_legal = true;
  while (true) {
    mapping->order = ReadOrder(*problem.nest, order, *mapping);
    for (Mapping& tried : WithBuffers(problem.options.buffers, *mapping)) {
      if (Assign(problem, &tried) && MappingFault(problem, tried).empty()) {
        *mapping = std::move(tried);
        return true;
      }
      *was_legal = false;
    }
    if (!Shrink(problem, mapping)) return false;
  }
}

// Sum over the dimensions of how far the sizes are apart, as logarithms.
double Distance(const ir::Nest& nest, const MappingCache::Numbers& extents) {
  double distance = 0;
  for (size_t d = 0; d < extents.size(); ++d) {
    distance += std::abs(std::log(static_cast<double>(nest.dimensions[d].extent)) -
                         std::log(static_cast<double>(extents[d])));
  }
  return distance;
}

bool IsSound(const ir::Nest& nest, const MappingCache::Answer& answer) {
  const size_t dims = nest.dimensions.size();
  if (answer.extents.size() != dims || answer.mapping.block.size() != dims ||
      answer.mapping.operands.size() != nest.operands.size()) {
    return false;
  }
  for (size_t d = 0; d < dims; ++d) {
    if (answer.mapping.block[d] < 1 || answer.extents[d] < answer.mapping.block[d]) return false;
  }
  return std::all_of(answer.mapping.order.begin(), answer.mapping.order.end(),
                     [&](int d) { return d >= 0 && At(d) < dims; });
}

std::vector<const MappingCache::Answer*> DonorsOf(const SearchProblem& problem,
                                                  const MappingCache::Answers& answers) {
  const MappingCache::Numbers kind = KindOf(*problem.nest, problem.resident_in);
  std::vector<std::pair<double, const MappingCache::Answer*>> donors;
  for (const auto& [question, answer] : answers) {
    if (answer.kind != kind || !IsSound(*problem.nest, answer)) continue;
    donors.emplace_back(Distance(*problem.nest, answer.extents), &answer);
  }
  std::stable_sort(donors.begin(), donors.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const MappingCache::Answer*> nearest;
  for (size_t i = 0; i < donors.size() && i < At(kMostDonors); ++i) {
    nearest.push_back(donors[i].second);
  }
  return nearest;
}

Cost CostOf(const SearchProblem& problem, const machine::Counters& counters) {
  return {.bytes = static_cast<double>(counters.dram_bus_bytes()),
          .cycles = static_cast<double>(counters.cycles),
          .energy = EnergyPj(counters, *problem.target, problem.nest->operands[0].ReadType())};
}

// Evaluates the mapping and keeps the better.
void Take(const SearchProblem& problem, const Mapping& mapping,
          std::optional<SearchResult>* result) {
  const machine::Counters counters = Predict(*problem.nest, mapping, *problem.target);
  const int64_t points = *result ? (*result)->points + 1 : 1;
  if (!*result || IsBetter(problem.objective, CostOf(problem, counters),
                           CostOf(problem, (*result)->predicted))) {
    *result = SearchResult{.mapping = mapping, .predicted = counters};
  }
  (*result)->points = points;
  (*result)->evaluated = points;
}

}  // namespace

std::optional<SearchResult> DefaultMapping(const SearchProblem& problem) {
  const ir::Nest& nest = *problem.nest;
  Mapping mapping;
  std::vector<int> order, inside;
  for (size_t d = 0; d < nest.dimensions.size(); ++d) {
    const int dimension = static_cast<int>(d);
    mapping.block.push_back(dimension == nest.pass_dimension ? 1 : nest.dimensions[d].extent);
    (nest.IsReduction(dimension) ? inside : order).push_back(dimension);
  }
  order.insert(order.end(), inside.begin(), inside.end());
  mapping.operands.resize(nest.operands.size());
  SetBuffers(true, true, &mapping);
  bool was_legal = false;
  std::optional<SearchResult> result;
  if (Repair(problem, order, &mapping, &was_legal)) Take(problem, mapping, &result);
  return result;
}

std::optional<SearchResult> ReuseMapping(const SearchProblem& problem,
                                         const MappingCache::Answers& answers,
                                         MappingCache::Use* use) {
  std::optional<SearchResult> result = DefaultMapping(problem);
  for (const MappingCache::Answer* donor : DonorsOf(problem, answers)) {
    for (const Reading reading : {Reading::kAbsolute, Reading::kFraction, Reading::kMultiple}) {
      Mapping mapping = donor->mapping;
      mapping.block = ReadBlocks(problem, *donor, reading);
      bool was_legal = false;
      ++use->adapted;
      const bool repaired = Repair(problem, donor->mapping.order, &mapping, &was_legal);
      if (!was_legal) ++use->illegal;
      if (repaired) Take(problem, mapping, &result);
    }
  }
  return result;
}

}  // namespace dla::scheduler
