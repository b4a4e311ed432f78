#include "scheduler/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "scheduler/block_candidates.h"
#include "scheduler/bound.h"
#include "scheduler/exact/exact_search.h"
#include "scheduler/memory_assignment.h"
#include "scheduler/predict.h"
#include "scheduler/transfers.h"
#include "support/status.h"

namespace dla::scheduler {
namespace {

constexpr size_t kMaxDims = 16;
constexpr size_t kLeavesKept = 4096;
constexpr int64_t kStepsWanted = 1 << 16;  // more steps only where fewer do not fit
constexpr int64_t kStepBudget = 1 << 22;   // steps of all exact evaluations but the first

size_t At(int i) { return static_cast<size_t>(i); }

// A vector of block sizes that fits, with the bound of its best order class.
struct Leaf {
  std::array<int16_t, kMaxDims> choice{};
  uint32_t single = 0;  // operands with one buffer (bit of the output: the accumulators too)
  int stationary = 0;
  BoundTables::Bound bound;
  int64_t steps = 0;
};

class Search {
 public:
  Search(const SearchProblem& problem, bool cut_kernel)
      : problem_(problem),
        nest_(*problem.nest),
        target_(*problem.target),
        tables_(nest_, target_, BlockCandidates(nest_, target_, cut_kernel), Residents(problem)),
        memories_(nest_, target_, problem.free_bytes, problem.resident_in) {
    choice_.resize(nest_.dimensions.size(), 0);
    ListSingles();
  }

  std::optional<SearchResult> Run() {
    Enumerate(0);
    if (leaves_.empty()) return std::nullopt;
    return Choose();
  }

 private:
  static std::vector<bool> Residents(const SearchProblem& problem) {
    std::vector<bool> resident;
    for (const int memory : problem.resident_in) resident.push_back(memory >= 0);
    return resident;
  }

  // Which operands have one buffer, in the order in which the combinations are tried: the fewest
  // first, the output before the inputs (its second buffer is the dearest).
  void ListSingles() {
    const uint32_t all = (uint32_t{1} << nest_.operands.size()) - 1;
    const uint32_t output = uint32_t{1} << nest_.output();
    const BufferRule rule = problem_.options.buffers;
    if (rule == BufferRule::kSingle) {
      singles_ = {all};
    } else if (rule == BufferRule::kDouble) {
      singles_ = {0};
    } else if (rule == BufferRule::kInputsDouble) {
      // What is moved has one buffer for both.
      singles_ = {nest_.anchor == ir::Anchor::kMove ? 0 : output};
    } else if (nest_.anchor == ir::Anchor::kMove) {
      singles_ = {0, all};
    } else if (nest_.anchor == ir::Anchor::kVector) {
      singles_ = {0, output, all & ~output, all};
    } else {
      const uint32_t input = 1U << ir::Nest::kInput;
      // Bias goes with the weights, fused operands with the output.
      uint32_t weight = 1U << ir::Nest::kWeight;
      if (nest_.bias >= 0) weight |= uint32_t{1} << nest_.bias;
      const uint32_t drained = all & ~input & ~weight;
      singles_ = {0,  drained, input, weight, drained | input, drained | weight, input | weight,
                  all};
    }
  }

  bool Fits(uint32_t single, Mapping* mapping) {
    needs_.assign(tables_.Needs().begin(), tables_.Needs().end());
    mapping->operands.resize(nest_.operands.size());
    for (size_t o = 0; o < nest_.operands.size(); ++o) {
      const bool is_single = (single >> o & 1U) != 0;
      if (is_single && problem_.resident_in[o] < 0) needs_[o].slots = 1;
      mapping->operands[o].is_double = !is_single;
    }
    mapping->accumulator.is_double = (single >> nest_.output() & 1U) == 0;
    if (!mapping->accumulator.is_double) needs_.back().slots = 1;
    return memories_.ForEach(needs_, [&] {
      memories_.Write(mapping);
      return true;
    });
  }

