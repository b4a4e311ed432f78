// Predictions against the brute-force walk: random layers with everything that can be fused, random
// mappings. The seed is printed.
#include "tests/scheduler/nest_walk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "machine/target_file.h"
#include "scheduler/axis_lengths.h"
#include "scheduler/predict.h"
#include "scheduler/transfers.h"
#include "tests/codegen/layer_program.h"
#include "tests/random_pick.h"

namespace dla::testing {
namespace {

void Compare(const std::string& target_name, uint32_t seed, int runs,
             LayerCase (*make)(std::mt19937*) = RandomLayer) {
  std::printf("seed %u\n", seed);
  const Result<machine::Target> target = machine::LoadTarget(target_name, {});
  ASSERT_TRUE(target.ok()) << target.status().message();
  std::mt19937 random(seed);
  for (int run = 0; run < runs && !::testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    const LayerCase layer = make(&random);
    const ir::Nest nest = NestOf(layer);
    scheduler::Mapping mapping = RandomMapping(nest, &random);
    if (target->memories.size() == 3) {
      mapping.accumulator.memory = 2;
      mapping.operands.back().memory = random() % 2 == 0 ? 2 : 0;
    }
    const Walk walk = WalkNest(nest, mapping, *target);
    const machine::Counters predicted = scheduler::Predict(nest, mapping, *target);
    EXPECT_EQ(predicted.cycles, walk.cycles);
    EXPECT_EQ(predicted.macs_issued, walk.macs);
    EXPECT_EQ(predicted.macs_array * layer.pack, walk.macs);
    EXPECT_EQ(scheduler::StepCount(nest, mapping), walk.steps);
    machine::Counters expected;
    for (size_t o = 0; o < walk.operands.size(); ++o) {
      const OperandClass cls =
          o == nest.operands.size() ? OperandClass::kPartial : nest.operands[o].cls;
      machine::Counters::Traffic& t = expected.traffic[static_cast<size_t>(cls)];
      t.load_bytes += walk.operands[o].load_bytes;
      t.store_bytes += walk.operands[o].store_bytes;
      t.load_bus_bytes += walk.operands[o].load_bus_bytes;
      t.store_bus_bytes += walk.operands[o].store_bus_bytes;
      expected.descriptors += walk.operands[o].descriptors;
    }
    EXPECT_TRUE(predicted.traffic == expected.traffic);
    EXPECT_EQ(predicted.descriptors, expected.descriptors);
    for (int o = 0; o <= nest.output(); ++o) {
      const int64_t bytes = scheduler::TileBytes(nest, mapping, *target, o);
      EXPECT_EQ(bytes, 4 * walk.operands[static_cast<size_t>(o)].largest_tile);
    }
  }
}

TEST(NestWalk, Edge32) { Compare("edge32", 21, 1000); }
// All groups side by side cost what one group of as many channels does, but for nominal MACs.
TEST(NestWalk, AllGroupsPackedAreOneGroup) {
  std::printf("seed 25\n");
  std::mt19937 random(25);
  for (const char* name : {"edge32", "edge32-ws", "edge32-is", "meta-df"}) {
    const machine::Target target = *machine::LoadTarget(name, {});
    for (int run = 0; run < 100; ++run) {
      LayerCase packed = RandomPackedLayer(&random);
      packed.types = {};
      packed.layer.G = packed.pack;
      LayerCase dense = packed;
      dense.pack = dense.layer.G = 1;
      dense.layer.M *= packed.pack;
      dense.layer.C *= packed.pack;
      const ir::Nest nest = NestOf(packed), one = NestOf(dense);
      scheduler::Mapping mapping = RandomMapping(nest, &random);
      for (scheduler::OperandPlace& place : mapping.operands) place.memory = 1;
      machine::Counters a = scheduler::Predict(nest, mapping, target);
      const machine::Counters b = scheduler::Predict(one, mapping, target);
      EXPECT_EQ(a.macs_array * packed.pack, b.macs_array);
      a.macs_array = b.macs_array;
      EXPECT_TRUE(a == b) << name << " run " << run;
    }
  }
}

TEST(NestWalk, PackedGroups) {
  Compare("edge32", 24, 500, [](std::mt19937* random) {
    LayerCase layer = RandomPackedLayer(random);
    layer.types = {};
    return layer;
  });
}
TEST(NestWalk, Edge32Unified) { Compare("edge32-unified", 22, 500); }
TEST(NestWalk, Edge32Ideal) { Compare("edge32-ideal", 23, 500); }

// Strides, dilations, padding and gaps: the closed form against a walk over all points.
TEST(TouchedEntries, EqualsAWalk) {
  constexpr uint32_t kSeed = 11;
  std::printf("seed %u\n", kSeed);
  std::mt19937 random(kSeed);
  const RandomPick pick(&random);
  for (int run = 0; run < 20000; ++run) {
    ir::Nest nest;
    ir::Axis axis = {.terms = {}, .offset = pick(-6, 3), .bound = pick(1, 40), .stride = 1};
    const int64_t dims = pick(0, 3);
    for (int d = 0; d < dims; ++d) {
      nest.dimensions.push_back({"d" + std::to_string(d), pick(1, 6)});
      axis.terms.push_back({d, pick(1, 7)});
    }
    std::set<int64_t> touched = {axis.offset};
    for (int d = 0; d < dims; ++d) {
      std::set<int64_t> further;
      for (const int64_t at : touched) {
        for (int64_t i = 0; i < nest.dimensions[static_cast<size_t>(d)].extent; ++i) {
          further.insert(at + i * axis.terms[static_cast<size_t>(d)].coefficient);
        }
      }
      touched = std::move(further);
    }
    const auto inside = std::count_if(touched.begin(), touched.end(),
                                      [&](int64_t at) { return at >= 0 && at < axis.bound; });
    ASSERT_EQ(scheduler::TouchedEntries(nest, axis), inside) << "run " << run;
  }
}

}  // namespace
}  // namespace dla::testing
