// Damaged programs are noticed: mutants of programs emitted for random layers and mappings.
#include "tests/codegen/mutants.h"

#include <gtest/gtest.h>

#include <cmath>

#include "machine/target_file.h"
#include "machine/verifier.h"
#include "tests/codegen/layer_program.h"

namespace dla::testing {
namespace {

constexpr int64_t kFewestSteps = 2, kMostSteps = 60, kMostElements = 6000;

int64_t StepsOf(const ir::Nest& nest, const scheduler::Mapping& mapping) {
  int64_t steps = 1;
  for (size_t d = 0; d < nest.dimensions.size(); ++d) {
    steps *= (nest.dimensions[d].extent + mapping.block[d] - 1) / mapping.block[d];
  }
  return steps;
}

// A random layer, small enough to run it a thousand times, and a mapping with some steps.
machine::Program RandomProgram(const std::string& target_name, LayerCase* layer,
                               std::mt19937* random) {
  const Result<machine::Target> target = machine::LoadTarget(target_name, {});
  DLA_CHECK(target.ok(), target.status().message());
  while (true) {
    *layer = RandomLayer(random);
    const ir::Nest nest = NestOf(*layer);
    scheduler::Mapping mapping = RandomMapping(nest, random);
    const int64_t steps = StepsOf(nest, mapping);
    const size_t elements =
        layer->input.size() + layer->weight.size() + layer->residual_values.size();
    if (steps < kFewestSteps || steps > kMostSteps || elements > kMostElements) continue;
    // Neither a product nor a sum of weights is nothing, and no relu hides padding: all of it
    // matters.
    for (float& weight : layer->weight) weight = std::abs(weight) + 0.125F;
    for (float& bias : layer->bias_values) bias = std::abs(bias);
    if (target->memories.size() > 1) PlaceInThree(nest, &mapping, random);
    return ProgramOf(ScheduleOf(*layer, mapping, *target));
  }
}

TEST(Mutants, OfRandomProgramsAreNoticedOrEquivalent) {
  constexpr uint32_t kSeed = 21;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  FateTable table;
  for (int run = 0; run < 90 && !HasFailure(); ++run) {
    const char* targets[] = {"edge32", "edge32-unified", "edge32-ideal-unified"};
    SCOPED_TRACE("program " + std::to_string(run));
    LayerCase layer;
    const machine::Program program = RandomProgram(targets[run % 3], &layer, &random);
    JudgeMutants(program, InputsOf(layer, program), 6, &random, &table);
  }
  table.Print();
  table.ExpectEachKindNoticed();
}

}  // namespace
}  // namespace dla::testing
