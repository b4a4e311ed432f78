// The exact search against everything: small layers on small machines, every integer block size,
// every order, every set of single buffers, every assignment to scratchpads. Seeds are printed.
#include "scheduler/exact/exact_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "machine/target_file.h"
#include "scheduler/layer.h"
#include "scheduler/mapping_fault.h"
#include "scheduler/predict.h"
#include "scheduler/reuse.h"
#include "scheduler/searcher.h"
#include "scheduler/transfers.h"
#include "tests/codegen/layer_program.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// What all mappings of a problem reach: least of each objective.
struct Everything {
  int64_t mappings = 0;
  std::vector<Cost> costs;

  double Least(Objective objective) const {
    double least_cycles = INFINITY;
    for (const Cost& c : costs) least_cycles = std::min(least_cycles, c.cycles);
    double least = INFINITY;
    for (const Cost& c : costs) {
      double value = 0;
      switch (objective) {
        case Objective::kLatency:
          value = c.cycles;
          break;
        case Objective::kTraffic:
          value = c.bytes;
          break;
        case Objective::kEnergy:
          value = c.energy;
          break;
        case Objective::kEdp:
          value = c.energy * c.cycles;
          break;
        case Objective::kBalanced:
          value = c.cycles <= std::floor(kBalance * least_cycles) ? c.bytes : INFINITY;
          break;
      }
      least = std::min(least, value);
    }
    return least;
  }
};

// Enumerates without any of the search's code: places first, then blocks, then orders.
class Enumerator {
 public:
  explicit Enumerator(const SearchProblem& problem)
      : problem_(problem), nest_(*problem.nest), target_(*problem.target) {}

  Everything Run() {
    mapping_.block.assign(nest_.dimensions.size(), 1);
    mapping_.operands.resize(nest_.operands.size());
    Blocks(0);
    return std::move(all_);
  }

 private:
  void Blocks(size_t d) {
    if (d == nest_.dimensions.size()) {
      mapping_.order.clear();
      for (size_t i = 0; i < d; ++i) {
        if (mapping_.block[i] < nest_.dimensions[i].extent) {
          mapping_.order.push_back(static_cast<int>(i));
        }
      }
      Place(-1);
      return;
    }
    const bool whole = nest_.anchor != ir::Anchor::kContraction &&
                       (nest_.IsReduction(static_cast<int>(d)) || nest_.reduce_mask >> d & 1U);
    const int64_t extent = nest_.dimensions[d].extent;
    for (int64_t size = whole ? extent : 1; size <= extent; ++size) {
      mapping_.block[d] = size;
      Blocks(d + 1);
    }
  }

  // Places of the accumulators (-1) and of the operands behind `o`.
  void Place(int o) {
    if (o > nest_.output()) {
      if (IsAsAsked() && Fits()) Orders();
      return;
    }
    if (o == kAccumulator && nest_.anchor != ir::Anchor::kContraction) return Place(0);
    OperandPlace& place = o == kAccumulator ? mapping_.accumulator : mapping_.operands[At(o)];
    const OperandClass cls = o == kAccumulator ? OperandClass::kPartial : nest_.operands[At(o)].cls;
    const int stays = o == kAccumulator ? -1 : problem_.resident_in[At(o)];
    if (stays >= 0) {
      place = {.memory = stays, .resident = true};
      return Place(o + 1);
    }
    for (int m = 0; m < static_cast<int>(target_.memories.size()); ++m) {
      if (!target_.memories[At(m)].Holds(cls)) continue;
      for (const bool is_double : {false, true}) {
        place = {.memory = m, .is_double = is_double};
        Place(o + 1);
      }
    }
  }

  // Does every operand that has more than one tile have the buffers that were asked for?
  bool IsAsAsked() const {
    const BufferRule rule = problem_.options.buffers;
    for (int o = kAccumulator; o <= nest_.output() && rule != BufferRule::kBest; ++o) {
      if (o == kAccumulator && nest_.anchor != ir::Anchor::kContraction) continue;
      if (o == nest_.output() && DrainsInPlace(nest_, mapping_)) continue;
      const OperandPlace& place =
          o == kAccumulator ? mapping_.accumulator : mapping_.operands[At(o)];
      bool has_tiles = false;
      for (const int d : mapping_.order) {
        has_tiles = has_tiles || nest_.DependsOn(o == kAccumulator ? nest_.output() : o, d);
      }
      const bool is_made = o == kAccumulator || o == nest_.output();
      const bool two =
          rule == BufferRule::kDouble || (rule == BufferRule::kInputsDouble && !is_made);
      if (has_tiles && !place.resident && place.is_double != two) return false;
    }
    return true;
  }

