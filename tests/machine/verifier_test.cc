// The program verifier: one damage of each kind with its message, and random damage of every field
// judged by a brute-force walk.
#include "machine/verifier.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "machine/assembly.h"
#include "machine/program_layout.h"
#include "machine/tile.h"
#include "tests/machine/program_walk.h"
#include "tests/machine/sample_program.h"
#include "tests/random_pick.h"

namespace dla::machine {
namespace {

struct Damage {
  const char* message;  // how the first message line ends, or a part of it
  std::function<void(Program*)> damage;
};

Group& Conv(Program* p) { return p->groups[0]; }
Group& Softer(Program* p) { return p->groups[1]; }
Group& Copy(Program* p) { return p->groups[2]; }
Instruction& Find(std::vector<Instruction>* code, Opcode op, int nth = 0) {
  for (Instruction& i : *code) {
    if (i.op == op && nth-- == 0) return i;
  }
  DLA_CHECK(false, "no such instruction");
  return code->front();
}

void ExpectCaught(const std::vector<Damage>& damages) {
  for (const Damage& d : damages) {
    Program program = sample::MakeProgram();
    d.damage(&program);
    const Status status = VerifyProgram(program);
    ASSERT_FALSE(status.ok()) << d.message;
    EXPECT_EQ(status.code(), ErrorCode::kMalformed);
    EXPECT_NE(status.message().find(d.message), std::string::npos)
        << "expected: " << d.message << "\nfound: " << status.message();
  }
}

TEST(Verifier, AcceptsTheSample) {
  const Program program = sample::MakeProgram();
  EXPECT_EQ(VerifyProgram(program).message(), "");
  EXPECT_EQ(sample::WalkProgram(program, 1000, 1), "");
}

TEST(Verifier, RefusesBadDiagonals) {
  const auto diagonal = [](Program* p) -> DiagonalDesc& {
    sample::AddDiagonal(p);
    return *Conv(p).operands[1].diagonal;
  };
  Program sound = sample::MakeProgram();
  diagonal(&sound);
  EXPECT_EQ(VerifyProgram(sound).message(), "");
  using P = Program*;
  ExpectCaught({
      {"is block-diagonal over dimensions 9 and 1", [&](P p) { diagonal(p).channel_dim = 9; }},
      {"is block-diagonal over dimensions 0 and 0", [&](P p) { diagonal(p).depth_dim = 0; }},
      {"is block-diagonal over dimensions 0 and 2", [&](P p) { diagonal(p).depth_dim = 2; }},
      {"is block-diagonal with blocks of 0 by 2", [&](P p) { diagonal(p).channels = 0; }},
      {"is block-diagonal with blocks of 12 by -1", [&](P p) { diagonal(p).depths = -1; }},
      {"is block-diagonal over other dimensions than a channel and a depth",
       [&](P p) {
         DiagonalDesc& d = diagonal(p);
         d.channel_dim = 1;
         d.depth_dim = 4;
       }},
      {"is block-diagonal, but does not lie in panels",
       [&](P p) { Conv(p).operands[0].diagonal = diagonal(p); }},
  });
}

TEST(Verifier, RefusesBadGathers) {
  Program sound = sample::MakeProgram();
  sample::AddGather(&sound);
  EXPECT_EQ(VerifyProgram(sound).message(), "");
  using P = Program*;
  const std::string by = "operand 0 'conv': is gathered by operand 2 'i', which does not hold";
  const std::vector<std::pair<std::string, std::function<void(P)>>> damages = {
      {"operand 0 'conv': is gathered by operand 9 of 3",
       [](P p) { Softer(p).operands[0].gather->indices = 9; }},
      {"is gathered with bound 0 and stride 64",
       [](P p) { Softer(p).operands[0].gather->bound = 0; }},
      {"is gathered with bound 24 and stride -1",
       [](P p) { Softer(p).operands[0].gather->stride = -1; }},
      {"base 0 and 1600 elements of f32 do not fit into region 'conv'",
       [](P p) { Softer(p).operands[0].gather->bound = 25; }},
      {"is gathered, but not from strided DRAM",
       [](P p) { Softer(p).operands[0].dram_layout = DramLayout::kPacked; }},
      {"is gathered, but not from strided DRAM",
       [](P p) { Softer(p).operands[0].resident = true; }},
      {by, [](P p) { Softer(p).operands[2].type = ElementType::kF32; }},
      {by, [](P p) { Softer(p).operands[2].gather = {.indices = 0}; }},
      {"do not cover the same whole dimensions",
       [](P p) { Softer(p).operands[2].axes[0].offset = 1; }},
      {"do not cover the same whole dimensions",
       [](P p) { Softer(p).operands[0].axes[0].terms[0].coefficient = 2; }},
      {"do not cover the same whole dimensions",
       [](P p) { Softer(p).operands[0].axes.erase(Softer(p).operands[0].axes.begin()); }},
      {"operand 0 'conv': is gathered, and would be stored",
       [](P p) { Find(&Softer(p).body, Opcode::kStore).operand = 0; }},
      {"what is gathered cannot be moved",
       [](P p) {
         Copy(p).operands.push_back(Softer(p).operands[2]);
         Copy(p).operands[2].slot_bytes = 96;
         Copy(p).operands[2].address = 8192;
         Copy(p).operands[1].gather = {.indices = 2, .bound = 1, .stride = 0};
       }},
  };
  for (const auto& [message, damage] : damages) {
    Program program = sound;
    damage(&program);
    const Status status = VerifyProgram(program);
    ASSERT_FALSE(status.ok()) << message;
    EXPECT_NE(status.message().find(message), std::string::npos)
        << "expected: " << message << "\nfound: " << status.message();
  }
}

TEST(Verifier, RefusesBadTables) {
  using P = Program*;
  ExpectCaught({
      {"region 1 'w': ends at 4352, the constants at 3552",
       [](P p) { p->regions[1].bytes = 4352; }},
      {"region 2 'b': address 3457 is not a multiple of 64",
       [](P p) { p->regions[2].address = 3457, p->regions[2].bytes = 95; }},
      {"region 0 'x': address -1 with 1024 bytes", [](P p) { p->regions[0].address = -1; }},
      {"region 2 'b': overlaps region 1 'w'", [](P p) { p->regions[2].address = 64; }},
      {"input 'x': there is no region 9", [](P p) { p->inputs[0].region = 9; }},
      {"input 'x': region 5 'z' is not of kind input", [](P p) { p->inputs[0].region = 5; }},
      {"input 'x': has 1280 bytes, region 0 'x' has 1024", [](P p) { p->inputs[0].shape[1] = 5; }},
      {"input 'x': its shape is impossible or too large",
       [](P p) { p->inputs[0].shape[1] = int64_t{1} << 62; }},
      {"output 'z': is there twice", [](P p) { p->outputs.push_back(p->outputs[0]); }},
      {"buffer 0 'x': there is no memory 3", [](P p) { p->buffers[0].memory = 3; }},
      {"buffer 0 'x': address 65536 with 640 bytes is not within memory 'input' of 65536 bytes",
       [](P p) { p->buffers[0].address = 65536; }},
      {"buffer 0 'x': lives in groups 0 to 4, there are 3",
       [](P p) { p->buffers[0].end_group = 4; }},
      {"value 'relu': there is no group 3", [](P p) { p->values[0].group = 3; }},
      {"value 'y': there is no region 6", [](P p) { p->values[1].space = 6; }},
      {"value 'v': there is no memory 3", [](P p) { p->values[2].space = 3; }},
      {"value 'y': its shape is impossible or too large",
       [](P p) { p->values[1].strides.pop_back(); }},
      {"value 'y': its shape is impossible or too large",
       [](P p) { p->values[1].strides[1] = int64_t{1} << 62; }},
      {"value 'y': base 4 with 6144 bytes is not within the 6144 bytes of its region",
       [](P p) { p->values[1].base = 4; }},
      {"value 'v': base -1 with 6144 bytes is not within the 65536 bytes of its memory",
       [](P p) { p->values[2].base = -1; }},
      {"predicted counters: there are 2, and 3 groups", [](P p) { p->predicted.pop_back(); }},
  });
}

TEST(Verifier, RefusesBadDimensionsAndOperands) {
  using P = Program*;
  ExpectCaught({
      {"group 0 'conv': dimension 'M': extent 24 in blocks of 25 is impossible",
       [](P p) { Conv(p).dims[0].block = 25; }},
      {"dimension 'M': extent 24 in blocks of 0", [](P p) { Conv(p).dims[0].block = 0; }},
      {"dimension 'M': 25 of its 24 indices cannot be repeated",
       [](P p) { Conv(p).dims[0].repeated = 25; }},
      {"dimension 'M': -1 of its 24 indices cannot be repeated",
       [](P p) { Conv(p).dims[0].repeated = -1; }},
      {"dimension 'F': has no loop, but its block 4 is not its extent 8",
       [](P p) { Conv(p).dims[3].block = 4; }},
      {"dimension 'M' has two loops", [](P p) { Conv(p).loops.push_back(0); }},
      {"a loop runs over dimension 6 of 6", [](P p) { Conv(p).loops[0] = 6; }},
      {"has more than 2^40 steps",
       [](P p) {
         for (const int d : {0, 1, 2}) Conv(p).dims[static_cast<size_t>(d)] = {"X", 32768, 1};
       }},
      {"has more than 2^60 points",
       [](P p) {
         Conv(p).dims[0].extent = kMaxExtent;
         Conv(p).dims[2].extent = kMaxExtent;
       }},
      {"operand 0 'x': axis 1: has a term of 1 times dimension 6",
       [](P p) { Conv(p).operands[0].axes[1].terms[0].dim = 6; }},
      {"operand 0 'x': axis 1: has a term of 0 times dimension 2",
       [](P p) { Conv(p).operands[0].axes[1].terms[0].coefficient = 0; }},
      {"operand 0 'x': axis 2: dimension 'E' is in the operand twice",
       [](P p) { Conv(p).operands[0].axes[2].terms[0].dim = 2; }},
      {"operand 0 'x': axis 0: offset 0, bound 0 or strides",
       [](P p) { Conv(p).operands[0].axes[0].bound = 0; }},
      {"operand 0 'x': its pad value is not a number",
       [](P p) { Conv(p).operands[0].pad_value = std::nanf(""); }},
      {"operand 0 'x': memory 'weight' does not hold class 'input'",
       [](P p) { Conv(p).operands[0].memory = 1; }},
      {"operand 0 'x': there is no memory 3", [](P p) { Conv(p).operands[0].memory = 3; }},
      {"operand 0 'x': 2 slots of 320 bytes from address 64912 do not fit into memory 'input' of "
       "65536 bytes",
       [](P p) { Conv(p).operands[0].address = 64912; }},
      {"operand 0 'x': address 4 or slots of 320 bytes are not aligned to 16 bytes",
       [](P p) { Conv(p).operands[0].address = 4; }},
      {"operand 0 'x': its longest tile has 320 bytes, its slot 304",
       [](P p) { Conv(p).operands[0].slot_bytes = 304; }},
      {"operand 1 'w': its longest tile has 1152 bytes, its slot 1136",
       [](P p) { Conv(p).operands[1].slot_bytes = 1136; }},
      {"operand 0 'x': has 0 ring slots", [](P p) { Conv(p).operands[0].ring_slots = 0; }},
      {"operand 0 'y': has 2 ring slots and is resident",
       [](P p) { Copy(p).operands[0].ring_slots = 2; }},
      {"operand 0 'x': its generation names a dimension that there is not",
       [](P p) { Conv(p).operands[0].generation_dims = 64; }},
      {"operand 0 'x': elements of its tile share a place",
       [](P p) { Conv(p).operands[0].axes[0].local_stride = 39; }},
      {"operand 1 'w': lies in panels, but an axis is not just one whole dimension",
       [](P p) { Conv(p).operands[1].axes[0].offset = 1; }},
      {"operand 0 'conv': lies in panels, but is of class 'vector'",
       [](P p) { Softer(p).operands[0].local_layout = LocalLayout::kPanels; }},
      {"operand 0 'x': there is no region 6", [](P p) { Conv(p).operands[0].region = 6; }},
      {"operand 0 'x': base 1 and 256 elements of f32 do not fit into region 'x' of 1024 bytes",
       [](P p) { Conv(p).operands[0].dram_base = 1; }},
      {"operand 1 'w': base 1 and 864 elements of f32 do not fit into region 'w' of 3456 bytes",
       [](P p) { Conv(p).operands[1].dram_base = 1; }},
      {"operand 0 'x': base -1 and too many elements",
       [](P p) { Conv(p).operands[0].dram_base = -1; }},
  });
}

// The bias of the sample's convolution, whole and loaded in the first run only.
OperandDesc& KeepBias(Program* p) {
  OperandDesc& bias = Conv(p).operands[2];
  bias.resident = bias.once = true;
  bias.ring_slots = 1;
  bias.generation_dims = 0;
  bias.slot_bytes = 96;
  return bias;
}

TEST(Verifier, KnowsWhatStaysForLaterRuns) {
  Program sound = sample::MakeProgram();
  KeepBias(&sound);
  EXPECT_EQ(VerifyProgram(sound).message(), "");
  const auto drop_loads = [](Program* p) {
    std::erase_if(Conv(p).body,
                  [](const Instruction& i) { return i.op == Opcode::kLoad && i.operand == 2; });
  };
  ExpectCaught({
      {"operand 2 'b': is loaded once for all runs, but is no resident constant",
       [](Program* p) { Conv(p).operands[2].once = true; }},
      {"operand 0 'x': is loaded once for all runs, but is no resident constant",
       [](Program* p) { Conv(p).operands[0].once = true; }},
      {"operand 2 'b': is loaded once for all runs, but in stripes or not at all",
       [&](Program* p) {
         KeepBias(p);
         drop_loads(p);
       }},
      {"operand 2 'b': is resident, but no group up to this one loads it there",
       [&](Program* p) {
         KeepBias(p).once = false;
         drop_loads(p);
       }},
      {"operand 1 'w': is written where operand 2 'b' stays for later runs",
       [](Program* p) { KeepBias(p).address = 0; }},
      {"predicted counters of later runs: there are 1, and 3 groups",
       [](Program* p) { p->steady = {p->predicted[0]}; }},
  });
}

TEST(Verifier, RefusesBadInstructionsAndMicroPrograms) {
  using P = Program*;
  ExpectCaught({
      {"body 1 (load): engine store cannot do this",
       [](P p) { Conv(p).body[1].engine = Engine::kStore; }},
      {"body 1 (load): field 'count' is set, but this instruction has none",
       [](P p) { Conv(p).body[1].count = 2; }},
      {"body 1 (load): tile 5 is out of range", [](P p) { Conv(p).body[1].operand = 5; }},
      {"body 1 (load): its predicate names a dimension that there is not",
       [](P p) { Conv(p).body[1].predicate.last = 64; }},
      {"body 0 (wait): token 16 is out of range", [](P p) { Conv(p).body[0].token = 16; }},
      {"body 0 (wait): count 0 is out of range", [](P p) { Conv(p).body[0].count = 0; }},
      {"body 0 (wait): field 'first' is set", [](P p) { Conv(p).body[0].predicate.first = 1; }},
      {"(bus): slot 4 is out of range", [](P p) { Find(&Conv(p).body, Opcode::kBus).slot = 4; }},
      {"(bus): lag 4 is out of range", [](P p) { Find(&Conv(p).body, Opcode::kBus).lag = 4; }},
      {"(array): drain 1 is out of range",
       [](P p) { Find(&Conv(p).body, Opcode::kArray).program = 1; }},
      {"prologue 4 (load): stands outside of the body",
       [](P p) { Conv(p).prologue.push_back(sample::Load(0)); }},
      {"(load): operand 3 'conv': never leaves the chip", [](P p) { Conv(p).body[1].operand = 3; }},
      {"(store): operand 1 'w': would be stored into region 'w', which is constant",
       [](P p) { Find(&Conv(p).body, Opcode::kStore).operand = 1; }},
      {"(store): operand 0 'x': would be stored into region 'x', which is an input",
       [](P p) { Find(&Conv(p).body, Opcode::kStore).operand = 0; }},
  });
}

TEST(Verifier, RefusesBadRoles) {
  using P = Program*;
  ExpectCaught({
      {"operand 0 'x': is the array's weight, but of class 'input'",
       [](P p) { Find(&Conv(p).body, Opcode::kArray).operand2 = 0; }},
      {"target 'edge32' does not multiply f32 by f16",
       [](P p) { Conv(p).operands[1].type = ElementType::kF16; }},
      {"operand 2 'b': is a bias of type f16 instead of f32",
       [](P p) { Conv(p).operands[2].type = ElementType::kF16; }},
      {"operand 3 'conv': accumulates in f16 instead of f32",
       [](P p) { Conv(p).operands[3].type = ElementType::kF16; }},
      {"operand 4 'conv': overlaps the accumulators in part",
       [](P p) { Conv(p).operands[4].address = 2048; }},
      {"operand 4 'conv': is written, but its indices -1 to 6 leave its bound 8",
       [](P p) { Conv(p).operands[4].axes[1].offset = -1; }},
      {"operand 4 'conv': depends on other dimensions than the accumulators",
       [](P p) { Conv(p).operands[4].axes[1].terms.clear(); }},
      {"dimension 'M' belongs to fewer than two of input, weight and output",
       [](P p) {
         Conv(p).operands[3].axes[0].terms.clear();
         Conv(p).operands[4].axes[0].terms.clear();
       }},
      {"program 0: a drain is the accumulator and then output-stage operations; v1 is not",
       [](P p) { Conv(p).programs[0].ops[1].stage = false; }},
      {"program 0: v1 (exp): target 'edge32' cannot do this in its output stage",
       [](P p) { Conv(p).programs[0].ops[1].op = MicroOp::kExp; }},
      {"program 0: v1 (relu): has a field that it does not use, or an immediate",
       [](P p) { Conv(p).programs[0].ops[1].immediate[1] = 1; }},
      {"program 0: v2 (sub): uses a later value",
       [](P p) { Softer(p).programs[0].ops[2].argument[1] = 2; }},
      {"program 0: v3 (relu): in the output stage only the value before it can be used",
       [](P p) { Softer(p).programs[0].ops[3].argument[0] = 0; }},
      {"program 0: v0 (load): there is no operand 2",
       [](P p) { Softer(p).programs[0].ops[0].operand = 2; }},
      {"program 0: has 0 operations", [](P p) { Softer(p).programs[0].ops.clear(); }},
      {"(vector): a vector program has no accumulator",
       [](P p) { Softer(p).programs[0] = sample::Micro("v0 = accumulator"); }},
      {"(vector): the result depends on F, operand 1 'y' does not",
       [](P p) { Softer(p).operands[1].axes[2].terms.clear(); }},
      {"(vector): reduce 8 is out of range",
       [](P p) { Find(&Softer(p).body, Opcode::kVector).reduce_dims = 8; }},
      {"operand 0 'y': is moved, but not resident",
       [](P p) { Copy(p).operands[0].resident = false; }},
      {"there is no link from memory 'input' to 'input'",
       [](P p) { Copy(p).operands[1].memory = 0; }},
      {"operand 1 'z': has type i32, its source f32",
       [](P p) { Copy(p).operands[1].type = ElementType::kI32; }},
      {"operand 1 'z': has other axes than its source",
       [](P p) {
         Copy(p).operands[1].axes[0].terms[0].dim = 1;
         Copy(p).operands[1].axes[1].terms[0].dim = 0;
         Copy(p).operands[1].axes[0].bound = 8;
         Copy(p).operands[1].axes[1].bound = 24;
         Copy(p).operands[1].axes[1].dram_stride = 64;
         Copy(p).operands[1].axes[1].local_stride = 64;
         Copy(p).operands[1].axes[0].dram_stride = 8;
         Copy(p).operands[1].axes[0].local_stride = 8;
       }},
  });
}

// A vector program of the sample's second group with one thing wrong.
void ExpectProgramRefused(const std::string& text, const std::string& message) {
  Program program = sample::MakeProgram();
  Softer(&program).programs[0] = sample::Micro(text);
  const Status status = VerifyProgram(program);
  EXPECT_FALSE(status.ok()) << text;
  EXPECT_NE(status.message().find(message), std::string::npos)
      << text << "\nexpected: " << message << "\nfound: " << status.message();
}

TEST(Verifier, KnowsTheTypesOfMicroPrograms) {
  Program program = sample::MakeProgram();
  Softer(&program).programs[0] = sample::Micro(
      "v0 = load 0; v1 = cast.i64 v0; v2 = index.i64 1; v3 = less.bool v1 v2; v4 = not.bool v3; "
      "v5 = wrap.i64 v1 8 1; v6 = cast v5; v7 = const nan; v8 = select v4 v6 v7");
  EXPECT_TRUE(VerifyProgram(program).ok()) << VerifyProgram(program).message();

  const std::string misfit = " and the types of its arguments do not fit";
  ExpectProgramRefused("v0 = load.i64 0", "loads operand 0 'conv' of type f32 as i64");
  ExpectProgramRefused("v0 = load 0; v1 = cast.i64 v0", "has type f32, the result is i64");
  ExpectProgramRefused("v0 = load 0; v1 = less v0 v0", "v1 (less): type f32" + misfit);
  ExpectProgramRefused("v0 = load 0; v1 = cast.f64 v0; v2 = add v0 v1",
                       "v2 (add): type f32" + misfit);
  ExpectProgramRefused("v0 = load 0; v1 = cast.i64 v0; v2 = exp.i64 v1",
                       "v2 (exp): type i64" + misfit);
  ExpectProgramRefused("v0 = load 0; v1 = select v0 v0 v0", "v1 (select): type f32" + misfit);
  ExpectProgramRefused("v0 = load 0; v1 = bit_and v0 v0", "v1 (bit_and): type f32" + misfit);
  ExpectProgramRefused("v0 = load 0; v1 = cast.u64 v0; v2 = wrap.u64 v1 8 0; v3 = cast v2",
                       "v2 (wrap): type u64" + misfit);
  ExpectProgramRefused("v0 = index.i64 3; v1 = cast v0", "v0 (index): there is no dimension 3");
  const std::string immediate = "has a field that it does not use, or an immediate";
  ExpectProgramRefused("v0 = load 0; v1 = cast.i64 v0; v2 = wrap.i64 v1 7 0; v3 = cast v2",
                       immediate);
  ExpectProgramRefused("v0 = const.i64 0.5; v1 = cast v0", immediate);
  ExpectProgramRefused("v0 = load 0; v1 = leaky_relu v0 nan", immediate);
  Softer(&program).programs[0].ops[7].immediate[0] = 0.1;  // no f32
  EXPECT_NE(VerifyProgram(program).message().find(immediate), std::string::npos);
}

TEST(Verifier, RefusesBadSynchronisation) {
  using P = Program*;
  const auto swap_loaded = [](P p) {  // load waits for what the array gives only afterwards
    for (Instruction& i : Conv(p).prologue) {
      if (i.token == sample::kFreeD) i.count = 1;
    }
    for (Instruction& i : Conv(p).epilogue) {
      if (i.token == sample::kFreeD) i.count = 1;
    }
    for (Instruction& i : Conv(p).body) {
      if (i.token == sample::kFreeD && i.op == Opcode::kWait) i.count = 2;
      if (i.token == sample::kFreeD && i.op == Opcode::kSignal) i.count = 2;
    }
  };
  ExpectCaught({
      {"token 2: does not lead from exactly one engine to exactly one other",
       [](P p) { Find(&Conv(p).body, Opcode::kSignal).engine = Engine::kArray; }},
      {"token 7: does not lead from exactly one engine",
       [](P p) { Conv(p).body.push_back(sample::Signal(Engine::kLoad, 7)); }},
      {"token 0: a step gives 1 more credits than it takes",
       [](P p) { Find(&Conv(p).body, Opcode::kSignal, 1).count = 2; }},
      {"token 0: 1 credits are left at the end", [](P p) { Conv(p).prologue[0].count = 3; }},
      {"token 0: the prologue takes more credits than it gives",
       [](P p) {
         Conv(p).prologue[0] = sample::Wait(Engine::kLoad, 0, 1);
         Conv(p).epilogue[0] = sample::Signal(Engine::kArray, 0, 1);
       }},
      {"deadlock: load waits for token 0 in step 0; store waits for token 5 in step 0; array waits "
       "for token 2 in step 0",
       swap_loaded},
      {"body 1: its transfer is never handed to the bus",
       [](P p) {
         Softer(p).body.erase(Softer(p).body.begin() + 2);
         Softer(p).body.erase(Softer(p).body.begin() + 3);
       }},
      {"(bus): its ticket is not behind the one of the transfer before it",
       [](P p) { Find(&Conv(p).body, Opcode::kBus, 1).slot = 1; }},
      {"tickets of a step do not stay before those of the next step",
       [](P p) { Find(&Conv(p).body, Opcode::kBus, 1).lag = 1; }},
      {"a load and a store have the same ticket",
       [](P p) { Find(&Conv(p).body, Opcode::kBus, 0).slot = 0; }},
      {"deadlock: load waits for the bus",
       [](P p) {
         Find(&Conv(p).body, Opcode::kBus, 2).lag = 0;
         Find(&Conv(p).body, Opcode::kBus, 3).lag = 1;
       }},
  });
}

TEST(Verifier, CollectsSeveralFaults) {
  Program program = sample::MakeProgram();
  program.groups[0].operands[0].memory = 1;
  program.groups[1].operands[0].address = 4;
  const std::string message = VerifyProgram(program).message();
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 1) << message;
}

// Visits every number of a program and damages the one that is wanted.
class FieldMutator {
 public:
  static constexpr bool kReads = true;
  FieldMutator(int64_t wanted, std::mt19937_64* random) : wanted_(wanted), random_(random) {}

