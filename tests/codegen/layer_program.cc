#include "tests/codegen/layer_program.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>

#include "codegen/emit.h"
#include "ir/packed_groups.h"
#include "runtime/emulator.h"
#include "scheduler/dram.h"
#include "scheduler/predict.h"
#include "scheduler/transfers.h"
#include "support/checked.h"
#include "support/half.h"

namespace dla::testing {
namespace {

size_t At(int64_t i) { return static_cast<size_t>(i); }

int64_t Pick(std::mt19937* random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(*random);
}

std::vector<float> RandomValues(std::mt19937* random, int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(Pick(random, -16, 16)) / 8);
  }
  return values;
}

float RoundTo(ElementType type, float value) {
  if (type == ElementType::kF16) return HalfToFloat(FloatToHalf(value));
  if (type == ElementType::kBF16) return BFloat16ToFloat(FloatToBFloat16(value));
  return value;
}

std::vector<uint8_t> BytesOf(ElementType type, const std::vector<float>& values) {
  std::vector<uint8_t> bytes(At(TypeBytes(type, static_cast<int64_t>(values.size()))));
  if (type == ElementType::kF32) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits =
        type == ElementType::kF16 ? FloatToHalf(values[i]) : FloatToBFloat16(values[i]);
    std::memcpy(&bytes[2 * i], &bits, 2);
  }
  return bytes;
}

std::vector<float> FloatsOf(ElementType type, const std::vector<uint8_t>& bytes) {
  std::vector<float> values(bytes.size() / At(TypeBytes(type, 1)));
  if (type == ElementType::kF32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, &bytes[2 * i], 2);
    values[i] = type == ElementType::kF16 ? HalfToFloat(bits) : BFloat16ToFloat(bits);
  }
  return values;
}

std::shared_ptr<const ir::Constant> ConstantOf(ElementType type, const std::vector<float>& values) {
  auto bytes = std::make_shared<std::vector<uint8_t>>(BytesOf(type, values));
  return std::make_shared<ir::Constant>(ir::Constant{
      .bytes = bytes->data(), .size_bytes = static_cast<int64_t>(bytes->size()), .owner = bytes});
}

// Ids of the values in the graph.
enum : ir::ValueId { kInputValue, kWeightValue, kOutputValue, kBiasValue, kResidualValue };

}  // namespace

LayerCase RandomLayer(std::mt19937* random) {
  LayerCase c;
  scheduler::Layer& l = c.layer;
  l.N = Pick(random, 1, 2), l.G = Pick(random, 1, 3), l.M = Pick(random, 1, 20);
  l.C = Pick(random, 1, 6), l.E = Pick(random, 1, 9), l.F = Pick(random, 1, 9);
  l.R = Pick(random, 1, 3), l.S = Pick(random, 1, 3);
  l.stride = Pick(random, 1, 3), l.dilation = Pick(random, 1, 2), l.pad = Pick(random, 0, 2);
  const auto input_extent = [&](int64_t out, int64_t kernel) {
    const int64_t extent =
        (out - 1) * l.stride + (kernel - 1) * l.dilation + 1 - 2 * l.pad + Pick(random, 0, 2);
    return std::max<int64_t>(extent, 1);
  };
  l.H = input_extent(l.E, l.R);
  l.W = input_extent(l.F, l.S);
  c.bias = Pick(random, 0, 1) == 1;
  c.residual = Pick(random, 0, 1) == 1;
  c.relu = Pick(random, 0, 1) == 1;
  c.input = RandomValues(random, l.N * l.G * l.C * l.H * l.W);
  c.weight = RandomValues(random, l.G * l.M * l.C * l.R * l.S);
  c.bias_values = RandomValues(random, l.G * l.M);
  c.residual_values = RandomValues(random, l.N * l.G * l.M * l.E * l.F);
  return c;
}

