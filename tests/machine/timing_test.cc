// Durations of single instructions: rates, vector programs, transfers.
#include "machine/timing.h"

#include <gtest/gtest.h>

#include "machine/target_file.h"

namespace dla::machine {
namespace {

Target Edge() {
  auto target = LoadTarget("edge32", {});
  DLA_CHECK(target.ok(), target.status().message());
  return *target;
}
MicroProgram Micro(const std::string& text) {
  std::string error;
  return *ParseMicroProgram(text, &error);
}

TEST(Timing, RatesRoundUpOnce) {
  EXPECT_EQ(CyclesAtRate(0, {64, 3}), 0);
  EXPECT_EQ(CyclesAtRate(64, {64, 3}), 3);
  EXPECT_EQ(CyclesAtRate(65, {64, 3}), 4);
  // 2^40 = 1099511 * 10^6 + 627776; the rest takes 627776 * 0.999999 = 627775.37 cycles, rounded
  // up.
  EXPECT_EQ(CyclesAtRate(int64_t{1} << 40, {1000000, 999999}), int64_t{1099511} * 999999 + 627776);
}

TEST(Timing, AnArrayAtAQuarterRateStreamsFourTimesAsLong) {
  const Array array = Edge().array;
  EXPECT_EQ(ArrayCycles(array, {1, 1}, {1, 64, 33, 10}), 2 * 2 * (10 + 62));
  EXPECT_EQ(ArrayCycles(array, {1, 4}, {1, 64, 33, 10}), 2 * 2 * (40 + 62));
  EXPECT_EQ(ArrayCycles(array, {1, 4}, {3, 64, 33, 10}), 3 * 2 * 2 * (40 + 62));
}

TEST(Timing, VectorProgramsPayByOperationAndPoint) {
  const Vector vector = Edge().vector;  // 32 lanes, start-up 8
  const MicroProgram program =
      Micro("v0 = load 0; v1 = reduce_max v0; v2 = sub v0 v1; v3 = exp v2; v4 = relu v3 !");
  const std::vector<bool> full = {true, false, true, true, true};
  // reduce: 4 + log2(32) = 9; sub 4; exp 4 * 8; the output stage is free.
  EXPECT_EQ(VectorCycles(vector, program, full, 100, 10), 8 + 9 + 4 + 32);
  EXPECT_EQ(VectorOps(program, full, 100, 10), 300);
  const MicroProgram reduced = Micro("v0 = load 0; v1 = reduce_sum v0; v2 = sqrt v1");
  EXPECT_EQ(VectorCycles(vector, reduced, {true, false, false}, 100, 10), 8 + 9 + 4);
  EXPECT_EQ(VectorOps(reduced, {true, false, false}, 100, 10), 110);
}

TEST(Timing, TransfersPayStartUpsAndBursts) {
  const Target edge = Edge();  // 16 bytes a cycle, start-up 16, burst 64
  EXPECT_EQ(TransferCycles(edge, 0, 0), 0);
  EXPECT_EQ(TransferCycles(edge, 2, 65), 32 + 5);
  EXPECT_EQ(BusBytes(edge.dram, 1, 3), 192);
  EXPECT_EQ(BusBytes(edge.dram, 64, 3), 192);
  EXPECT_EQ(BusBytes(edge.dram, 65, 1), 128);
}

}  // namespace
}  // namespace dla::machine