  bool Fits() const {
    std::vector<int64_t> used(target_.memories.size(), 0);
    for (int o = kAccumulator; o <= nest_.output(); ++o) {
      if (o == kAccumulator && nest_.anchor != ir::Anchor::kContraction) continue;
      const OperandPlace& place =
          o == kAccumulator ? mapping_.accumulator : mapping_.operands[At(o)];
      used[At(place.memory)] += BufferBytes(nest_, mapping_, target_, o);
    }
    for (size_t m = 0; m < used.size(); ++m) {
      if (used[m] > problem_.free_bytes[m]) return false;
    }
    return true;
  }

  void Orders() {
    std::sort(mapping_.order.begin(), mapping_.order.end());
    do {
      const machine::Counters c = Predict(nest_, mapping_, target_);
      all_.costs.push_back({static_cast<double>(c.dram_bus_bytes()), static_cast<double>(c.cycles),
                            EnergyPj(c, target_, nest_.operands[0].ReadType())});
    } while (std::next_permutation(mapping_.order.begin(), mapping_.order.end()));
  }

  const SearchProblem& problem_;
  const ir::Nest& nest_;
  const machine::Target& target_;
  Mapping mapping_;
  Everything all_;
};

machine::Target RandomTarget(std::mt19937* random) {
  const auto below = [&](uint32_t n) { return static_cast<int64_t>((*random)() % n); };
  const char* const names[] = {"edge32",    "edge32-ideal", "edge32-ws",
                               "edge32-is", "meta-df",      "edge32-unified"};
  machine::Target target = *machine::LoadTarget(names[below(6)], {});
  target.dram.burst_bytes = int64_t{1} << below(7);
  target.dram.latency_cycles = below(2) * below(60);
  target.dram.bytes_per_cycle = {1 + below(16), 1 + below(2)};
  target.dma_startup_cycles = below(3) * 4;
  target.array.rows = 1 + below(4);
  target.array.cols = 1 + below(4);
  target.vector.lanes = 1 + below(8);
  for (machine::Memory& memory : target.memories) {
    memory.bytes = 24 + below(1 + static_cast<uint32_t>(below(400)));
    memory.align_bytes = int64_t{1} << below(3);
    memory.energy_pj_per_byte = 1 + static_cast<double>(below(20)) / 4;
  }
  if (below(3) == 0 && target.memories.size() == 3) {
    target.memories[2].holds[static_cast<size_t>(OperandClass::kInput)] = true;
    target.memories[0].holds[static_cast<size_t>(OperandClass::kPartial)] = true;
  }
  if (below(4) == 0) target.memories[0].bytes_per_cycle = machine::Rational{1 + below(8), 1};
  return target;
}

// Vectors of block sizes times orders.
int64_t SizeOf(const ir::Nest& nest) {
  int64_t size = 1;
  int64_t cut = 1;
  for (const ir::Dimension& d : nest.dimensions) {
    size *= d.extent;
    if (d.extent > 1) size *= cut++;
  }
  return size;
}

// A convolution, now and then with bias, residual and Relu.
ir::Nest RandomLayerNest(std::mt19937* random) {
  const auto below = [&](uint32_t n) { return static_cast<int64_t>((*random)() % n); };
  Layer layer;
  const auto small = [&] { return 1 + below(2) * below(4); };
  layer.N = 1 + below(4) / 3;
  layer.G = 1 + below(4) / 3;
  layer.M = small(), layer.C = small();
  layer.E = 1 + below(5), layer.F = small();
  layer.R = 1 + below(3), layer.S = 1 + below(4) / 3;
  layer.stride = 1 + below(2), layer.dilation = 1 + below(2), layer.pad = below(2);
  const auto lines = [&](int64_t out, int64_t taps) {
    return std::max<int64_t>(
        (out - 1) * layer.stride + (taps - 1) * layer.dilation + 1 - 2 * layer.pad + below(2), 1);
  };
  layer.H = lines(layer.E, layer.R), layer.W = lines(layer.F, layer.S);
  if (below(2) == 0) return NestOf(layer, ElementType::kI8);
  testing::LayerCase fused = {.layer = layer};
  fused.bias = below(2) == 0;
  fused.residual = below(4) == 0;
  fused.relu = below(2) == 0;
  return testing::NestOf(fused);
}

