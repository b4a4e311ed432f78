// The cost model against 1,000 mappings that an independent program walked step by step
// (tests/data/mapping/README.md): every term, and cycles on three machines.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scheduler/layer.h"
#include "scheduler/predict.h"
#include "scheduler/transfers.h"
#include "tests/scheduler/optima_table.h"

namespace dla::scheduler {
namespace {

const std::string kLetters = "NGMCEFRS";

Mapping MappingOf(const TableRow& row, const ir::Nest& nest) {
  Mapping mapping;
  for (const char letter : kLetters)
    mapping.block.push_back(Number(row, std::string("b") + letter));
  for (const char letter : row.at("order_outer_to_inner")) {
    const int d = static_cast<int>(kLetters.find(letter));
    if (BlockCount(nest, mapping, d) > 1) mapping.order.push_back(d);
  }
  const auto place = [&](int memory, const std::string& flag) {
    return OperandPlace{.memory = memory, .is_double = Number(row, flag) == 1};
  };
  mapping.operands = {place(0, "double_input"), place(1, "double_weight"),
                      place(2, "double_output")};
  mapping.accumulator = place(2, "double_output");
  if (row.at("roll") == "E") mapping.rolling = 4;
  if (row.at("roll") == "F") mapping.rolling = 5;
  return mapping;
}

machine::Target TargetOf(const TableRow& row) {
  machine::Target target;
  target.memories.resize(3);
  target.dram.bytes_per_cycle = {Number(row, "bytes_per_cycle"), 1};
  target.array.rows = Number(row, "array_rows");
  target.array.cols = Number(row, "array_cols");
  target.array.rates[{ElementType::kI8, ElementType::kI8}] = {1, 1};
  target.array.accumulator[ElementType::kI8] = ElementType::kI32;
  return target;
}

int64_t Times(const ir::Nest& nest, const Mapping& mapping, int operand) {
  for (const Transfer& t : TransfersOf(nest, mapping)) {
    if (t.operand != operand) continue;
    int64_t tiles = t.times;
    for (const int d : mapping.order) {
      if (DependenceMask(nest, operand) & (uint32_t{1} << d)) tiles *= BlockCount(nest, mapping, d);
    }
    return tiles;
  }
  return 0;
}

TEST(CostVectors, EveryTermAndTheCycles) {
  const std::vector<TableRow> rows = ReadTable("cost_vectors.csv");
  ASSERT_EQ(rows.size(), 1000U);
  for (const TableRow& row : rows) {
    SCOPED_TRACE("row " + row.at("id"));
    const ir::Nest nest = NestOf(LayerOf(row), ElementType::kI8);
    const Mapping mapping = MappingOf(row, nest);
    const machine::Target target = TargetOf(row);
    const machine::Counters c = Predict(nest, mapping, target);
    const auto& traffic = c.traffic;
    const auto of = [&](OperandClass cls) { return traffic[static_cast<size_t>(cls)]; };
    EXPECT_EQ(StepCount(nest, mapping), Number(row, "steps"));
    EXPECT_EQ(Times(nest, mapping, ir::Nest::kWeight), Number(row, "weight_loads"));
    EXPECT_EQ(Times(nest, mapping, ir::Nest::kInput), Number(row, "input_loads"));
    EXPECT_EQ(of(OperandClass::kWeight).load_bytes, Number(row, "weight_bytes"));
    EXPECT_EQ(of(OperandClass::kInput).load_bytes, Number(row, "input_bytes"));
    EXPECT_EQ(of(OperandClass::kOutput).store_bytes, Number(row, "output_bytes"));
    EXPECT_EQ(of(OperandClass::kPartial).store_bytes, Number(row, "spill_write_bytes"));
    EXPECT_EQ(of(OperandClass::kPartial).load_bytes, Number(row, "spill_read_bytes"));
    EXPECT_EQ(c.dram_bytes(), Number(row, "total_bytes"));
    EXPECT_EQ(BufferBytes(nest, mapping, target, ir::Nest::kWeight),
              Number(row, "weight_buffer_bytes"));
    EXPECT_EQ(BufferBytes(nest, mapping, target, ir::Nest::kInput),
              Number(row, "input_buffer_bytes"));
    EXPECT_EQ(BufferBytes(nest, mapping, target, kAccumulator), Number(row, "output_buffer_bytes"));
    EXPECT_EQ(c.cycles, Number(row, "cycles"));
  }
}

TEST(CostVectors, CyclesAtOtherLatencies) {
  const std::vector<TableRow> rows = ReadTable("cost_vectors.csv");
  const std::vector<TableRow> expected = ReadTable("cost_vectors_latency.csv");
  ASSERT_EQ(expected.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE("row " + rows[i].at("id"));
    const ir::Nest nest = NestOf(LayerOf(rows[i]), ElementType::kI8);
    machine::Target target = TargetOf(rows[i]);
    for (const int64_t latency : {0, 20, 100}) {
      target.dram.latency_cycles = latency;
      EXPECT_EQ(PredictCycles(nest, MappingOf(rows[i], nest), target),
                Number(expected[i], "cycles_latency_" + std::to_string(latency)));
    }
  }
}

TEST(CostVectors, BusBytesAndCyclesWithBurstsAndStartUps) {
  const std::vector<TableRow> rows = ReadTable("cost_vectors.csv");
  const std::vector<TableRow> expected = ReadTable("cost_vectors_edge32.csv");
  ASSERT_EQ(expected.size(), rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE("row " + rows[i].at("id"));
    const ir::Nest nest = NestOf(LayerOf(rows[i]), ElementType::kI8);
    machine::Target target = TargetOf(rows[i]);
    target.dram.burst_bytes = 64;
    target.dram.latency_cycles = 100;
    target.dma_startup_cycles = 16;
    const machine::Counters c = Predict(nest, MappingOf(rows[i], nest), target);
    const auto of = [&](OperandClass cls) { return c.traffic[static_cast<size_t>(cls)]; };
    EXPECT_EQ(of(OperandClass::kWeight).load_bus_bytes, Number(expected[i], "weight_bus_bytes"));
    EXPECT_EQ(of(OperandClass::kInput).load_bus_bytes, Number(expected[i], "input_bus_bytes"));
    EXPECT_EQ(of(OperandClass::kOutput).store_bus_bytes, Number(expected[i], "output_bus_bytes"));
    EXPECT_EQ(of(OperandClass::kPartial).store_bus_bytes,
              Number(expected[i], "spill_write_bus_bytes"));
    EXPECT_EQ(of(OperandClass::kPartial).load_bus_bytes,
              Number(expected[i], "spill_read_bus_bytes"));
    EXPECT_EQ(c.cycles, Number(expected[i], "cycles"));
  }
}

}  // namespace
}  // namespace dla::scheduler
