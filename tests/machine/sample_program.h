// A small but whole program, made by hand: what code generation emits for three layers on edge32.
//
//   conv    24 x 4 x 3 x 3 kernels over a 4 x 8 x 8 input, padding 1, with bias and relu: tiles of
//           16 channels, 4 rows and 2 input channels; input and weights double-buffered, bias in
//           one buffer, accumulators drained in place; result to a temporary
//   vector  x - max over the row, relu: one row block at a time, reductions by reduce_dims
//   move    loads the whole value, copies it over a link and stores it
//
// Tests of verifier, container, assembler and runtime start from it and damage or run it.
#pragma once

#include <cstring>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "machine/program.h"
#include "machine/target_file.h"

namespace dla::machine::sample {

inline Instruction Wait(Engine engine, int token, int count = 1) {
  return {.op = Opcode::kWait,
          .engine = engine,
          .token = static_cast<uint8_t>(token),
          .count = static_cast<uint8_t>(count)};
}
inline Instruction Signal(Engine engine, int token, int count = 1) {
  Instruction i = Wait(engine, token, count);
  i.op = Opcode::kSignal;
  return i;
}
inline Instruction Load(int operand, Predicate predicate = {}) {
  return {.op = Opcode::kLoad,
          .engine = Engine::kLoad,
          .predicate = predicate,
          .operand = static_cast<uint8_t>(operand)};
}
inline Instruction Store(int operand, Predicate predicate = {}) {
  Instruction i = Load(operand, predicate);
  i.op = Opcode::kStore;
  i.engine = Engine::kStore;
  return i;
}
inline Instruction Bus(Engine engine, int lag, int slot) {
  return {.op = Opcode::kBus,
          .engine = engine,
          .lag = static_cast<uint8_t>(lag),
          .slot = static_cast<uint8_t>(slot)};
}

inline AxisDesc Axis(std::initializer_list<std::pair<int, int>> terms, int64_t offset,
                     int64_t bound, int64_t dram_stride, int64_t local_stride) {
  AxisDesc axis{
      .offset = offset, .bound = bound, .dram_stride = dram_stride, .local_stride = local_stride};
  for (const auto& [dim, coefficient] : terms) {
    axis.terms.push_back({.dim = static_cast<uint8_t>(dim), .coefficient = coefficient});
  }
  return axis;
}

// Tokens of every group: see machine/program.h and docs/MACHINE.md, "Tokens of a group".
enum Token : uint8_t { kFreeD, kFreeS, kLoaded, kStoredD, kStoredS, kDone, kMoved };

// Prologue and epilogue of the usual token pattern with `compute` as the computing engine.
inline void AddCredits(Group* group, Engine compute) {
  group->prologue = {Signal(compute, kFreeD, 2), Signal(compute, kFreeS, 1),
                     Signal(Engine::kStore, kStoredD, 2), Signal(Engine::kStore, kStoredS, 1)};
  group->epilogue = {Wait(Engine::kLoad, kFreeD, 2), Wait(Engine::kLoad, kFreeS, 1),
                     Wait(compute, kStoredD, 2), Wait(compute, kStoredS, 1)};
}

// The body: overlapping loads, other loads, the computing engine's instruction, overlapping stores.
inline void AddBody(Group* group, Engine compute, const std::vector<Instruction>& loads_d,
                    const std::vector<Instruction>& loads_s, const Instruction& work,
                    const std::vector<Instruction>& stores_d) {
  std::vector<Instruction>& body = group->body;
  const auto add = [&body](const std::vector<Instruction>& more) {
    body.insert(body.end(), more.begin(), more.end());
  };
  add({Wait(Engine::kLoad, kFreeD)});
  add(loads_d);
  add({Bus(Engine::kLoad, 0, 1), Wait(Engine::kLoad, kFreeS)});
  add(loads_s);
  add({Bus(Engine::kLoad, 0, 3), Signal(Engine::kLoad, kLoaded)});
  add({Wait(compute, kLoaded), Wait(compute, kStoredS), Wait(compute, kStoredD), work,
       Signal(compute, kFreeD), Signal(compute, kFreeS), Signal(compute, kDone)});
  add({Wait(Engine::kStore, kDone), Bus(Engine::kStore, 1, 2), Signal(Engine::kStore, kStoredS)});
  add(stores_d);
  add({Bus(Engine::kStore, 2, 0), Signal(Engine::kStore, kStoredD)});
}

inline MicroProgram Micro(const std::string& text) {
  std::string error;
  const auto program = ParseMicroProgram(text, &error);
  DLA_CHECK(program.has_value(), error);
  return *program;
}

// The mask of these dimensions.
inline uint16_t Dims(std::initializer_list<int> dims) {
  unsigned mask = 0;
  for (const int dim : dims) mask |= 1u << dim;
  return static_cast<uint16_t>(mask);
}

enum ConvDim { kM, kC, kE, kF, kR, kS };

inline std::vector<OperandDesc> ConvOperands() {
  OperandDesc input{.value = "x", .cls = OperandClass::kInput};
  // A tile has 2 channels of 5 rows (4 + 2 of halo, one of them clipped) of 8 columns.
  input.axes = {Axis({{kC, 1}}, 0, 4, 64, 40), Axis({{kE, 1}, {kR, 1}}, -1, 8, 8, 8),
                Axis({{kF, 1}, {kS, 1}}, -1, 8, 1, 1)};
  input.dram_layout = DramLayout::kStrided;
  input.region = 0;
  input.memory = 0;
  input.slot_bytes = 320;
  input.ring_slots = 2;
  input.generation_dims = Dims({kC, kE});

  OperandDesc weight{.value = "w", .cls = OperandClass::kWeight};
  weight.axes = {Axis({{kM, 1}}, 0, 24, 0, 0), Axis({{kC, 1}}, 0, 4, 0, 0),
                 Axis({{kR, 1}}, 0, 3, 0, 0), Axis({{kS, 1}}, 0, 3, 0, 0)};
  weight.dram_layout = DramLayout::kPacked;
  weight.region = 1;
  weight.memory = 1;
  weight.local_layout = LocalLayout::kPanels;
  weight.slot_bytes = 1152;
  weight.ring_slots = 2;
  weight.generation_dims = Dims({kM, kC});

  OperandDesc bias{.value = "b", .cls = OperandClass::kWeight};
  bias.axes = {Axis({{kM, 1}}, 0, 24, 1, 1)};
  bias.dram_layout = DramLayout::kStrided;
  bias.region = 2;
  bias.memory = 1;
  bias.address = 2304;
  bias.slot_bytes = 64;

  OperandDesc acc{.value = "conv", .cls = OperandClass::kPartial};
  acc.axes = {Axis({{kM, 1}}, 0, 24, 64, 32), Axis({{kE, 1}}, 0, 8, 8, 8),
              Axis({{kF, 1}}, 0, 8, 1, 1)};
  acc.memory = 2;
  acc.slot_bytes = 2048;
  acc.ring_slots = 2;
  acc.generation_dims = Dims({kM, kE});

  OperandDesc output = acc;
  output.cls = OperandClass::kOutput;
  output.dram_layout = DramLayout::kStrided;
  output.region = 3;
  return {input, weight, bias, acc, output};
}

inline Group ConvGroup() {
  Group group{.name = "conv", .onnx_nodes = {"conv", "relu"}};
  group.dims = {{"M", 24, 16}, {"C", 4, 2}, {"E", 8, 4}, {"F", 8, 8}, {"R", 3, 3}, {"S", 3, 3}};
  group.loops = {kM, kE, kC};
  group.operands = ConvOperands();
  group.programs = {Micro("v0 = accumulator; v1 = relu v0 !")};
  const Instruction array{.op = Opcode::kArray,
                          .engine = Engine::kArray,
                          .operand = 0,
                          .operand2 = 1,
                          .operand3 = 3,
                          .operand4 = 2,
                          .operand5 = 4,
                          .program = 0};
  AddCredits(&group, Engine::kArray);
  AddBody(&group, Engine::kArray, {Load(0), Load(1)}, {Load(2, {.first = Dims({kC, kE})})}, array,
          {Store(4, {.last = Dims({kC})})});
  return group;
}

// A value of 24 x 8 x 8 floats with tiles of 8 channels and whole rows.
inline OperandDesc Plane(const std::string& value, uint32_t region, uint8_t memory,
                         int64_t address) {
  OperandDesc operand{.value = value, .cls = OperandClass::kVector};
  operand.axes = {Axis({{0, 1}}, 0, 24, 64, 64), Axis({{1, 1}}, 0, 8, 8, 8),
                  Axis({{2, 1}}, 0, 8, 1, 1)};
  operand.dram_layout = DramLayout::kStrided;
  operand.region = region;
  operand.memory = memory;
  operand.address = address;
  operand.slot_bytes = 2048;
  operand.ring_slots = 2;
  operand.generation_dims = Dims({0});
  return operand;
}

inline Group VectorGroup() {
  Group group{.name = "softer", .onnx_nodes = {"max", "sub", "relu2"}};
  group.dims = {{"M", 24, 8}, {"E", 8, 8}, {"F", 8, 8}};
  group.loops = {0};
  group.operands = {Plane("conv", 3, 0, 0), Plane("y", 4, 0, 4096)};
  group.programs = {Micro("v0 = load 0; v1 = reduce_max v0; v2 = sub v0 v1; v3 = relu v2 !")};
  const Instruction vector{.op = Opcode::kVector,
                           .engine = Engine::kVector,
                           .operand = 1,
                           .program = 0,
                           .reduce_dims = Dims({2})};
  AddCredits(&group, Engine::kVector);
  AddBody(&group, Engine::kVector, {Load(0)}, {}, vector, {Store(1)});
  return group;
}

inline Group MoveGroup() {
  Group group{.name = "copy", .onnx_nodes = {"identity"}};
  group.dims = {{"M", 24, 24}, {"E", 8, 8}, {"F", 8, 8}};
  group.operands = {Plane("y", 4, 0, 8192), Plane("z", 5, 2, 0)};
  for (OperandDesc& operand : group.operands) {
    operand.slot_bytes = 6144;
    operand.ring_slots = 1;
    operand.generation_dims = 0;
  }
  group.operands[0].resident = true;
  group.body = {Load(0),
                Bus(Engine::kLoad, 0, 1),
                Signal(Engine::kLoad, kLoaded),
                Wait(Engine::kMove, kLoaded),
                {.op = Opcode::kMove, .engine = Engine::kMove, .operand = 0, .operand2 = 1},
                Signal(Engine::kMove, kMoved),
                Wait(Engine::kStore, kMoved),
                Store(1),
                Bus(Engine::kStore, 1, 2)};
  return group;
}

// The sample with the channels of `softer`'s operand chosen by 24 indices, an input.
inline void AddGather(Program* program) {
  program->regions.push_back({"i", RegionKind::kInput, 1024, 96});
  program->inputs.push_back({"i", ElementType::kI32, {24}, 6});
  OperandDesc indices{.value = "i", .cls = OperandClass::kVector, .type = ElementType::kI32};
  indices.axes = {Axis({{0, 1}}, 0, 24, 1, 1)};
  indices.dram_layout = DramLayout::kStrided;
  indices.region = 6;
  indices.memory = 2;
  indices.slot_bytes = 32;
  indices.ring_slots = 2;
  indices.generation_dims = Dims({0});
  Group& group = program->groups[1];
  group.operands.push_back(indices);
  group.operands[0].gather = {.indices = 2, .bound = 24, .stride = 64};
  group.operands[0].axes[0].dram_stride = 0;
  group.body.insert(group.body.begin() + 1, Load(2));
}

// The weights of the convolution become two blocks of 12 channels by 2 depths.
inline void AddDiagonal(Program* program) {
  OperandDesc& weight = program->groups[0].operands[1];
  weight.diagonal = {.channel_dim = 0, .depth_dim = 1, .channels = 12, .depths = 2};
}

// The packed constants: weights and bias with small different values.
inline std::vector<uint8_t> ConstantBytes() {
  std::vector<float> values(864 + 24);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) - 8.0F;
  std::vector<uint8_t> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline Program MakeProgram() {
  Program program;
  program.producer = "sample 1";
  program.command_line = "--target edge32";
  auto target = LoadTarget("edge32", {});
  DLA_CHECK(target.ok(), target.status().message());
  program.target = *target;
  program.regions = {
      {"x", RegionKind::kInput, 0, 1024},        {"w", RegionKind::kConstant, 0, 3456},
      {"b", RegionKind::kConstant, 3456, 96},    {"conv", RegionKind::kTemporary, 0, 6144},
      {"y", RegionKind::kTemporary, 6144, 6144}, {"z", RegionKind::kOutput, 0, 6144}};
  program.inputs = {{"x", ElementType::kF32, {1, 4, 8, 8}, 0}};
  program.outputs = {{"z", ElementType::kF32, {1, 24, 8, 8}, 5}};
  program.groups = {ConvGroup(), VectorGroup(), MoveGroup()};
  program.predicted.resize(3);
  for (size_t g = 0; g < 3; ++g) {
    program.predicted[g].memory.resize(3);
    program.predicted[g].cycles = static_cast<int64_t>(1000 * (g + 1));
    program.predicted[g].traffic[0].load_bytes = 7;
  }
  program.buffers = {{"x", 0, 0, 640, 0, 1},     {"w", 1, 0, 2304, 0, 1},
                     {"b", 1, 2304, 64, 0, 1},   {"conv", 2, 0, 4096, 0, 1},
                     {"conv", 0, 0, 4096, 1, 2}, {"y", 0, 4096, 4096, 1, 2},
                     {"y", 0, 8192, 6144, 2, 3}, {"z", 2, 0, 6144, 2, 3}};
  program.values = {{.name = "relu", .node = "r", .group = 0},
                    {.name = "y",
                     .node = "v",
                     .place = ValuePlace::kRegion,
                     .group = 1,
                     .shape = {1, 24, 8, 8},
                     .space = 4,
                     .strides = {1536, 64, 8, 1}},
                    {.name = "v",
                     .node = "w",
                     .place = ValuePlace::kMemory,
                     .group = 2,
                     .shape = {24, 64},
                     .space = 2,
                     .strides = {64, 1}}};
  program.constants = ConstantData::Own(ConstantBytes());
  return program;
}

}  // namespace dla::machine::sample