// Elements of a by b by c plus a broadcast operand, summed over c or not.
ir::Nest RandomVectorNest(std::mt19937* random) {
  const auto below = [&](uint32_t n) { return static_cast<int64_t>((*random)() % n); };
  ir::Nest nest;
  nest.dimensions = {{"a", 1 + below(5)}, {"b", 1 + below(5)}, {"c", 1 + below(4)}};
  const auto operand = [&](std::vector<int> dims) {
    ir::Operand result = {.cls = OperandClass::kVector, .type = ElementType::kF32};
    for (const int d : dims) {
      result.axes.push_back({.terms = {{.dimension = d}}, .bound = nest.dimensions[At(d)].extent});
    }
    int64_t stride = 1;
    for (size_t a = result.axes.size(); a-- > 0; stride *= result.axes[a].bound) {
      result.axes[a].stride = stride;
    }
    return result;
  };
  const bool sums = below(2) == 0;
  nest.operands = {operand({0, 1, 2}), operand({below(2) == 0 ? 1 : 0}),
                   sums ? operand({0, 1}) : operand({0, 1, 2})};
  nest.program.ops = {{.op = MicroOp::kLoad, .operand = 0},
                      {.op = MicroOp::kLoad, .operand = 1},
                      {.op = MicroOp::kAdd, .argument = {0, 1}}};
  if (sums) nest.program.ops.push_back({.op = MicroOp::kReduceSum, .argument = {2}});
  return nest;
}

// With few enough mappings to try them all.
ir::Nest RandomNest(std::mt19937* random) {
  while (true) {
    ir::Nest nest = (*random)() % 4 == 0 ? RandomVectorNest(random) : RandomLayerNest(random);
    if (SizeOf(nest) <= 600) return nest;
  }
}

SearchProblem ProblemOf(const ir::Nest& nest, const machine::Target& target) {
  SearchProblem problem = {.nest = &nest, .target = &target};
  for (const machine::Memory& memory : target.memories) {
    problem.free_bytes.push_back(UsableBytes(memory));
  }
  problem.resident_in.assign(nest.operands.size(), -1);
  problem.options.budget = int64_t{1} << 40;
  return problem;
}

constexpr Objective kObjectives[] = {Objective::kLatency, Objective::kTraffic, Objective::kEnergy,
                                     Objective::kEdp, Objective::kBalanced};

void CompareWithEverything(const SearchProblem& given, const Everything& all) {
  for (const Objective objective : kObjectives) {
    SCOPED_TRACE(std::string(ObjectiveName(objective)));
    SearchProblem problem = given;
    problem.objective = objective;
    const std::optional<ExactResult> found = ExactSearch(problem);
    ASSERT_EQ(found.has_value(), !all.costs.empty());
    if (!found) continue;
    const double least = all.Least(objective);
    EXPECT_TRUE(found->proven);
    EXPECT_NEAR(MinimisedValue(objective, found->cost), least, 1e-9 * least);
    EXPECT_NEAR(found->least, least, 1e-9 * least);
    // It is what it says it is.
    const machine::Counters c = Predict(*problem.nest, found->mapping, *problem.target);
    EXPECT_EQ(found->cost.bytes, static_cast<double>(c.dram_bus_bytes()));
    EXPECT_EQ(found->cost.cycles, static_cast<double>(c.cycles));
  }
}

// Now and then a value that stays on chip.
void AddResident(const machine::Target& target, std::mt19937* random, SearchProblem* problem) {
  if ((*random)() % 3 != 0) return;
  const size_t o = (*random)() % problem->nest->operands.size();
  const int m = static_cast<int>((*random)() % target.memories.size());
  if (!target.memories[At(m)].Holds(problem->nest->operands[o].cls)) return;
  problem->resident_in[o] = m;
}