  // Depth first over the dimensions, sizes increasing: a prefix whose smallest completion does not
  // fit with single buffers ends its dimension.
  void Enumerate(size_t d) {
    if (d == choice_.size()) {
      Bound();
      return;
    }
    const int sizes = static_cast<int>(tables_.candidates()[d].size());
    for (int c = 0; c < sizes; ++c) {
      choice_[d] = c;
      std::fill(choice_.begin() + static_cast<int64_t>(d) + 1, choice_.end(), 0);
      if (c > 0 || d == 0) {
        tables_.Choose(choice_);
        Mapping mapping;
        if (!Fits(singles_.back(), &mapping)) break;
      }
      Enumerate(d + 1);
    }
    choice_[d] = 0;
  }

  void Bound() {
    tables_.Choose(choice_);
    if (tables_.steps() > steps_limit_) return;
    // Before buffers and orders are tried: the compute time alone may be too long.
    if (!leaves_.empty() && problem_.objective != Objective::kTraffic &&
        static_cast<double>(tables_.compute_cycles()) > kBalance * static_cast<double>(best_)) {
      return;
    }
    for (const uint32_t single : singles_) {
      Mapping mapping;
      if (!Fits(single, &mapping)) continue;
      AddLeaf(single);
      return;
    }
  }

  void AddLeaf(uint32_t single) {
    Leaf leaf;
    for (size_t d = 0; d < choice_.size(); ++d) leaf.choice[d] = static_cast<int16_t>(choice_[d]);
    leaf.single = single;
    leaf.steps = tables_.steps();
    bool first = true;
    for (int o = 0; o <= nest_.output(); ++o) {
      const BoundTables::Bound bound = tables_.BoundOf(o, single);
      ++points_;
      if (first || Value(bound) < Value(leaf.bound) ||
          (Value(bound) == Value(leaf.bound) && bound.bus_bytes < leaf.bound.bus_bytes)) {
        leaf.bound = bound;
        leaf.stationary = o;
        first = false;
      }
    }
    if (!leaves_.empty() &&
        static_cast<double>(Value(leaf.bound)) > kBalance * static_cast<double>(best_)) {
      return;
    }
    best_ = leaves_.empty() ? Value(leaf.bound) : std::min(best_, Value(leaf.bound));
    leaves_.push_back(leaf);
    if (leaves_.size() >= 2 * kLeavesKept) KeepBest();
  }

  int64_t Value(const BoundTables::Bound& bound) const {
    return problem_.objective == Objective::kTraffic ? bound.bus_bytes : bound.cycles;
  }

  bool Before(const Leaf& a, const Leaf& b) const {
    const auto key = [&](const Leaf& leaf) {
      return std::tuple(Value(leaf.bound), leaf.bound.bus_bytes, leaf.bound.cycles, leaf.steps,
                        leaf.choice);
    };
    return key(a) < key(b);
  }

  void KeepBest() {
    std::sort(leaves_.begin(), leaves_.end(),
              [&](const Leaf& a, const Leaf& b) { return Before(a, b); });
    if (leaves_.size() > kLeavesKept) leaves_.resize(kLeavesKept);
  }

  Mapping MappingOf(const Leaf& leaf) {
    for (size_t d = 0; d < choice_.size(); ++d) choice_[d] = leaf.choice[d];
    tables_.Choose(choice_);
    Mapping mapping;
    DLA_CHECK(Fits(leaf.single, &mapping), "a leaf no longer fits");
    const uint32_t kept = DependenceMask(nest_, leaf.stationary);
    std::vector<int> inner;
    for (size_t d = 0; d < choice_.size(); ++d) {
      mapping.block.push_back(tables_.candidates()[d][At(leaf.choice[d])]);
      if (mapping.block[d] == nest_.dimensions[d].extent) continue;
      const bool outside = (kept & (uint32_t{1} << d)) != 0;
      (outside ? mapping.order : inner).push_back(static_cast<int>(d));
    }
    mapping.order.insert(mapping.order.end(), inner.begin(), inner.end());
    if (nest_.pass_dimension >= 0) OrderPasses(&mapping);
    return mapping;
  }

  // What is kept outermost, then the passes, then what is reduced over.
  void OrderPasses(Mapping* mapping) const {
    const auto rank = [&](int d) {
      if (d == nest_.pass_dimension) return 1;
      return (nest_.reduce_mask >> d & 1U) != 0 ? 2 : 0;
    };
    std::sort(mapping->order.begin(), mapping->order.end(),
              [&](int a, int b) { return std::pair(rank(a), a) < std::pair(rank(b), b); });
  }