LayerCase RandomTypedLayer(std::mt19937* random) {
  LayerCase c = RandomLayer(random);
  const auto any = [&] {
    constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kF16, ElementType::kBF16};
    return kTypes[Pick(random, 0, 2)];
  };
  c.types = {any(), any(), any(), any(), any()};
  return c;
}

LayerCase RandomPackedLayer(std::mt19937* random) {
  LayerCase c = RandomTypedLayer(random);
  scheduler::Layer& l = c.layer;
  c.pack = Pick(random, 2, 6);
  l.G = c.pack * Pick(random, 1, 2);
  l.M = Pick(random, 1, 5), l.C = Pick(random, 1, 4);
  c.input = RandomValues(random, l.N * l.G * l.C * l.H * l.W);
  c.weight = RandomValues(random, l.G * l.M * l.C * l.R * l.S);
  c.bias_values = RandomValues(random, l.G * l.M);
  c.residual_values = RandomValues(random, l.N * l.G * l.M * l.E * l.F);
  if (Pick(random, 0, 1) == 1) {
    const int64_t plane = l.H * l.W, first = Pick(random, 0, l.G - 1) * l.C * plane;
    const float odd = Pick(random, 0, 1) == 1 ? std::numeric_limits<float>::infinity()
                                              : std::numeric_limits<float>::quiet_NaN();
    for (int64_t i = 0; i < l.C * plane; ++i) c.input[At(first + i)] = odd;
  }
  return c;
}

LayerCase RandomRepeatedLayer(std::mt19937* random) {
  constexpr std::array kMakers = {RandomLayer, RandomTypedLayer, RandomPackedLayer};
  LayerCase c = kMakers[At(Pick(random, 0, 2))](random);
  const int64_t none = Pick(random, 0, 2);  // of these is never repeated
  if (none != 0) c.repeated_m = Pick(random, 0, c.pack * c.layer.M);
  if (none != 1) c.repeated_e = Pick(random, 0, c.layer.E);
  if (none != 2) c.repeated_f = Pick(random, 0, c.layer.F);
  return c;
}

int64_t NominalMacs(const LayerCase& c) {
  const scheduler::Layer& l = c.layer;
  return l.N * l.G / c.pack * (c.pack * l.M - c.repeated_m) * (l.E - c.repeated_e) *
         (l.F - c.repeated_f) * l.C * l.R * l.S;
}

std::vector<float> Expected(const LayerCase& c) {
  const scheduler::Layer& l = c.layer;
  std::vector<float> output;
  for (int64_t n = 0; n < l.N; ++n)
    for (int64_t g = 0; g < l.G; ++g)
      for (int64_t m = 0; m < l.M; ++m)
        for (int64_t e = 0; e < l.E; ++e)
          for (int64_t f = 0; f < l.F; ++f) {
            float sum = c.bias ? c.bias_values[At(g * l.M + m)] : 0;
            for (int64_t k = 0; k < l.C; ++k)
              for (int64_t r = 0; r < l.R; ++r)
                for (int64_t s = 0; s < l.S; ++s) {
                  const int64_t h = e * l.stride + r * l.dilation - l.pad;
                  const int64_t w = f * l.stride + s * l.dilation - l.pad;
                  if (h < 0 || h >= l.H || w < 0 || w >= l.W) continue;
                  sum += c.input[At((((n * l.G + g) * l.C + k) * l.H + h) * l.W + w)] *
                         c.weight[At((((g * l.M + m) * l.C + k) * l.R + r) * l.S + s)];
                }
            if (c.residual) sum += c.residual_values[output.size()];
            output.push_back(RoundTo(c.types.output, c.relu ? std::max(sum, 0.0F) : sum));
          }
  return output;
}

