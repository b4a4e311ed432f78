// Vector groups and moves: pooling with padding, softmax, residual add, reductions, data movement.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "machine/timing.h"
#include "runtime/emulator.h"
#include "tests/runtime/hand_program.h"

namespace dla::runtime::test {
namespace {

using machine::AxisDesc;
using machine::OperandDesc;
using machine::RegionKind;

MicroInstruction Load(uint8_t operand) { return {.op = MicroOp::kLoad, .operand = operand}; }
MicroInstruction Op(MicroOp op, uint8_t a, uint8_t b = 0) { return {.op = op, .argument = {a, b}}; }

// A group with one vector instruction. Axes are row-major in DRAM and on chip.
struct VectorCase {
  machine::Program program;
  HandGroup hand;
  std::vector<Tensor> inputs;

  VectorCase() {
    program.target = PlainTarget();
    hand.compute_engine = machine::Engine::kVector;
    hand.group.name = "vector";
  }
  void Dim(const char* name, int64_t extent, int64_t block) {
    if (block < extent) hand.group.loops.push_back(static_cast<uint8_t>(hand.group.dims.size()));
    hand.group.dims.push_back({name, extent, block});
  }
  void Operand(const std::string& name, RegionKind kind, std::vector<AxisDesc> axes,
               const std::vector<float>& values, float pad = 0) {
    OperandDesc o;
    o.value = name;
    o.axes = std::move(axes);
    o.pad_value = pad;
    o.dram_layout = machine::DramLayout::kStrided;
    const auto bytes = static_cast<int64_t>(values.size()) * 4;
    o.region = AddRegion(&program, kind, name, bytes);
    int64_t dram = 1;
    int64_t local = 1;
    std::vector<int64_t> shape;
    for (size_t a = o.axes.size(); a-- > 0;) {
      AxisDesc& axis = o.axes[a];
      axis.dram_stride = dram;
      axis.local_stride = local;
      dram *= axis.bound;
      int64_t hull = 1;
      for (const auto& term : axis.terms) {
        hull += term.coefficient * (hand.group.dims[term.dim].block - 1);
      }
      local *= std::min(hull, axis.bound);
      shape.insert(shape.begin(), axis.bound);
    }
    o.ring_slots = 2;
    o.slot_bytes = local * 4;
    o.address = next_address_;
    next_address_ += 2 * o.slot_bytes;
    hand.group.operands.push_back(o);
    const machine::Port port = {name, ElementType::kF32, shape, o.region};
    if (kind == RegionKind::kInput) {
      program.inputs.push_back(port);
      inputs.push_back({name, ElementType::kF32, shape, BytesOf(values)});
    } else {
      program.outputs.push_back(port);
    }
  }
  // The last operand is the output.
  void Finish(MicroProgram micro, uint16_t reduce_dims = 0) {
    const auto output = static_cast<uint8_t>(hand.group.operands.size() - 1);
    for (uint8_t o = 0; o <= output; ++o) {
      hand.SetGeneration(o);
      (o == output ? hand.stores : hand.loads).push_back({o, true});
    }
    if (!micro.ops.empty()) {
      hand.group.programs = {std::move(micro)};
      machine::Instruction vector;
      vector.op = machine::Opcode::kVector;
      vector.engine = machine::Engine::kVector;
      vector.operand = output;
      vector.program = 0;
      vector.reduce_dims = reduce_dims;
      hand.compute = {vector};
    }
    hand.EmitCode();
    program.groups = {hand.group};
  }
  RunResult RunChecked() {
    const auto result = runtime::Run(program, {.check = true}, inputs);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? *result : RunResult{};
  }
  std::vector<float> Output() {
    const RunResult result = RunChecked();
    return result.outputs.empty() ? std::vector<float>{} : FloatsOf(result.outputs[0].bytes);
  }

