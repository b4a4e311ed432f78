// Numbers that half precision cannot hold are counted where they become infinite.
#include <gtest/gtest.h>

#include "machine/target_file.h"
#include "runtime/stats.h"
#include "tests/codegen/layer_program.h"

namespace dla::testing {
namespace {

// A 1x1 convolution of one channel: 2 x 3 pixels times 300.
LayerCase Scaling(const std::vector<float>& pixels) {
  LayerCase c;
  c.types = {.input = ElementType::kF32,
             .weight = ElementType::kF16,
             .residual = ElementType::kF32,
             .output = ElementType::kF16,
             .array = ElementType::kF16};
  c.layer = {.E = 2, .F = 3, .H = 2, .W = 3};
  c.input = pixels;
  c.weight = {300};
  return c;
}

runtime::RunResult Execute(const LayerCase& c, machine::Program* program) {
  const Result<machine::Target> target = machine::LoadTarget("edge32", {});
  DLA_CHECK(target.ok(), target.status().message());
  std::mt19937 random(1);
  const ir::Nest nest = NestOf(c);
  scheduler::Mapping mapping = RandomMapping(nest, &random);
  PlaceInThree(nest, &mapping, &random);
  *program = ProgramOf(ScheduleOf(c, mapping, *target));
  Result<runtime::RunResult> result = runtime::Run(*program, {.jitter = {}}, InputsOf(c, *program));
  DLA_CHECK(result.ok(), result.status().message());
  return std::move(*result);
}

TEST(Overflow, ResultsThatBecomeInfiniteAreCounted) {
  machine::Program program;
  // 300 * 218 = 65400 is below f16's 65504, 300 * 219 above.
  const runtime::RunResult result = Execute(Scaling({1, 218, 219, -400, 0, 1000}), &program);
  EXPECT_EQ(result.groups[0].overflows, 3);
  EXPECT_EQ(result.groups[0].read_overflows, 0);
  EXPECT_EQ(result.total.overflows, 3);
  EXPECT_EQ(runtime::OverflowWarnings(program, result),
            (std::vector<std::string>{"group 'conv' (conv): 3 results are too large for half "
                                      "precision and became infinite"}));
}

TEST(Overflow, OperandsThatBecomeInfiniteAreTold) {
  machine::Program program;
  const runtime::RunResult result = Execute(Scaling({0, 0, 70000, 0, 0, 0}), &program);
  EXPECT_GT(result.groups[0].read_overflows, 0);
  EXPECT_EQ(result.groups[0].overflows, 0);  // infinity times 300 was infinite already
  EXPECT_EQ(runtime::OverflowWarnings(program, result),
            (std::vector<std::string>{"group 'conv' (conv): the array reads numbers that are "
                                      "infinite in half precision"}));
}

TEST(Overflow, NothingIsSaidWhereNothingIsLost) {
  machine::Program program;
  const runtime::RunResult result = Execute(Scaling({1, 2, 3, 4, 5, 6}), &program);
  EXPECT_TRUE(runtime::OverflowWarnings(program, result).empty());
}

}  // namespace
}  // namespace dla::testing
