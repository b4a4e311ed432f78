#include "machine/timing.h"

#include <algorithm>
#include <bit>

#include "support/checked.h"

namespace dla::machine {
namespace {

// How an array instruction falls into folds: `outer` x `inner` tiles of the stationary plane, each
// streaming `streamed` positions, with `skew` cycles of filling and draining a fold.
struct Folds {
  int64_t rows_extent, cols_extent, streamed, skew;
};

Folds FoldsOf(const Array& array, const ArrayExtents& e) {
  switch (array.dataflow) {
    case Dataflow::kOutputStationary:
      return {e.pixels, e.channels, e.depth, array.rows + array.cols - 2};
    case Dataflow::kWeightStationary:
      return {e.depth, e.channels, e.pixels, 2 * array.rows + array.cols - 2};
    case Dataflow::kInputStationary:
      return {e.depth, e.pixels, e.channels, 2 * array.rows + array.cols - 2};
    case Dataflow::kSpatial:
      return {e.depth, e.channels, e.pixels, 0};
  }
  return {0, 0, 0, 0};
}

}  // namespace

int64_t ArrayCycles(const Array& array, Rational rate, const ArrayExtents& extents) {
  const Folds f = FoldsOf(array, extents);
  return extents.groups * CeilDiv(f.rows_extent, array.rows) * CeilDiv(f.cols_extent, array.cols) *
         (CyclesAtRate(f.streamed, rate) + f.skew);
}

ArrayAccesses CountArrayAccesses(const Array& array, const ArrayExtents& e, bool accumulate) {
  const Folds f = FoldsOf(array, e);
  const int64_t row_folds = CeilDiv(f.rows_extent, array.rows);
  const int64_t col_folds = CeilDiv(f.cols_extent, array.cols);
  const int64_t outputs = e.groups * e.pixels * e.channels;
  ArrayAccesses a;
  switch (array.dataflow) {
    case Dataflow::kOutputStationary:
      a.input_reads = e.groups * e.pixels * e.depth * col_folds;
      a.weight_reads = e.groups * e.channels * e.depth * row_folds;
      a.partial_writes = outputs;
      a.partial_reads = accumulate ? outputs : 0;
      break;
    case Dataflow::kWeightStationary:
    case Dataflow::kSpatial:
      a.weight_reads = e.groups * e.channels * e.depth;
      a.input_reads = e.groups * e.pixels * e.depth * col_folds;
      a.partial_writes = outputs * row_folds;
      a.partial_reads = outputs * (row_folds - (accumulate ? 0 : 1));
      break;
    case Dataflow::kInputStationary:
      a.input_reads = e.groups * e.pixels * e.depth;
      a.weight_reads = e.groups * e.channels * e.depth * col_folds;
      a.partial_writes = outputs * row_folds;
      a.partial_reads = outputs * (row_folds - (accumulate ? 0 : 1));
      break;
  }
  return a;
}

int64_t VectorCycles(const Vector& vector, const MicroProgram& program,
                     const std::vector<bool>& full, int64_t full_points, int64_t reduced_points) {
  int64_t cycles = vector.startup_cycles;
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const MicroInstruction& op = program.ops[i];
    const MicroOpInfo& info = Info(op.op);
    if (op.stage || info.op_class == OpClass::kFree) continue;
    const int64_t points = full[i] || info.reduces ? full_points : reduced_points;
    cycles += CeilDiv(points, vector.lanes) * vector.op_cycles[static_cast<size_t>(info.op_class)];
    if (info.reduces) {
      cycles += static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(vector.lanes - 1)));
    }
  }
  return cycles;
}

int64_t VectorOps(const MicroProgram& program, const std::vector<bool>& full, int64_t full_points,
                  int64_t reduced_points) {
  int64_t ops = 0;
  for (size_t i = 0; i < program.ops.size(); ++i) {
    const MicroOpInfo& info = Info(program.ops[i].op);
    if (program.ops[i].stage || info.op_class == OpClass::kFree) continue;
    ops += full[i] || info.reduces ? full_points : reduced_points;
  }
  return ops;
}

int64_t VectorMacs(const MicroProgram& program, int64_t full_points) {
  int64_t macs = 0;
  for (const MicroInstruction& op : program.ops) {
    if (op.op == MicroOp::kReduceDot) macs += full_points;
  }
  return macs;
}

int64_t TransferCycles(const Target& target, int64_t descriptors, int64_t bus_bytes) {
  if (descriptors == 0) return 0;
  return descriptors * target.dma_startup_cycles +
         CyclesAtRate(bus_bytes, target.dram.bytes_per_cycle);
}

int64_t BusBytes(const Dram& dram, int64_t run_bytes, int64_t runs) {
  return RoundUp(run_bytes, dram.burst_bytes) * runs;
}

int64_t BoundByMemories(const Target& target, std::span<const int64_t> bytes, int64_t cycles) {
  for (size_t m = 0; m < bytes.size(); ++m) {
    const auto& rate = target.memories[m].bytes_per_cycle;
    if (rate) cycles = std::max(cycles, CyclesAtRate(bytes[m], *rate));
  }
  return cycles;
}

}  // namespace dla::machine
