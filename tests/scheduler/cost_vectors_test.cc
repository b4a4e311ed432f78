// The cost model against 1,000 mappings that an independent program walked step by step
// (tests/data/mapping/README.md): every term, and cycles on three machines.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "scheduler/layer.h"
#include "scheduler/predict.h"
#include "scheduler/transfers.h"

namespace dla::scheduler {
namespace {

using Row = std::map<std::string, std::string>;

std::vector<Row> ReadCsv(const std::string& name) {
  std::ifstream file(std::string(DLA_SOURCE_DIR) + "/tests/data/mapping/" + name);
  std::string line;
  std::vector<std::string> header;
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    std::vector<std::string> cells;
    std::stringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    if (header.empty()) {
      header = cells;
      continue;
    }
    Row row;
    for (size_t i = 0; i < header.size(); ++i) row[header[i]] = cells.at(i);
    rows.push_back(row);
  }
  return rows;
}

int64_t Number(const Row& row, const std::string& key) { return std::stoll(row.at(key)); }

const std::string kLetters = "NGMCEFRS";

Layer LayerOf(const Row& row) {
  Layer layer;
  layer.N = Number(row, "N"), layer.G = Number(row, "G"), layer.M = Number(row, "M");
  layer.C = Number(row, "C"), layer.E = Number(row, "E"), layer.F = Number(row, "F");
  layer.R = Number(row, "R"), layer.S = Number(row, "S");
  layer.stride = Number(row, "stride"), layer.dilation = Number(row, "dilation");
  layer.pad = Number(row, "pad"), layer.H = Number(row, "H"), layer.W = Number(row, "W");
  return layer;
}

Mapping MappingOf(const Row& row, const ir::Nest& nest) {
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

machine::Target TargetOf(const Row& row) {
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
  const std::vector<Row> rows = ReadCsv("cost_vectors.csv");
  ASSERT_EQ(rows.size(), 1000U);
  for (const Row& row : rows) {
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
  const std::vector<Row> rows = ReadCsv("cost_vectors.csv");
  const std::vector<Row> expected = ReadCsv("cost_vectors_latency.csv");
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
  const std::vector<Row> rows = ReadCsv("cost_vectors.csv");
  const std::vector<Row> expected = ReadCsv("cost_vectors_edge32.csv");
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
