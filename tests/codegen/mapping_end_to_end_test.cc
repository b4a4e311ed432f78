// Any mapping of any layer: the emitted program computes the layer, and what the emulator counts
// is what was predicted. Layers and mappings are random; the seed is printed.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <sstream>

#include "machine/target_file.h"
#include "machine/verifier.h"
#include "tests/codegen/layer_program.h"

namespace dla::testing {
namespace {

std::string Describe(const LayerCase& c, const ir::Nest& nest, const scheduler::Mapping& mapping) {
  std::ostringstream out;
  out << "extents/blocks";
  for (size_t d = 0; d < nest.dimensions.size(); ++d) {
    out << " " << nest.dimensions[d].name << "=" << nest.dimensions[d].extent << "/"
        << mapping.block[d];
    if (nest.dimensions[d].repeated > 0) out << " repeated " << nest.dimensions[d].repeated;
  }
  out << " order ";
  for (const int d : mapping.order) out << nest.dimensions[static_cast<size_t>(d)].name;
  out << " stride " << c.layer.stride << " dilation " << c.layer.dilation << " pad " << c.layer.pad
      << " H " << c.layer.H << " W " << c.layer.W << " bias " << c.bias << " residual "
      << c.residual << " relu " << c.relu << " types";
  for (const ElementType type :
       {c.types.input, c.types.weight, c.types.residual, c.types.output, c.types.array}) {
    out << " " << TypeName(type);
  }
  out << " buffers";
  for (const scheduler::OperandPlace& p : mapping.operands) out << " " << p.memory << p.is_double;
  out << " acc " << mapping.accumulator.memory << mapping.accumulator.is_double;
  return out.str();
}

void ExpectSameCounts(const machine::Counters& counted, const machine::Counters& predicted) {
  EXPECT_EQ(counted.cycles, predicted.cycles);
  for (size_t c = 0; c < counted.traffic.size(); ++c) {
    SCOPED_TRACE(std::string(ClassName(static_cast<OperandClass>(c))));
    EXPECT_EQ(counted.traffic[c].load_bytes, predicted.traffic[c].load_bytes);
    EXPECT_EQ(counted.traffic[c].store_bytes, predicted.traffic[c].store_bytes);
    EXPECT_EQ(counted.traffic[c].load_bus_bytes, predicted.traffic[c].load_bus_bytes);
    EXPECT_EQ(counted.traffic[c].store_bus_bytes, predicted.traffic[c].store_bus_bytes);
  }
  for (size_t m = 0; m < counted.memory.size(); ++m) {
    SCOPED_TRACE("memory " + std::to_string(m));
    EXPECT_EQ(counted.memory[m].read_bytes, predicted.memory[m].read_bytes);
    EXPECT_EQ(counted.memory[m].write_bytes, predicted.memory[m].write_bytes);
  }
  EXPECT_EQ(counted.macs_issued, predicted.macs_issued);
  EXPECT_EQ(counted.macs_array, predicted.macs_array);
  EXPECT_EQ(counted.vector_ops, predicted.vector_ops);
  EXPECT_EQ(counted.descriptors, predicted.descriptors);
  EXPECT_TRUE(counted == predicted);
}

// Equal, not-a-numbers in the same places.
void ExpectSameValues(const std::vector<float>& values, const std::vector<float>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]) && std::isnan(expected[i])) continue;
    ASSERT_EQ(values[i], expected[i]) << "element " << i;
  }
}

// Random layers and mappings on a target; memories by `place`.
template <typename Place>
void RunRandom(const std::string& target_name, uint32_t seed, int runs, const Place& place,
               LayerCase (*make)(std::mt19937*) = RandomLayer,
               const std::function<void(machine::Target*)>& change = nullptr) {
  std::printf("seed %u\n", seed);
  Result<machine::Target> target = machine::LoadTarget(target_name, {});
  ASSERT_TRUE(target.ok()) << target.status().message();
  if (change) change(&*target);
  std::mt19937 random(seed);
  for (int run = 0; run < runs; ++run) {
    const LayerCase layer = make(&random);
    const ir::Nest nest = NestOf(layer);
    scheduler::Mapping mapping = RandomMapping(nest, &random);
    place(nest, &mapping, &random);
    SCOPED_TRACE("run " + std::to_string(run) + " " + Describe(layer, nest, mapping));
    const scheduler::Schedule schedule = ScheduleOf(layer, mapping, *target);
    const machine::Program program = ProgramOf(schedule);
    const Status verified = machine::VerifyProgram(program);
    ASSERT_TRUE(verified.ok()) << verified.message();
    const Ran ran = RunProgram(layer, program, true, std::nullopt);
    ASSERT_EQ(ran.error, "");
    ExpectSameValues(ran.output, Expected(layer));
    ExpectSameCounts(ran.counters[0], schedule.groups[0].predicted);
    EXPECT_EQ(ran.counters[0].macs_array, NominalMacs(layer));
    const Ran jittered = RunProgram(layer, program, false, random());
    ASSERT_EQ(jittered.error, "");
    ExpectSameValues(jittered.output, ran.output);
    if (::testing::Test::HasFailure()) return;
  }
}