  template <typename T>
  void Int(const char* what, T& value) {
    if (!Hit(what)) return;
    const int64_t old = static_cast<int64_t>(value);
    const int64_t choices[] = {
        old + 1, old - 1, 0,        -old,
        old * 2, old / 2, old + 16, static_cast<int64_t>((*random_)() >> ((*random_)() % 64)),
        255};
    value = static_cast<T>(choices[(*random_)() % std::size(choices)]);
  }
  template <typename E>
  void Enum(const char* what, E& value, int count) {
    if (Hit(what)) value = static_cast<E>((*random_)() % static_cast<uint64_t>(count));
  }
  void Bool(const char* what, bool& value) {
    if (Hit(what)) value = !value;
  }
  void Float(const char* what, double& value) {
    if (Hit(what)) value = (*random_)() % 2 == 0 ? std::nan("") : value + 1;
  }
  void Text(const char*, std::string&) {}
  template <typename T, typename Visit>
  void List(const char* what, std::vector<T>& items, size_t, size_t, Visit visit) {
    if (Hit(what) && !items.empty()) {
      const auto at = items.begin() + static_cast<ptrdiff_t>((*random_)() % items.size());
      if ((*random_)() % 2 == 0) {
        items.erase(at);
      } else {
        items.push_back(*at);
      }
    }
    for (T& item : items) visit(*this, item);
  }
  void Fail(const char*, const std::string&) {}
  int64_t visited() const { return visited_; }
  const std::string& what() const { return what_; }