ir::Nest NestOf(const LayerCase& c) {
  ir::Nest nest = scheduler::NestOf(c.layer, ElementType::kF32);
  ir::Operand output = nest.operands.back();
  nest.operands.pop_back();
  nest.operands[ir::Nest::kInput].value = kInputValue;
  nest.operands[ir::Nest::kWeight].value = kWeightValue;
  output.value = kOutputValue;
  output.type = c.types.output;
  nest.operands[ir::Nest::kInput].type = c.types.input;
  nest.operands[ir::Nest::kWeight].type = c.types.weight;
  for (const int o : {ir::Nest::kInput, ir::Nest::kWeight}) {
    ir::Operand& operand = nest.operands[At(o)];
    if (operand.type != c.types.array) operand.read_as = c.types.array;
  }
  if (c.bias) {
    ir::Operand bias = {.value = kBiasValue, .cls = OperandClass::kWeight, .is_constant = true};
    bias.axes = {output.axes[1], output.axes[2]};
    bias.axes[1].stride = 1;
    bias.axes[0].stride = c.layer.M;
    nest.bias = static_cast<int>(nest.operands.size());
    nest.operands.push_back(bias);
  }
  if (c.residual) {
    ir::Operand residual = output;
    residual.value = kResidualValue;
    residual.cls = OperandClass::kVector;
    residual.type = c.types.residual;
    nest.program.ops.push_back(
        {.op = MicroOp::kLoad, .operand = static_cast<uint8_t>(nest.operands.size())});
    nest.program.ops.push_back({.op = MicroOp::kAdd, .argument = {0, 1}});
    nest.operands.push_back(residual);
  }
  if (c.relu) {
    const uint8_t previous = static_cast<uint8_t>(nest.program.ops.size() - 1);
    nest.program.ops.push_back({.op = MicroOp::kRelu, .argument = {previous, 0}});
  }
  nest.operands.push_back(output);
  if (c.pack > 1) {
    std::optional<ir::Nest> packed = ir::PackGroups(nest, c.pack);
    DLA_CHECK(packed.has_value(), "groups of ", c.layer.G, " are not packed by ", c.pack);
    nest = std::move(*packed);
  }
  for (ir::Dimension& d : nest.dimensions) {
    if (d.name == "M") d.repeated = c.repeated_m;
    if (d.name == "E") d.repeated = c.repeated_e;
    if (d.name == "F") d.repeated = c.repeated_f;
  }
  return nest;
}

ir::Graph GraphOf(const LayerCase& c) {
  const scheduler::Layer& l = c.layer;
  ir::Graph graph;
  const auto add = [&](const std::string& name, ElementType type, ir::Shape shape) {
    ir::Value value = {.name = name, .type = type, .shape = shape};
    value.storage = {.root = static_cast<ir::ValueId>(graph.values.size()),
                     .strides = ir::DenseStrides(shape)};
    graph.values.push_back(value);
  };
  add("input", c.types.input, {l.N, l.G * l.C, l.H, l.W});
  add("weight", c.types.weight, {l.G * l.M, l.C, l.R, l.S});
  add("output", c.types.output, {l.N, l.G * l.M, l.E, l.F});
  add("bias", ElementType::kF32, {l.G * l.M});
  add("residual", c.types.residual, {l.N, l.G * l.M, l.E, l.F});
  graph.values[kWeightValue].constant = ConstantOf(c.types.weight, c.weight);
  graph.values[kBiasValue].constant = ConstantOf(ElementType::kF32, c.bias_values);
  graph.inputs = {kInputValue, kResidualValue};
  graph.outputs = {kOutputValue};
  return graph;
}

scheduler::Mapping RandomMapping(const ir::Nest& nest, std::mt19937* random) {
  scheduler::Mapping mapping;
  for (size_t d = 0; d < nest.dimensions.size(); ++d) {
    const int64_t extent = nest.dimensions[d].extent;
    const bool whole = Pick(random, 0, 2) == 0;
    mapping.block.push_back(whole ? extent : Pick(random, 1, extent));
    if (mapping.block[d] < extent) mapping.order.push_back(static_cast<int>(d));
  }
  std::shuffle(mapping.order.begin(), mapping.order.end(), *random);
  mapping.operands.resize(nest.operands.size());
  for (scheduler::OperandPlace& place : mapping.operands) place.is_double = Pick(random, 0, 1) == 1;
  mapping.accumulator.is_double = Pick(random, 0, 1) == 1;
  return mapping;
}