TEST(ExactSearch, EqualsEnumerationOfEverything) {
  constexpr uint32_t kSeed = 1;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  int64_t mappings = 0;
  for (int run = 0; run < 120 && !::testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    const machine::Target target = RandomTarget(&random);
    const ir::Nest nest = RandomNest(&random);
    SearchProblem problem = ProblemOf(nest, target);
    AddResident(target, &random, &problem);
    const Everything all = Enumerator(problem).Run();
    mappings += static_cast<int64_t>(all.costs.size());
    CompareWithEverything(problem, all);
  }
  std::printf("%lld mappings\n", static_cast<long long>(mappings));
}

constexpr BufferRule kBufferRules[] = {BufferRule::kSingle, BufferRule::kInputsDouble,
                                       BufferRule::kDouble};

// With the buffers that were asked for, the best of everything that has them; never better than
// with any buffers.
TEST(ExactSearch, KeepsToTheBuffersAskedFor) {
  constexpr uint32_t kSeed = 7;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  int fewer = 0;
  for (int run = 0; run < 60 && !::testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    const machine::Target target = RandomTarget(&random);
    const ir::Nest nest = RandomNest(&random);
    SearchProblem problem = ProblemOf(nest, target);
    AddResident(target, &random, &problem);
    const Everything any = Enumerator(problem).Run();
    for (const BufferRule rule : kBufferRules) {
      SCOPED_TRACE(std::string(BufferRuleName(rule)));
      problem.options.buffers = rule;
      const Everything all = Enumerator(problem).Run();
      if (all.costs.size() < any.costs.size()) ++fewer;
      CompareWithEverything(problem, all);
      for (const SearchWay way : {SearchWay::kExact, SearchWay::kQuick, SearchWay::kNone}) {
        problem.options.way = way;
        const auto found =
            way == SearchWay::kNone ? DefaultMapping(problem) : SearchMapping(problem);
        EXPECT_TRUE(!found || KeepsTo(rule, nest, found->mapping)) << static_cast<int>(way);
      }
      problem.options.way = SearchWay::kExact;
      problem.options.buffers = BufferRule::kBest;
      for (const Objective objective : kObjectives) {
        if (objective == Objective::kBalanced) continue;  // of other limits of cycles
        EXPECT_LE(any.Least(objective), all.Least(objective));
      }
    }
  }
  EXPECT_GT(fewer, 60);
}

// A nest that no double buffers fit has others, but one that residents leave too little room is
// refused.
TEST(Searcher, TakesOtherBuffersWhereNoneFit) {
  machine::Target target = *machine::LoadTarget("edge32-unified", {});
  const ir::Nest nest =
      NestOf({.M = 4, .C = 4, .E = 4, .F = 4, .R = 3, .S = 3, .H = 6, .W = 6}, ElementType::kF32);
  const std::vector<int> none(nest.operands.size(), -1);
  SearchOptions options;
  options.buffers = BufferRule::kDouble;
  int others = 0, refused = 0, as_asked = 0;
  for (int64_t bytes = 16; bytes <= 256; bytes += 16) {
    target.memories[0].bytes = bytes;
    Searcher searcher(target, Objective::kLatency, options);
    Searcher any(target, Objective::kLatency, SearchOptions());
    const SearchResult* found = searcher.Find(nest, none, {0});
    EXPECT_EQ(found == nullptr, any.Find(nest, none, {0}) == nullptr);
    if (found == nullptr) continue;
    if (!KeepsTo(BufferRule::kDouble, nest, found->mapping)) {
      ++others;
      continue;
    }
    ++as_asked;
    for (int64_t taken = 16; taken < bytes; taken += 16) {
      const SearchResult* beside = searcher.Find(nest, none, {taken});
      EXPECT_TRUE(beside == nullptr || KeepsTo(BufferRule::kDouble, nest, beside->mapping));
      if (beside == nullptr && any.Find(nest, none, {taken}) != nullptr) ++refused;
    }
  }
  EXPECT_GT(others, 0);
  EXPECT_GT(refused, 0);
  EXPECT_GT(as_asked, 0);
}