 private:
  int64_t next_address_ = 0;
};

AxisDesc Axis(std::vector<machine::TermDesc> terms, int64_t bound, int64_t offset = 0) {
  AxisDesc axis;
  axis.terms = std::move(terms);
  axis.bound = bound;
  axis.offset = offset;
  return axis;
}

std::vector<float> Ramp(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / 16;
  }
  return values;
}

TEST(Vector, MaxPoolingWithPaddingAndStride) {
  constexpr float kLow = -std::numeric_limits<float>::infinity();
  for (const int64_t block : {1, 2, 4}) {
    VectorCase c;
    c.Dim("C", 3, 2);
    c.Dim("E", 4, block);
    c.Dim("F", 4, 4);
    c.Dim("R", 3, 3);
    c.Dim("S", 3, 3);
    const std::vector<float> x = Ramp(3 * 7 * 7);
    c.Operand("x", RegionKind::kInput,
              {Axis({{0, 1}}, 3), Axis({{1, 2}, {3, 1}}, 7, -1), Axis({{2, 2}, {4, 1}}, 7, -1)}, x,
              kLow);
    c.Operand("y", RegionKind::kOutput, {Axis({{0, 1}}, 3), Axis({{1, 1}}, 4), Axis({{2, 1}}, 4)},
              std::vector<float>(48));
    c.Finish({{Load(0), Op(MicroOp::kReduceMax, 0)}});
    std::vector<float> expected;
    for (int64_t ch = 0; ch < 3; ++ch)
      for (int64_t e = 0; e < 4; ++e)
        for (int64_t f = 0; f < 4; ++f) {
          float most = kLow;
          for (int64_t h = std::max<int64_t>(2 * e - 1, 0); h < std::min<int64_t>(2 * e + 2, 7);
               ++h)
            for (int64_t w = std::max<int64_t>(2 * f - 1, 0); w < std::min<int64_t>(2 * f + 2, 7);
                 ++w)
              most = std::max(most, x[static_cast<size_t>((ch * 7 + h) * 7 + w)]);
          expected.push_back(most);
        }
    EXPECT_EQ(c.Output(), expected) << "block " << block;
  }
}

TEST(Vector, SoftmaxReducesAlongADimensionThatItsOutputHas) {
  VectorCase c;
  c.Dim("row", 5, 2);
  c.Dim("col", 300, 300);
  const std::vector<float> x = Ramp(1500);
  const std::vector<AxisDesc> axes = {Axis({{0, 1}}, 5), Axis({{1, 1}}, 300)};
  c.Operand("x", RegionKind::kInput, axes, x);
  c.Operand("y", RegionKind::kOutput, axes, x);
  c.Finish({{Load(0), Op(MicroOp::kReduceMax, 0), Op(MicroOp::kSub, 0, 1), Op(MicroOp::kExp, 2),
             Op(MicroOp::kReduceSum, 3), Op(MicroOp::kDiv, 3, 4)}},
           1u << 1);
  const std::vector<float> y = c.Output();
  ASSERT_EQ(y.size(), x.size());
  for (size_t row = 0; row < 5; ++row) {
    double sum = 0;
    for (size_t i = 0; i < 300; ++i) sum += std::exp(static_cast<double>(x[row * 300 + i]));
    for (size_t i = 0; i < 300; ++i) {
      const double expected = std::exp(static_cast<double>(x[row * 300 + i])) / sum;
      EXPECT_NEAR(static_cast<double>(y[row * 300 + i]), expected, 1e-6 * expected);
    }
  }
}

TEST(Vector, CountsAndCyclesFollowTheDefinitions) {
  VectorCase c;
  c.Dim("row", 4, 4);
  c.Dim("col", 10, 10);
  const std::vector<AxisDesc> axes = {Axis({{0, 1}}, 4), Axis({{1, 1}}, 10)};
  c.Operand("x", RegionKind::kInput, axes, Ramp(40));
  c.Operand("y", RegionKind::kOutput, axes, Ramp(40));
  c.Finish({{Load(0), Op(MicroOp::kReduceMax, 0), Op(MicroOp::kSub, 0, 1)}}, 1u << 1);
  c.program.target.vector.startup_cycles = 8;
  const RunResult result = c.RunChecked();
  const machine::Counters& counters = result.total.counters;
  // Load 160 bytes in 10 cycles, max over 40 points ceil(40/32) + log2(32), subtraction 2, start-up
  // 8, store 10.
  EXPECT_EQ(counters.cycles, 10 + (2 + 5) + 2 + 8 + 10);
  EXPECT_EQ(counters.vector_ops, 80);
  EXPECT_EQ(counters.memory[0].read_bytes, 160 + 160);   // the program's load, the store
  EXPECT_EQ(counters.memory[0].write_bytes, 160 + 160);  // the load, the result
}

TEST(Vector, ResidualAddWithBroadcastBiasAndRelu) {
  VectorCase c;
  c.Dim("C", 6, 4);
  c.Dim("P", 700, 512);
  const std::vector<AxisDesc> axes = {Axis({{0, 1}}, 6), Axis({{1, 1}}, 700)};
  const std::vector<float> x = Ramp(4200);
  const std::vector<float> bias = {-1, 2, -3, 4, -5, 6};
  c.Operand("x", RegionKind::kInput, axes, x);
  c.Operand("b", RegionKind::kInput, {Axis({{0, 1}}, 6)}, bias);
  c.Operand("y", RegionKind::kOutput, axes, x);
  MicroProgram micro{{Load(0), Load(1), Op(MicroOp::kAdd, 0, 1), Op(MicroOp::kRelu, 2)}};
  micro.ops.back().stage = true;
  c.Finish(micro);
  std::vector<float> expected;
  for (size_t i = 0; i < x.size(); ++i) expected.push_back(std::max(0.0f, x[i] + bias[i / 700]));
  EXPECT_EQ(c.Output(), expected);
}

TEST(Vector, MeanOverARowLongerThanAChunk) {
  VectorCase c;
  c.Dim("row", 3, 1);
  c.Dim("col", 5000, 5000);
  const std::vector<float> x = Ramp(15000);
  c.Operand("x", RegionKind::kInput, {Axis({{0, 1}}, 3), Axis({{1, 1}}, 5000)}, x);
  c.Operand("y", RegionKind::kOutput, {Axis({{0, 1}}, 3)}, {0, 0, 0});
  MicroProgram micro{{Load(0), Op(MicroOp::kReduceSum, 0)}};
  c.Finish(micro);
  std::vector<float> expected;
  for (size_t row = 0; row < 3; ++row) {
    double sum = 0;
    for (size_t i = 0; i < 5000; ++i) sum += static_cast<double>(x[row * 5000 + i]);
    expected.push_back(static_cast<float>(sum));
  }
  EXPECT_EQ(c.Output(), expected);
}

TEST(Vector, EveryOperationOnOneElement) {
  volatile float unfolded = 0.625f;  // so that the compiler does not compute what follows
  const float in = unfolded;
  const struct {
    MicroInstruction op;
    float expected;
  } cases[] = {{Op(MicroOp::kNeg, 0), -in},
               {Op(MicroOp::kAbs, 0), in},
               {Op(MicroOp::kExp, 0), std::exp(in)},
               {Op(MicroOp::kLog, 0), std::log(in)},
               {Op(MicroOp::kSqrt, 0), std::sqrt(in)},
               {Op(MicroOp::kReciprocal, 0), 1.6f},
               {Op(MicroOp::kTanh, 0), std::tanh(in)},
               {Op(MicroOp::kSigmoid, 0), 1 / (1 + std::exp(-in))},
               {Op(MicroOp::kErf, 0), std::erf(in)},
               {Op(MicroOp::kFloor, 0), 0},
               {Op(MicroOp::kCeil, 0), 1},
               {Op(MicroOp::kRound, 0), 1},
               {Op(MicroOp::kRelu, 0), in},
               {{.op = MicroOp::kLeakyRelu, .argument = {0}, .immediate = {0.1f}}, in},
               {{.op = MicroOp::kClamp, .argument = {0}, .immediate = {-1, 0.5f}}, 0.5f},
               {Op(MicroOp::kCopy, 0), in},
               {Op(MicroOp::kMin, 0, 0), in},
               {Op(MicroOp::kPow, 0, 0), std::pow(in, in)},
               {Op(MicroOp::kDiv, 0, 0), 1}};
  for (const auto& test : cases) {
    VectorCase c;
    c.Dim("i", 1, 1);
    c.Operand("x", RegionKind::kInput, {Axis({{0, 1}}, 1)}, {in});
    c.Operand("y", RegionKind::kOutput, {Axis({{0, 1}}, 1)}, {0});
    c.Finish({{Load(0), test.op}});
    EXPECT_EQ(c.Output(), std::vector<float>{test.expected}) << Info(test.op.op).name;
  }
}

// Two groups: y = relu(x) stays on chip, whole; z = -y under another name, two rows at a time.
VectorCase ResidentCase() {
  VectorCase c;
  c.Dim("row", 4, 2);
  c.Dim("col", 8, 8);
  const std::vector<AxisDesc> axes = {Axis({{0, 1}}, 4), Axis({{1, 1}}, 8)};
  c.Operand("x", RegionKind::kInput, axes, Ramp(32));
  c.Operand("z", RegionKind::kOutput, axes, Ramp(32));
  c.Finish({{Load(0), Op(MicroOp::kRelu, 0)}});
  OperandDesc resident = c.hand.group.operands[1];
  resident.value = "y";
  resident.resident = true;
  resident.dram_layout = machine::DramLayout::kNone;
  resident.region = 0;
  resident.ring_slots = 1;
  resident.generation_dims = 0;
  resident.memory = 2;
  resident.address = 4096;
  resident.slot_bytes = 128;
  HandGroup producer = c.hand;
  producer.group.operands[1] = resident;
  producer.stores.clear();
  producer.EmitCode();
  HandGroup consumer = c.hand;
  resident.value = "y_reshaped";
  consumer.group.name = "consumer";
  consumer.group.operands[0] = resident;
  consumer.group.programs = {{{Load(0), Op(MicroOp::kNeg, 0)}}};
  consumer.loads.clear();
  consumer.EmitCode();
  c.program.groups = {producer.group, consumer.group};
  c.program.buffers = {{.name = "y", .memory = 2, .address = 4096, .bytes = 128, .end_group = 2}};
  return c;
}

TEST(Resident, StaysOnChipFromGroupToGroup) {
  VectorCase c = ResidentCase();
  std::vector<float> expected = Ramp(32);
  for (float& v : expected) v = v < 0 ? -0.0f : -v;
  EXPECT_EQ(c.Output(), expected);
  const RunResult result = c.RunChecked();
  EXPECT_EQ(result.groups[0].counters.dram_bytes(), 128);
  EXPECT_EQ(result.groups[1].counters.dram_bytes(), 128);
}

TEST(Resident, OverwrittenBetweenGroupsIsReported) {
  VectorCase c = ResidentCase();
  // The consumer's output tiles lie on the resident's last row.
  c.program.groups[1].operands[1].memory = 2;
  c.program.groups[1].operands[1].address = 4096 + 96;
  const auto result = runtime::Run(c.program, {.check = true}, c.inputs);
  ASSERT_FALSE(result.ok());
  for (const char* part :
       {"group 'consumer': step 1: vector instruction reads operand 'y_reshaped'",
        "expected what lies at 4192 in the buffer of 'y'", "found byte 0 of region 'z'"}) {
    EXPECT_NE(result.status().message().find(part), std::string::npos) << result.status().message();
  }
}

TEST(Move, ATransposeIsOnlyLoadsAndStores) {
  VectorCase c;
  c.Dim("row", 6, 2);
  c.Dim("col", 9, 4);
  const std::vector<float> x = Ramp(54);
  c.Operand("x", RegionKind::kInput, {Axis({{0, 1}}, 6), Axis({{1, 1}}, 9)}, x);
  c.Operand("y", RegionKind::kOutput, {Axis({{1, 1}}, 9), Axis({{0, 1}}, 6)}, x);
  OperandDesc& y = c.hand.group.operands[1];
  y.address = c.hand.group.operands[0].address;  // one buffer, seen in two orders
  y.axes[0].local_stride = 1;
  y.axes[1].local_stride = c.hand.group.operands[0].axes[0].local_stride;
  c.Finish({});
  std::vector<float> expected(54);
  for (size_t row = 0; row < 6; ++row)
    for (size_t col = 0; col < 9; ++col) expected[col * 6 + row] = x[row * 9 + col];
  EXPECT_EQ(c.Output(), expected);
}

TEST(Move, OnChipCopiesTakeTheLinkAndAreCounted) {
  VectorCase c;
  c.Dim("row", 4, 2);
  c.Dim("col", 32, 32);
  const std::vector<AxisDesc> axes = {Axis({{0, 1}}, 4), Axis({{1, 1}}, 32)};
  c.Operand("x", RegionKind::kInput, axes, Ramp(128));
  c.Operand("y", RegionKind::kOutput, axes, Ramp(128));
  c.Finish({});
  // A third operand: the loaded tile again, in the memory behind the link; the move engine takes
  // the vector engine's place, and the store what it has copied.
  machine::Group& g = c.program.groups[0];
  g.operands[1].memory = 2;
  g.operands[1].value = "y";
  for (auto* code : {&g.prologue, &g.body, &g.epilogue}) {
    for (machine::Instruction& i : *code) {
      if (i.engine == machine::Engine::kVector) i.engine = machine::Engine::kMove;
    }
  }
  machine::Instruction move;
  move.op = machine::Opcode::kMove;
  move.engine = machine::Engine::kMove;
  move.operand = 0;
  move.operand2 = 1;
  for (size_t i = 0; i < g.body.size(); ++i) {
    if (g.body[i].op == machine::Opcode::kSignal && g.body[i].engine == machine::Engine::kMove) {
      g.body.insert(g.body.begin() + static_cast<std::ptrdiff_t>(i), move);
      break;
    }
  }
  const RunResult result = c.RunChecked();
  ASSERT_EQ(result.outputs.size(), 1u);
  EXPECT_EQ(FloatsOf(result.outputs[0].bytes), Ramp(128));
  EXPECT_EQ(result.total.counters.move_bytes, 512);
  // Two steps of 256 bytes: load 16, load 16 and move 8, move 8, stores 16 each.
  EXPECT_EQ(result.total.counters.cycles, 16 + 16 + 16 + 16);
  EXPECT_EQ(result.total.engines[static_cast<size_t>(machine::Engine::kMove)].busy, 16);
  c.program.target.links.clear();
  const auto refused = runtime::Run(c.program, {}, c.inputs);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("between which is no link"), std::string::npos);
}

}  // namespace
}  // namespace dla::runtime::test
