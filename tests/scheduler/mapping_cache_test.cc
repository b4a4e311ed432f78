// Mappings that come from elsewhere: what the search finds is legal by the check, damaged mappings
// are not, and mappings adapted from other sizes are legal and no better than proven ones. The seed
// is printed.
#include "scheduler/mapping_cache.h"

#include <gtest/gtest.h>

#include "machine/target_file.h"
#include "scheduler/mapping_fault.h"
#include "scheduler/predict.h"
#include "scheduler/reuse.h"
#include "scheduler/searcher.h"
#include "tests/codegen/layer_program.h"

namespace dla::testing {
namespace {

using scheduler::Mapping;
using scheduler::MappingFault;
using scheduler::SearchProblem;

// A target with little room, so that blocks must be cut.
machine::Target SmallTarget(const std::string& name) {
  machine::Target target = *machine::LoadTarget(name, {});
  for (machine::Memory& memory : target.memories) memory.bytes = 3072;
  return target;
}

SearchProblem ProblemOf(const ir::Nest& nest, const machine::Target& target) {
  SearchProblem problem = {.nest = &nest, .target = &target};
  problem.resident_in.assign(nest.operands.size(), -1);
  problem.objective = scheduler::Objective::kLatency;
  problem.options.budget = 3000;
  for (const machine::Memory& memory : target.memories) {
    problem.free_bytes.push_back(scheduler::UsableBytes(memory));
  }
  return problem;
}

scheduler::MappingCache::Answer AnswerOf(const ir::Nest& nest, const scheduler::SearchResult& r,
                                         const SearchProblem& problem) {
  scheduler::MappingCache::Answer answer = {.kind = scheduler::KindOf(nest, problem.resident_in),
                                            .mapping = r.mapping};
  for (const ir::Dimension& d : nest.dimensions) answer.extents.push_back(d.extent);
  return answer;
}

void ExpectDamageIsFound(const SearchProblem& problem, const Mapping& mapping) {
  const auto damaged = [&](auto damage) {
    Mapping other = mapping;
    damage(&other);
    return MappingFault(problem, other);
  };
  EXPECT_NE(damaged([](Mapping* m) { m->block[1] = 0; }), "");
  EXPECT_NE(damaged([](Mapping* m) { m->block.back() += 1; }), "");
  EXPECT_NE(damaged([](Mapping* m) { m->block.pop_back(); }), "");
  EXPECT_NE(damaged([](Mapping* m) { m->order.push_back(m->order.empty() ? 0 : m->order[0]); }),
            "");
  EXPECT_NE(damaged([](Mapping* m) { m->operands[0].memory = 99; }), "");
  EXPECT_NE(damaged([](Mapping* m) { m->operands[1].resident = true; }), "");
  EXPECT_NE(damaged([](Mapping* m) { m->operands[1].source = 0; }), "");
  EXPECT_NE(damaged([](Mapping* m) { m->operands.pop_back(); }), "");
  EXPECT_NE(damaged([](Mapping* m) { m->stripe.dimension = 0; }), "");
  SearchProblem smaller = problem;
  smaller.free_bytes.assign(smaller.free_bytes.size(), 0);
  EXPECT_NE(MappingFault(smaller, mapping), "");
}

void CheckRandom(const std::string& target_name, uint32_t seed, int runs) {
  std::printf("seed %u\n", seed);
  const machine::Target target = SmallTarget(target_name);
  std::mt19937 random(seed);
  scheduler::MappingCache::Answers answers;
  scheduler::MappingCache::Use use;
  int reused_count = 0;
  for (int run = 0; run < runs && !::testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    LayerCase layer = RandomLayer(&random);
    layer.residual = layer.relu = false;  // few classes
    const ir::Nest nest = NestOf(layer);
    const SearchProblem problem = ProblemOf(nest, target);
    const auto found = scheduler::SearchMapping(problem);
    const auto rule = scheduler::DefaultMapping(problem);
    EXPECT_EQ(found.has_value(), scheduler::AnyMappingFits(problem));
    if (!found) {
      EXPECT_FALSE(rule.has_value());
      continue;
    }
    EXPECT_EQ(MappingFault(problem, found->mapping), "");
    ExpectDamageIsFound(problem, found->mapping);
    ASSERT_TRUE(rule.has_value());
    const int64_t tried = use.adapted;
    const auto reused = scheduler::ReuseMapping(problem, answers, &use);
    ASSERT_TRUE(reused.has_value());
    for (const auto& result : {*rule, *reused}) {
      EXPECT_EQ(MappingFault(problem, result.mapping), "");
      EXPECT_TRUE(result.predicted == scheduler::Predict(nest, result.mapping, target));
      if (found->certificate.proven) {
        EXPECT_GE(result.predicted.cycles, found->predicted.cycles);
      }
    }
    EXPECT_LE(reused->predicted.cycles, rule->predicted.cycles);
    reused_count += use.adapted > tried;
    answers.insert_or_assign(scheduler::CostKey(nest), AnswerOf(nest, *found, problem));
  }
  EXPECT_GT(reused_count, runs / 8) << "hardly any layer had one of its class before it";
  EXPECT_GT(use.illegal, 0);
}

TEST(MappingCache, FoundAndAdaptedMappingsAreLegal) { CheckRandom("edge32", 31, 1000); }
TEST(MappingCache, FoundAndAdaptedMappingsAreLegalInOnePool) {
  CheckRandom("edge32-unified", 32, 1000);
}

// What is repeated changes the counters: a nest is never answered with those of another slice.
TEST(MappingCache, WhatIsRepeatedIsAQuestionOfItsOwn) {
  const machine::Target target = SmallTarget("edge32");
  scheduler::MappingCache cache("", "test");
  scheduler::Searcher searcher(target, scheduler::Objective::kLatency, {.budget = 3000}, &cache);
  std::mt19937 random(34);
  int told_apart = 0;
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    const ir::Nest nest = NestOf(RandomLayer(&random));
    ir::Nest slice = nest;
    for (ir::Dimension& d : slice.dimensions) {
      if (d.name == "E") d.repeated = d.extent;
    }
    const std::vector<int> nothing(nest.operands.size(), -1);
    const std::vector<int64_t> free(target.memories.size(), 0);
    for (const ir::Nest& asked : {nest, slice, nest}) {
      const scheduler::SearchResult* found = searcher.Find(asked, nothing, free);
      if (found == nullptr) continue;
      EXPECT_TRUE(found->predicted == scheduler::Predict(asked, found->mapping, target));
      told_apart += found->predicted.macs_array == 0 && found->predicted.macs_issued > 0;
    }
  }
  EXPECT_GT(told_apart, 50);
}

// Wrong answers of another size do no harm.
TEST(MappingCache, UnsoundAnswersAreLeftOut) {
  const machine::Target target = SmallTarget("edge32");
  std::mt19937 random(33);
  const LayerCase layer = RandomLayer(&random);
  const ir::Nest nest = NestOf(layer);
  const SearchProblem problem = ProblemOf(nest, target);
  const auto found = scheduler::SearchMapping(problem);
  ASSERT_TRUE(found.has_value());
  const auto sound = AnswerOf(nest, *found, problem);
  std::vector<scheduler::MappingCache::Answer> wrong(5, sound);
  wrong[0].extents.clear();
  wrong[1].mapping.block[0] = 0;
  wrong[2].mapping.block[1] = sound.extents[1] + 1;
  wrong[3].mapping.order = {-1};
  wrong[4].mapping.operands.clear();
  for (const auto& answer : wrong) {
    scheduler::MappingCache::Use use;
    EXPECT_TRUE(scheduler::ReuseMapping(problem, {{{1}, answer}}, &use).has_value());
    EXPECT_EQ(use.adapted, 0);
  }
}

}  // namespace
}  // namespace dla::testing