 private:
  bool Hit(const char* what) {
    if (visited_++ != wanted_) return false;
    what_ = what;
    return true;
  }
  int64_t wanted_, visited_ = 0;
  std::mt19937_64* random_;
  std::string what_;
};

void Visit(FieldMutator* m, Program* program) {
  using A = FieldMutator;
  m->List("regions", program->regions, 0, 0, [](A& a, auto& r) { DescribeRegion(a, r); });
  m->List("inputs", program->inputs, 0, 0, [](A& a, auto& p) { DescribePort(a, p); });
  m->List("outputs", program->outputs, 0, 0, [](A& a, auto& p) { DescribePort(a, p); });
  m->List("groups", program->groups, 0, 0, [](A& a, auto& g) { DescribeGroup(a, g); });
  m->List("buffers", program->buffers, 0, 0, [](A& a, auto& b) { DescribeBuffer(a, b); });
  m->List("values", program->values, 0, 0, [](A& a, auto& v) { DescribeValue(a, v); });
}

// One to three random damages: refused, or every step of what is left is safe.
TEST(Verifier, RandomDamageIsCaughtOrHarmless) {
  const uint64_t seed = 20250117;
  std::mt19937_64 random(seed);
  FieldMutator counter(-1, &random);
  Program program = sample::MakeProgram();
  Visit(&counter, &program);
  const int64_t fields = counter.visited();
  int refused = 0, equal = 0, harmless = 0;
  for (int round = 0; round < 10000; ++round) {
    Program damaged = sample::MakeProgram();
    std::string what;
    const uint64_t damages = round % 4 == 0 ? 1 + random() % 3 : 1;
    for (uint64_t d = 0; d < damages; ++d) {
      FieldMutator mutator(static_cast<int64_t>(random() % static_cast<uint64_t>(fields)), &random);
      Visit(&mutator, &damaged);
      what += mutator.what() + " ";
    }
    if (!VerifyProgram(damaged).ok()) {
      ++refused;
      continue;
    }
    if (damaged.groups == program.groups && damaged.regions == program.regions) {
      ++equal;
      continue;
    }
    ++harmless;
    if (harmless % 8 == 0) {
      const auto assembled = Assemble(Disassemble(damaged));
      ASSERT_TRUE(assembled.ok()) << assembled.status().message() << " seed " << seed;
      ASSERT_EQ(assembled->groups, damaged.groups) << "seed " << seed << " round " << round;
    }
    ASSERT_EQ(sample::WalkProgram(damaged, 400, seed), "")
        << "seed " << seed << " round " << round << " damaged: " << what;
  }
  std::printf("seed %llu: %d refused, %d equal, %d harmless\n",
              static_cast<unsigned long long>(seed), refused, equal, harmless);
  EXPECT_GT(refused, 3000);
  EXPECT_GT(harmless, 50);
}

// The closed form against all block combinations.
TEST(Tile, LongestExtentEqualsBruteForce) {
  const uint64_t seed = 7;
  std::mt19937 random(seed);
  const RandomPick pick(&random);
  for (int round = 0; round < 20000; ++round) {
    Group group;
    AxisDesc axis;
    const int64_t terms = pick(0, 3);
    for (int64_t t = 0; t < terms; ++t) {
      const int64_t extent = pick(1, 12);
      const int64_t block = pick(1, extent);
      const bool loop = pick(0, 3) != 0;
      group.dims.push_back({"d", extent, loop ? block : extent});
      if (loop) group.loops.push_back(static_cast<uint8_t>(t));
      axis.terms.push_back({static_cast<uint8_t>(t), static_cast<int32_t>(pick(1, 4))});
    }
    axis.offset = pick(-9, 9);
    axis.bound = pick(1, 30);
    int64_t steps = 1, longest = 0;
    for (const DimDesc& dim : group.dims) steps *= dim.count();
    for (int64_t s = 0; s < steps; ++s) {
      sample::Step step;
      int64_t rest = s;
      for (const DimDesc& dim : group.dims) {
        step.block.push_back(rest % dim.count());
        rest /= dim.count();
      }
      const sample::Range range = sample::AxisRange(group, axis, step);
      longest = std::max(longest, range.last - range.first + 1);
    }
    ASSERT_EQ(LongestExtent(group, axis), longest) << "seed " << seed << " round " << round;
  }
}

}  // namespace
}  // namespace dla::machine
