#include "tests/runtime/conv_program.h"

#include <algorithm>
#include <numeric>

#include "support/status.h"

namespace dla::runtime::test {

using machine::AxisDesc;
using machine::DramLayout;
using machine::LocalLayout;
using machine::OperandDesc;
using machine::RegionKind;

namespace {

int64_t Pick(std::mt19937* random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(*random);
}

std::vector<float> RandomFloats(std::mt19937* random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  // Small integers over 8: sums are exact, so any order gives the same bits.
  for (float& v : values) v = static_cast<float>(Pick(random, -8, 8)) / 8;
  return values;
}

AxisDesc Axis(std::vector<machine::TermDesc> terms, int64_t offset, int64_t bound) {
  AxisDesc axis;
  axis.terms = std::move(terms);
  axis.offset = offset;
  axis.bound = bound;
  return axis;
}

// Row-major strides in DRAM, and on chip for the largest tile of each axis.
int64_t SetStrides(OperandDesc* o, const ConvSpec& spec) {
  int64_t dram = 1;
  int64_t local = 1;
  for (size_t a = o->axes.size(); a-- > 0;) {
    AxisDesc& axis = o->axes[a];
    axis.dram_stride = dram;
    axis.local_stride = local;
    dram *= axis.bound;
    int64_t hull = 1;
    for (const auto& term : axis.terms) hull += term.coefficient * (spec.block[term.dim] - 1);
    local *= std::min(hull, axis.bound);
  }
  return local;
}

std::vector<float> NaiveConv(const ConvSpec& s, const std::vector<float>& x,
                             const std::vector<float>& w, const std::vector<float>& b) {
  const auto& n = s.extent;
  std::vector<float> y;
  for (int64_t g = 0; g < n[kG]; ++g)
    for (int64_t m = 0; m < n[kM]; ++m)
      for (int64_t e = 0; e < n[kE]; ++e)
        for (int64_t f = 0; f < n[kF]; ++f) {
          float sum = s.bias ? b[static_cast<size_t>(g * n[kM] + m)] : 0.0f;
          for (int64_t c = 0; c < n[kC]; ++c)
            for (int64_t r = 0; r < n[kR]; ++r)
              for (int64_t q = 0; q < n[kS]; ++q) {
                const int64_t h = e * s.stride + r * s.dilation - s.padding;
                const int64_t v = f * s.stride + q * s.dilation - s.padding;
                if (h < 0 || h >= s.height || v < 0 || v >= s.width) continue;
                const int64_t xi = ((g * n[kC] + c) * s.height + h) * s.width + v;
                const int64_t wi = (((g * n[kM] + m) * n[kC] + c) * n[kR] + r) * n[kS] + q;
                sum += x[static_cast<size_t>(xi)] * w[static_cast<size_t>(wi)];
              }
          y.push_back(s.relu && sum < 0 ? 0 : sum);
        }
  return y;
}

// Weights tile by tile (lexicographic in G, M, C, R, S), each tile in panels of 16 channels.
std::vector<float> PackPanels(const ConvSpec& s, const std::vector<float>& w) {
  const std::array<uint8_t, 5> dims = {kG, kM, kC, kR, kS};
  std::vector<float> packed;
  const auto at = [&](std::array<int64_t, 5> i) {
    int64_t index = 0;
    for (size_t d = 0; d < 5; ++d) index = index * s.extent[dims[d]] + i[d];
    return w[static_cast<size_t>(index)];
  };
  const auto limit = [&](size_t d, int64_t start) {
    return std::min(start + s.block[dims[d]], s.extent[dims[d]]);
  };
  const auto pack_tile = [&](const std::array<int64_t, 5>& start) {
    for (int64_t g = start[0]; g < limit(0, start[0]); ++g)
      for (int64_t m = start[1]; m < limit(1, start[1]); m += 16)
        for (int64_t c = start[2]; c < limit(2, start[2]); ++c)
          for (int64_t r = start[3]; r < limit(3, start[3]); ++r)
            for (int64_t q = start[4]; q < limit(4, start[4]); ++q)
              for (int64_t j = m; j < std::min(m + 16, limit(1, start[1])); ++j)
                packed.push_back(at({g, j, c, r, q}));
  };
  std::array<int64_t, 5> start{};
  for (;;) {
    pack_tile(start);
    size_t d = 5;
    while (d-- > 0) {
      start[d] += s.block[dims[d]];
      if (start[d] < s.extent[dims[d]]) break;
      start[d] = 0;
    }
    if (d == SIZE_MAX) return packed;
  }
}

}  // namespace

ConvSpec RandomConv(std::mt19937* random) {
  ConvSpec s;
  const int64_t kernel = Pick(random, 1, 3);
  s.extent = {Pick(random, 1, 2), Pick(random, 1, 40), Pick(random, 1, 5),
              Pick(random, 1, 9), Pick(random, 1, 20), kernel,
              Pick(random, 1, 3)};
  s.stride = Pick(random, 1, 2);
  s.dilation = Pick(random, 1, 2);
  s.padding = Pick(random, 0, kernel - 1);
  const auto input_extent = [&](int64_t out, int64_t k) {
    return std::max<int64_t>((out - 1) * s.stride + (k - 1) * s.dilation + 1 - 2 * s.padding, 1);
  };
  s.height = input_extent(s.extent[kE], s.extent[kR]);
  s.width = input_extent(s.extent[kF], s.extent[kS]);
  for (uint8_t d = 0; d < kConvDims; ++d) {
    s.block[d] = Pick(random, 0, 1) == 0 ? s.extent[d] : Pick(random, 1, s.extent[d]);
  }
  std::vector<uint8_t> outer = {kG, kM, kE, kF};
  std::vector<uint8_t> inner = {kC, kR, kS};
  std::shuffle(outer.begin(), outer.end(), *random);
  outer.insert(outer.end(), inner.begin(), inner.end());
  for (const uint8_t d : outer) {
    if (s.block[d] < s.extent[d]) s.loops.push_back(d);
  }
  s.bias = Pick(random, 0, 1) == 1;
  s.relu = Pick(random, 0, 1) == 1;
  s.panels = Pick(random, 0, 1) == 1;
  s.drain_apart = Pick(random, 0, 1) == 1;
  s.input_slots = static_cast<uint8_t>(Pick(random, 1, 2));
  s.weight_slots = static_cast<uint8_t>(Pick(random, 1, 2));
  s.output_slots = static_cast<uint8_t>(Pick(random, 1, 2));
  return s;
}

ConvCase MakeConv(const ConvSpec& s, std::mt19937* random) {
  ConvCase c;
  const auto& n = s.extent;
  c.program.target = PlainTarget();
  const std::vector<float> x = RandomFloats(random, n[kG] * n[kC] * s.height * s.width);
  const std::vector<float> w = RandomFloats(random, n[kG] * n[kM] * n[kC] * n[kR] * n[kS]);
  const std::vector<float> b = RandomFloats(random, n[kG] * n[kM]);
  c.expected = NaiveConv(s, x, w, b);

  OperandDesc in, wt, acc, out, bias;
  in.value = "x";
  in.cls = OperandClass::kInput;
  const auto stride = static_cast<int32_t>(s.stride);
  const auto dilation = static_cast<int32_t>(s.dilation);
  in.axes = {Axis({{kG, 1}}, 0, n[kG]), Axis({{kC, 1}}, 0, n[kC]),
             Axis({{kE, stride}, {kR, dilation}}, -s.padding, s.height),
             Axis({{kF, stride}, {kS, dilation}}, -s.padding, s.width)};
  in.dram_layout = DramLayout::kStrided;
  in.region = AddRegion(&c.program, RegionKind::kInput, "x", static_cast<int64_t>(x.size()) * 4);
  in.slot_bytes = SetStrides(&in, s) * 4;
  in.ring_slots = s.input_slots;

  wt.value = "w";
  wt.cls = OperandClass::kWeight;
  for (const uint8_t d : {kG, kM, kC, kR, kS}) wt.axes.push_back(Axis({{d, 1}}, 0, n[d]));
  wt.memory = 1;
  wt.local_layout = s.panels ? LocalLayout::kPanels : LocalLayout::kDense;
  wt.dram_layout = s.panels ? DramLayout::kPacked : DramLayout::kStrided;
  wt.region = AddConstant(&c.program, "w", s.panels ? PackPanels(s, w) : w);
  wt.slot_bytes = SetStrides(&wt, s) * 4;
  wt.ring_slots = s.weight_slots;

  acc.value = "y";
  acc.cls = OperandClass::kPartial;
  for (const uint8_t d : {kG, kM, kE, kF}) acc.axes.push_back(Axis({{d, 1}}, 0, n[d]));
  acc.memory = 2;
  acc.slot_bytes = SetStrides(&acc, s) * 4;
  acc.ring_slots = s.output_slots;
  out = acc;
  out.cls = OperandClass::kOutput;
  out.dram_layout = DramLayout::kStrided;
  out.region =
      AddRegion(&c.program, RegionKind::kOutput, "y", static_cast<int64_t>(c.expected.size()) * 4);
  if (s.drain_apart) out.address = 2 * acc.slot_bytes;

  bias.value = "b";
  bias.cls = OperandClass::kWeight;
  bias.axes = {Axis({{kG, 1}}, 0, n[kG]), Axis({{kM, 1}}, 0, n[kM])};
  bias.memory = 1;
  bias.address = 2 * wt.slot_bytes;
  bias.dram_layout = DramLayout::kStrided;
  bias.region = AddConstant(&c.program, "b", b);
  bias.slot_bytes = SetStrides(&bias, s) * 4;
  bias.ring_slots = s.weight_slots;

  machine::Group& group = c.hand.group;
  group.name = "conv";
  group.onnx_nodes = {"conv"};
  const char* names[] = {"G", "M", "C", "E", "F", "R", "S"};
  for (uint8_t d = 0; d < kConvDims; ++d) group.dims.push_back({names[d], n[d], s.block[d]});
  group.loops = s.loops;
  group.operands = {in, wt, acc, out};
  if (s.bias) group.operands.push_back(bias);
  for (uint8_t o = 0; o < group.operands.size(); ++o) c.hand.SetGeneration(o);

  MicroProgram drain;
  drain.ops.push_back({.op = MicroOp::kAccumulator});
  if (s.relu) drain.ops.push_back({.op = MicroOp::kRelu, .stage = true});
  group.programs = {drain};
  machine::Instruction array;
  array.op = machine::Opcode::kArray;
  array.engine = machine::Engine::kArray;
  array.operand = kInput;
  array.operand2 = kWeight;
  array.operand3 = kAccumulator;
  array.operand4 = s.bias ? uint8_t{kBias} : machine::kNone;
  array.operand5 = kOutput;
  array.program = 0;
  c.hand.compute = {array};
  const auto overlaps = [&](uint8_t o) {
    return group.operands[o].ring_slots == 2 || c.hand.InnermostLoop(o) < 0;
  };
  c.hand.loads = {{kInput, overlaps(kInput)}, {kWeight, overlaps(kWeight)}};
  if (s.bias) c.hand.loads.push_back({kBias, overlaps(kBias)});
  c.hand.stores = {{kOutput, overlaps(kOutput)}};
  c.hand.EmitCode();
  c.program.groups = {group};
  c.program.predicted.resize(1);  // tests that want a true prediction fill it in
  c.program.predicted[0].memory.resize(c.program.target.memories.size());
  c.program.inputs = {{"x", ElementType::kF32, {1, n[kG] * n[kC], s.height, s.width}, in.region}};
  c.program.outputs = {{"y", ElementType::kF32, {1, n[kG] * n[kM], n[kE], n[kF]}, out.region}};
  c.inputs = {{"x", ElementType::kF32, c.program.inputs[0].shape, BytesOf(x)}};
  return c;
}

void AddResidual(const ConvSpec& s, ConvCase* c, std::mt19937* random) {
  DLA_CHECK(!s.relu && !s.drain_apart, "the sum is rectified, the drain is in place");
  machine::Group& group = c->hand.group;
  const auto count = static_cast<int64_t>(c->expected.size());
  const std::vector<float> r = RandomFloats(random, count);
  group.operands[kOutput].dram_layout = DramLayout::kNone;
  group.operands[kOutput].region = 0;
  OperandDesc residual = group.operands[kOutput];
  residual.value = "r";
  residual.cls = OperandClass::kVector;
  residual.dram_layout = DramLayout::kStrided;
  residual.region = AddRegion(&c->program, RegionKind::kInput, "r", count * 4);
  residual.address = 2 * residual.slot_bytes;
  OperandDesc sum = residual;
  sum.value = "z";
  sum.region = c->program.outputs[0].region;
  sum.address = 4 * residual.slot_bytes;
  const auto residual_number = static_cast<uint8_t>(group.operands.size());
  const auto sum_number = static_cast<uint8_t>(residual_number + 1);
  group.operands.push_back(residual);
  group.operands.push_back(sum);
  MicroProgram add;
  add.ops = {{.op = MicroOp::kLoad, .operand = kOutput},
             {.op = MicroOp::kLoad, .operand = residual_number},
             {.op = MicroOp::kAdd, .argument = {0, 1}},
             {.op = MicroOp::kRelu, .stage = true, .argument = {2}}};
  group.programs.push_back(add);
  machine::Instruction vector;
  vector.op = machine::Opcode::kVector;
  vector.engine = machine::Engine::kVector;
  vector.operand = sum_number;
  vector.program = 1;
  vector.predicate.last = 1u << kC | 1u << kR | 1u << kS;
  c->hand.vector_after = {vector};
  const bool overlaps = sum.ring_slots == 2 || c->hand.InnermostLoop(sum_number) < 0;
  c->hand.loads.push_back({residual_number, overlaps, true});
  c->hand.stores = {{sum_number, overlaps}};
  c->hand.EmitCode();
  c->program.groups = {group};
  const std::vector<int64_t> shape = c->program.outputs[0].shape;
  c->program.inputs.push_back({"r", ElementType::kF32, shape, residual.region});
  c->inputs.push_back({"r", ElementType::kF32, shape, BytesOf(r)});
  for (size_t i = 0; i < r.size(); ++i) {
    c->expected[i] = std::max(c->expected[i] + r[i], 0.0f);
  }
}

int64_t ConvResidualCycles(const machine::Target& target, const std::vector<int64_t>& n,
                           bool drains) {
  const int64_t points = n[kG] * n[kM] * n[kE] * n[kF];
  const int64_t lanes = target.vector.lanes;
  const int64_t vector = target.vector.startup_cycles + (points + lanes - 1) / lanes;
  return ConvCycles(target, n, drains) + (drains ? vector : 0);
}

int64_t ConvCycles(const machine::Target& target, const std::vector<int64_t>& n, bool) {
  const auto ceil = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const machine::Array& a = target.array;
  const int64_t folds = n[kG] * ceil(n[kE] * n[kF], a.rows) * ceil(n[kM], a.cols);
  return folds * (n[kC] * n[kR] * n[kS] + a.rows + a.cols - 2);
}

}  // namespace dla::runtime::test