void PlaceInThree(const ir::Nest& nest, scheduler::Mapping* mapping, std::mt19937* random) {
  for (size_t o = 0; o < nest.operands.size(); ++o) {
    const OperandClass cls = nest.operands[o].cls;
    int memory = cls == OperandClass::kWeight ? 1 : 0;
    if (cls == OperandClass::kOutput) memory = (*random)() % 2 == 0 ? 2 : 0;
    if (cls == OperandClass::kVector) memory = (*random)() % 2 == 0 ? 2 : 0;
    mapping->operands[o].memory = memory;
  }
  mapping->accumulator.memory = 2;
}

scheduler::Schedule ScheduleOf(const LayerCase& c, const scheduler::Mapping& mapping,
                               machine::Target target) {
  scheduler::ScheduledGroup group = {.name = "conv", .onnx_nodes = {"conv"}, .op = "Conv"};
  group.nest = NestOf(c);
  group.mapping = mapping;
  return ScheduleOf(GraphOf(c), std::move(group), std::move(target));
}

scheduler::Schedule ScheduleOf(const ir::Graph& graph, scheduler::ScheduledGroup group,
                               machine::Target target) {
  scheduler::Schedule schedule = {.graph = graph};
  const scheduler::Mapping& mapping = group.mapping;
  std::vector<int64_t> used(target.memories.size(), 0);
  for (int o = scheduler::kAccumulator; o <= group.nest.output(); ++o) {
    const int64_t bytes = scheduler::BufferBytes(group.nest, mapping, target, o);
    if (bytes == 0) continue;
    const int memory = o < 0 ? mapping.accumulator.memory : mapping.operands[At(o)].memory;
    const int slots = scheduler::RingSlots(group.nest, mapping, o);
    used[At(memory)] = (used[At(memory)] + 7) / 8 * 8;  // elements of eight bytes begin at those
    group.buffers.push_back({o, memory, used[At(memory)], bytes / slots, slots});
    used[At(memory)] += bytes;
  }
  for (size_t m = 0; m < used.size(); ++m) {
    target.memories[m].bytes = std::max(target.memories[m].bytes, used[m]);
  }
  group.predicted = scheduler::Predict(group.nest, mapping, target);
  schedule.target = target;
  schedule.groups.push_back(group);
  const Status status = scheduler::LayOutDram(&schedule);
  DLA_CHECK(status.ok(), status.message());
  return schedule;
}

machine::Program ProgramOf(const scheduler::Schedule& schedule) {
  Result<machine::Program> program = codegen::Emit(schedule);
  DLA_CHECK(program.ok(), program.status().message());
  program->constants = machine::ConstantData::Own(codegen::ConstantSpace(schedule, *program));
  return std::move(*program);
}

std::vector<Tensor> InputsOf(const LayerCase& c, const machine::Program& program) {
  const auto tensor = [](const machine::Port& port, const std::vector<float>& values) {
    Tensor t = {.name = port.name, .type = port.type, .shape = port.shape};
    t.bytes = BytesOf(port.type, values);
    return t;
  };
  return {tensor(program.inputs[0], c.input), tensor(program.inputs[1], c.residual_values)};
}

Ran RunProgram(const LayerCase& c, const machine::Program& program, bool check,
               std::optional<uint64_t> jitter) {
  const Result<runtime::RunResult> result =
      runtime::Run(program, {.check = check, .jitter = jitter}, InputsOf(c, program));
  Ran ran;
  if (!result.ok()) {
    ran.error = result.status().message();
    return ran;
  }
  ran.output = FloatsOf(c.types.output, result->outputs[0].bytes);
  for (const runtime::GroupRun& group : result->groups) ran.counters.push_back(group.counters);
  return ran;
}

}  // namespace dla::testing