TEST(ExactSearch, NoRuleChangesAnOptimum) {
  constexpr uint32_t kSeed = 2;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  std::array<int64_t, kRuleCount> saved{};
  for (int run = 0; run < 60 && !::testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    const machine::Target target = RandomTarget(&random);
    const ir::Nest nest = RandomNest(&random);
    for (const Objective objective : kObjectives) {
      SearchProblem problem = ProblemOf(nest, target);
      problem.objective = objective;
      const std::optional<ExactResult> with = ExactSearch(problem);
      for (int r = 0; r < kRuleCount; ++r) {
        SCOPED_TRACE(std::string(RuleName(static_cast<Rule>(r))));
        SearchProblem loose = problem;
        loose.options.rules.Disable(static_cast<Rule>(r));
        const std::optional<ExactResult> without = ExactSearch(loose);
        ASSERT_EQ(with.has_value(), without.has_value());
        if (!with) continue;
        EXPECT_TRUE(without->proven);
        const double least = MinimisedValue(objective, with->cost);
        EXPECT_NEAR(MinimisedValue(objective, without->cost), least, 1e-9 * least);
        saved[At(r)] += without->points + without->walked - with->points - with->walked;
      }
    }
  }
  // Each rule is of use.
  for (int r = 0; r < kRuleCount; ++r) {
    EXPECT_GT(saved[At(r)], 0) << RuleName(static_cast<Rule>(r));
  }
}

TEST(ExactSearch, MoreRoomIsNeverWorse) {
  constexpr uint32_t kSeed = 3;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  const ir::Nest nest =
      NestOf({.M = 24, .C = 10, .E = 9, .F = 9, .R = 3, .S = 3, .pad = 1, .H = 9, .W = 9},
             ElementType::kI8);
  for (const char* name : {"edge32", "edge32-ws", "edge32-unified"}) {
    SCOPED_TRACE(name);
    machine::Target target = *machine::LoadTarget(name, {});
    target.array.rows = target.array.cols = 8;
    for (const Objective objective : kObjectives) {
      SCOPED_TRACE(std::string(ObjectiveName(objective)));
      SearchProblem problem = ProblemOf(nest, target);
      problem.objective = objective;
      problem.free_bytes.assign(target.memories.size(), 208);
      double before = INFINITY;
      for (int step = 0; step < 16; ++step) {
        const std::optional<ExactResult> found = ExactSearch(problem);
        const bool balanced = objective == Objective::kBalanced;
        if (found) {
          EXPECT_TRUE(found->proven);
          const double value =
              balanced ? found->least_cycles : MinimisedValue(objective, found->cost);
          EXPECT_LE(value, before);
          before = value;
        } else {
          EXPECT_EQ(before, INFINITY);
        }
        problem.free_bytes[random() % problem.free_bytes.size()] +=
            16 * (1 + static_cast<int64_t>(random() % 12));
      }
      EXPECT_LT(before, INFINITY);
    }
  }
}

// When the budget ends the bound is still one, and more evaluations tighten it.
TEST(ExactSearch, AnEndedBudgetLeavesALowerBound) {
  const machine::Target target = *machine::LoadTarget("edge32", {});
  const ir::Nest nest =
      NestOf({.M = 128, .C = 64, .E = 28, .F = 28, .R = 3, .S = 3, .pad = 1, .H = 28, .W = 28},
             ElementType::kF32);
  for (const Objective objective : kObjectives) {
    SCOPED_TRACE(std::string(ObjectiveName(objective)));
    SearchProblem problem = ProblemOf(nest, target);
    problem.objective = objective;
    problem.options.budget = 1'000'000;
    const std::optional<ExactResult> best = ExactSearch(problem);
    ASSERT_TRUE(best && best->proven);
    double least = 0;
    for (problem.options.budget = 16; problem.options.budget < 4096; problem.options.budget *= 4) {
      const std::optional<ExactResult> found = ExactSearch(problem);
      ASSERT_TRUE(found.has_value());
      EXPECT_LE(found->least, MinimisedValue(objective, found->cost));
      if (objective != Objective::kBalanced) {
        EXPECT_LE(found->least, best->least * (1 + 1e-9));
        EXPECT_GE(found->least, least);
      }
      least = found->least;
    }
  }
}

}  // namespace
}  // namespace dla::scheduler