  void Evaluate(const Mapping& mapping) {
    if (!results_.empty() && steps_walked_ + StepCount(nest_, mapping) > kStepBudget) return;
    SearchResult result;
    result.mapping = mapping;
    result.predicted = Predict(nest_, mapping, target_);
    ++evaluated_;
    steps_walked_ += StepCount(nest_, mapping);
    results_.push_back(std::move(result));
  }

  // The cheapest leaves exactly, the best few of them in every order of their loops; for `balanced`
  // then the leaves with fewer bytes until one is fast enough.
  std::optional<SearchResult> Choose() {
    KeepBest();
    constexpr size_t kExact = 10;
    constexpr size_t kPermuted = 2;
    for (size_t i = 0; i < std::min(kExact, leaves_.size()); ++i) {
      Mapping mapping = MappingOf(leaves_[i]);
      Evaluate(mapping);
      if (i >= kPermuted || nest_.pass_dimension >= 0 || mapping.order.size() > 4 ||
          leaves_[i].steps > 4096)
        continue;
      const std::vector<int> given = mapping.order;
      std::sort(mapping.order.begin(), mapping.order.end());
      do {
        if (mapping.order != given) Evaluate(mapping);
      } while (std::next_permutation(mapping.order.begin(), mapping.order.end()));
    }
    if (problem_.objective == Objective::kBalanced) EvaluateThrifty();
    return Best();
  }

  void EvaluateThrifty() {
    int64_t least = results_[0].predicted.cycles;
    for (const SearchResult& r : results_) least = std::min(least, r.predicted.cycles);
    const auto fast_enough = [&](int64_t cycles) {
      return static_cast<double>(cycles) <= kBalance * static_cast<double>(least);
    };
    std::stable_sort(leaves_.begin(), leaves_.end(), [](const Leaf& a, const Leaf& b) {
      return std::tuple(a.bound.bus_bytes, a.bound.cycles, a.steps) <
             std::tuple(b.bound.bus_bytes, b.bound.cycles, b.steps);
    });
    int tried = 0;
    for (const Leaf& leaf : leaves_) {
      if (!fast_enough(leaf.bound.cycles)) continue;
      const Mapping mapping = MappingOf(leaf);
      Evaluate(mapping);
      const bool was_evaluated = results_.back().mapping == mapping;
      if ((was_evaluated && fast_enough(results_.back().predicted.cycles)) || ++tried == 30) return;
    }
  }

  std::optional<SearchResult> Best() {
    int64_t least = results_[0].predicted.cycles;
    for (const SearchResult& r : results_) least = std::min(least, r.predicted.cycles);
    const ElementType type = nest_.operands[0].ReadType();
    const auto key = [&](const SearchResult& r) {
      const double cycles = static_cast<double>(r.predicted.cycles);
      const double bytes = static_cast<double>(r.predicted.dram_bus_bytes());
      const double energy = EnergyPj(r.predicted, target_, type);
      const bool slow = cycles > kBalance * static_cast<double>(least);
      double first = cycles;
      double second = bytes;
      switch (problem_.objective) {
        case Objective::kLatency:
          break;
        case Objective::kTraffic:
          first = bytes, second = cycles;
          break;
        case Objective::kEnergy:
          first = energy, second = cycles;
          break;
        case Objective::kEdp:
          first = energy * cycles, second = cycles;
          break;
        case Objective::kBalanced:
          first = bytes, second = cycles;
          break;
      }
      return std::tuple(problem_.objective == Objective::kBalanced && slow, first, second,
                        StepCount(nest_, r.mapping), r.mapping.block, r.mapping.order);
    };
    auto best = results_.begin();
    for (auto r = results_.begin(); r != results_.end(); ++r) {
      if (key(*r) < key(*best)) best = r;
    }
    best->points = points_;
    best->evaluated = evaluated_;
    return *best;
  }

  const SearchProblem& problem_;
  const ir::Nest& nest_;
  const machine::Target& target_;
  BoundTables tables_;
  MemoryChoices memories_;
  std::vector<BufferNeed> needs_;
  std::vector<uint32_t> singles_;
  std::vector<int> choice_;
  std::vector<Leaf> leaves_;
  std::vector<SearchResult> results_;
  int64_t best_ = 0;
  int64_t steps_limit_ = kStepsWanted;
  int64_t points_ = 0;
  int64_t evaluated_ = 0;
  int64_t steps_walked_ = 0;