void PlaceInPool(const ir::Nest&, scheduler::Mapping*, std::mt19937*) {}

TEST(MappingEndToEnd, OnePool) { RunRandom("edge32-unified", 11, 400, PlaceInPool); }
TEST(MappingEndToEnd, OnePoolIdeal) { RunRandom("edge32-ideal-unified", 12, 400, PlaceInPool); }
TEST(MappingEndToEnd, ThreeScratchpads) { RunRandom("edge32", 13, 400, PlaceInThree); }
TEST(MappingEndToEnd, ThreeScratchpadsIdeal) { RunRandom("edge32-ideal", 14, 400, PlaceInThree); }
TEST(MappingEndToEnd, TypesInOnePool) {
  RunRandom("edge32-unified", 15, 400, PlaceInPool, RandomTypedLayer);
}
TEST(MappingEndToEnd, TypesInThreeScratchpads) {
  RunRandom("edge32", 16, 400, PlaceInThree, RandomTypedLayer);
}
TEST(MappingEndToEnd, WeightStationary) {
  RunRandom("edge32-ws", 17, 200, PlaceInThree, RandomTypedLayer);
}
TEST(MappingEndToEnd, InputStationary) {
  RunRandom("edge32-is", 18, 200, PlaceInThree, RandomTypedLayer);
}
TEST(MappingEndToEnd, OnSram) { RunRandom("onsram", 19, 200, PlaceInPool, RandomTypedLayer); }

// Groups side by side: an input that is not finite changes its own group only.
TEST(MappingEndToEnd, PackedGroups) {
  RunRandom("edge32", 23, 600, PlaceInThree, RandomPackedLayer);
}
TEST(MappingEndToEnd, PackedGroupsWeightStationary) {
  RunRandom("edge32-ws", 24, 300, PlaceInThree, RandomPackedLayer);
}

// What another group computes, too, is computed and issued, but not nominal.
TEST(MappingEndToEnd, RepeatedInThreeScratchpads) {
  RunRandom("edge32", 25, 400, PlaceInThree, RandomRepeatedLayer);
}
TEST(MappingEndToEnd, RepeatedInOnePool) {
  RunRandom("edge32-unified", 26, 400, PlaceInPool, RandomRepeatedLayer);
}

// The drained result is in `unified`, away from the accumulators.
void PlaceInTpu(const ir::Nest&, scheduler::Mapping* mapping, std::mt19937*) {
  mapping->accumulator.memory = 1;
}
TEST(MappingEndToEnd, SeparateAccumulators) {
  // Small memories: emulating megabytes takes its time.
  RunRandom("tpu256", 20, 200, PlaceInTpu, RandomTypedLayer, [](machine::Target* target) {
    for (machine::Memory& memory : target->memories) memory.bytes = 65536;
  });
}

// "weight", "input", "output".
void PlaceInMeta(const ir::Nest& nest, scheduler::Mapping* mapping, std::mt19937* random) {
  PlaceInThree(nest, mapping, random);
  for (scheduler::OperandPlace& p : mapping->operands)
    p.memory = std::array{1, 0, 2}[static_cast<size_t>(p.memory)];
}
TEST(MappingEndToEnd, Spatial) { RunRandom("meta-df", 21, 200, PlaceInMeta, RandomTypedLayer); }

// Memories so slow that they bound array, vector work and transfers.
TEST(MappingEndToEnd, SlowScratchpads) {
  RunRandom("edge32", 22, 400, PlaceInThree, RandomTypedLayer, [](machine::Target* target) {
    target->memories[0].bytes_per_cycle = machine::Rational{3, 1};
    target->memories[1].bytes_per_cycle = machine::Rational{40, 7};
    target->memories[2].bytes_per_cycle = machine::Rational{5, 2};
  });
}

}  // namespace
}  // namespace dla::testing
