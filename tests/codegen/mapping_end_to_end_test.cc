// Any mapping of any layer: the emitted program computes the layer, and what the emulator counts
// is what was predicted. Layers and mappings are random; the seed is printed.
#include <gtest/gtest.h>

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
  }
  out << " order ";
  for (const int d : mapping.order) out << nest.dimensions[static_cast<size_t>(d)].name;
  out << " stride " << c.layer.stride << " dilation " << c.layer.dilation << " pad " << c.layer.pad
      << " H " << c.layer.H << " W " << c.layer.W << " bias " << c.bias << " residual "
      << c.residual << " relu " << c.relu << " buffers";
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
  EXPECT_EQ(counted.vector_ops, predicted.vector_ops);
  EXPECT_EQ(counted.descriptors, predicted.descriptors);
  EXPECT_TRUE(counted == predicted);
}

// Random layers and mappings on a target; memories by `place`.
template <typename Place>
void RunRandom(const std::string& target_name, uint32_t seed, int runs, const Place& place) {
  std::printf("seed %u\n", seed);
  const Result<machine::Target> target = machine::LoadTarget(target_name, {});
  ASSERT_TRUE(target.ok()) << target.status().message();
  std::mt19937 random(seed);
  for (int run = 0; run < runs; ++run) {
    const LayerCase layer = RandomLayer(&random);
    const ir::Nest nest = NestOf(layer);
    scheduler::Mapping mapping = RandomMapping(nest, &random);
    place(nest, &mapping, &random);
    SCOPED_TRACE("run " + std::to_string(run) + " " + Describe(layer, nest, mapping));
    const scheduler::Schedule schedule = ScheduleOf(layer, mapping, *target);
    const machine::Program program = ProgramOf(layer, schedule);
    const Status verified = machine::VerifyProgram(program);
    ASSERT_TRUE(verified.ok()) << verified.message();
    const Ran ran = RunProgram(layer, program, true, std::nullopt);
    ASSERT_EQ(ran.error, "");
    ASSERT_EQ(ran.output, Expected(layer));
    ExpectSameCounts(ran.counters[0], schedule.groups[0].predicted);
    const Ran jittered = RunProgram(layer, program, false, random());
    ASSERT_EQ(jittered.error, "");
    ASSERT_EQ(jittered.output, ran.output);
    if (::testing::Test::HasFailure()) return;
  }
}

void PlaceInPool(const ir::Nest&, scheduler::Mapping*, std::mt19937*) {}

TEST(MappingEndToEnd, OnePool) { RunRandom("edge32-unified", 11, 400, PlaceInPool); }
TEST(MappingEndToEnd, OnePoolIdeal) { RunRandom("edge32-ideal-unified", 12, 400, PlaceInPool); }
TEST(MappingEndToEnd, ThreeScratchpads) { RunRandom("edge32", 13, 400, PlaceInThree); }
TEST(MappingEndToEnd, ThreeScratchpadsIdeal) { RunRandom("edge32-ideal", 14, 400, PlaceInThree); }

}  // namespace
}  // namespace dla::testing