 public:
  void AllowManySteps() { steps_limit_ = INT64_MAX; }
};

}  // namespace

namespace {

std::optional<SearchResult> SearchQuickly(const SearchProblem& problem) {
  for (const bool cut_kernel : {false, true}) {
    for (const bool many_steps : {false, true}) {
      Search search(problem, cut_kernel);
      if (many_steps) search.AllowManySteps();
      if (std::optional<SearchResult> result = search.Run()) return result;
    }
  }
  return std::nullopt;
}

Cost CostOf(const SearchProblem& problem, const machine::Counters& counters) {
  return {.bytes = static_cast<double>(counters.dram_bus_bytes()),
          .cycles = static_cast<double>(counters.cycles),
          .energy = EnergyPj(counters, *problem.target, problem.nest->operands[0].ReadType())};
}

}  // namespace

double MinimisedValue(Objective objective, const Cost& cost) {
  switch (objective) {
    case Objective::kLatency:
      return cost.cycles;
    case Objective::kEnergy:
      return cost.energy;
    case Objective::kEdp:
      return cost.energy * cost.cycles;
    case Objective::kTraffic:
    case Objective::kBalanced:
      break;
  }
  return cost.bytes;
}

bool IsBetter(Objective objective, const Cost& a, const Cost& b) {
  if (objective == Objective::kBalanced) {
    const double most = std::floor(kBalance * std::min(a.cycles, b.cycles));
    if ((a.cycles <= most) != (b.cycles <= most)) return a.cycles <= most;
  }
  const double first_a = MinimisedValue(objective, a), first_b = MinimisedValue(objective, b);
  if (first_a != first_b) return first_a < first_b;
  return objective == Objective::kLatency ? a.bytes < b.bytes : a.cycles < b.cycles;
}

std::optional<SearchResult> SearchMapping(const SearchProblem& problem) {
  if (problem.options.way == SearchWay::kQuick) return SearchQuickly(problem);
  const std::optional<ExactResult> exact = ExactSearch(problem);
  std::optional<SearchResult> result;
  const bool random = problem.options.way == SearchWay::kRandom;
  if (!exact || (!random && !exact->all_sizes)) result = SearchQuickly(problem);
  if (!exact) return result;
  Certificate certificate = {.proven = exact->proven,
                             .all_sizes = exact->all_sizes,
                             .least = exact->least,
                             .least_cycles = exact->least_cycles};
  int64_t points = exact->points, evaluated = exact->walked;
  if (result) points += result->points, evaluated += result->evaluated;
  if (!result || !IsBetter(problem.objective, CostOf(problem, result->predicted), exact->cost)) {
    result = SearchResult{.mapping = exact->mapping,
                          .predicted = Predict(*problem.nest, exact->mapping, *problem.target)};
  } else {
    // Sizes that the exact search did not look at.
    const double value = MinimisedValue(problem.objective, CostOf(problem, result->predicted));
    certificate.least = std::min(certificate.least, value);
    certificate.proven = certificate.least >= value && problem.objective != Objective::kBalanced;
  }
  result->certificate = certificate;
  result->points = points;
  result->evaluated = evaluated;
  return result;
}

bool AnyMappingFits(const SearchProblem& problem) {
  const ir::Nest& nest = *problem.nest;
  Mapping mapping;
  mapping.operands.resize(nest.operands.size());
  mapping.accumulator.is_double = false;
  const auto sizes = BlockCandidates(nest, *problem.target, true);
  for (size_t d = 0; d < nest.dimensions.size(); ++d) mapping.block.push_back(sizes[d].front());
  std::vector<BufferNeed> needs;
  for (int o = 0; o <= nest.output(); ++o) {
    needs.push_back({TileBytes(nest, mapping, *problem.target, o), 1});
  }
  const bool contracts = nest.anchor == ir::Anchor::kContraction;
  needs.push_back({contracts ? TileBytes(nest, mapping, *problem.target, kAccumulator) : 0, 1});
  return AssignMemories(nest, *problem.target, problem.free_bytes, problem.resident_in, needs,
                        &mapping);
}

}  // namespace dla::scheduler
