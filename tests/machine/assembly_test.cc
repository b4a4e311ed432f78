// The text form: assembles back to the same program, and bad lines say what was expected.
#include "machine/assembly.h"

#include <gtest/gtest.h>

#include <limits>

#include "machine/verifier.h"
#include "tests/machine/sample_program.h"

namespace dla::machine {
namespace {

void ExpectRoundTrip(const Program& program) {
  const std::string text = Disassemble(program);
  const auto read = Assemble(text);
  ASSERT_TRUE(read.ok()) << read.status().message() << "\n" << text;
  EXPECT_EQ(read->producer, program.producer);
  EXPECT_EQ(read->command_line, program.command_line);
  EXPECT_EQ(read->target, program.target);
  EXPECT_EQ(read->regions, program.regions);
  EXPECT_EQ(read->inputs, program.inputs);
  EXPECT_EQ(read->outputs, program.outputs);
  EXPECT_EQ(read->groups, program.groups);
  EXPECT_EQ(read->predicted, program.predicted);
  EXPECT_EQ(read->buffers, program.buffers);
  EXPECT_EQ(read->values, program.values);
  EXPECT_EQ(Disassemble(*read), text);
}

TEST(Assembly, SampleRoundTrips) { ExpectRoundTrip(sample::MakeProgram()); }

TEST(Assembly, GatheredOperandsRoundTrip) {
  Program program = sample::MakeProgram();
  sample::AddGather(&program);
  ExpectRoundTrip(program);
}

TEST(Assembly, BlockDiagonalWeightsRoundTrip) {
  Program program = sample::MakeProgram();
  sample::AddDiagonal(&program);
  ExpectRoundTrip(program);
  EXPECT_NE(Disassemble(program).find("diagonal M 12 C 2\n"), std::string::npos);
}

TEST(Assembly, RepeatedIndicesRoundTrip) {
  Program program = sample::MakeProgram();
  program.groups[0].dims[2].repeated = 3;
  ExpectRoundTrip(program);
  EXPECT_NE(Disassemble(program).find("dim \"E\" extent 8 block 4 repeated 3\n"),
            std::string::npos);
  program.groups[0].dims[2].lead = 1;
  ExpectRoundTrip(program);
}

TEST(Assembly, OddNamesAndNumbersRoundTrip) {
  Program program = sample::MakeProgram();
  program.producer = "a \"quoted\" \\ back\nslash // no comment \x01 \xc3\xa9";
  program.groups[0].name = "";
  program.groups[0].onnx_nodes[0] = "x // y | \"";
  program.groups[0].dims[0].name = "1 M";  // no identifier: dimensions become numbers
  program.groups[1].dims[1].name = "M";    // not unique
  program.groups[0].operands[0].pad_value = -std::numeric_limits<float>::infinity();
  program.groups[0].operands[1].pad_value = -1.17549435e-38F;
  program.groups[0].operands[0].axes[0].terms[0].coefficient = 3;
  program.groups[0].operands[0].axes[1].terms.clear();
  program.groups[0].operands[0].axes[2].offset = 17;
  program.groups[0].operands[2].memory = 200;
  program.groups[0].operands[3].generation_dims = 0xffff;
  program.groups[0].loops.push_back(77);
  program.inputs[0].shape = {};
  program.regions[0].address = -5;
  program.predicted[1].traffic[4].store_bus_bytes = 99;
  program.groups[1].programs[0] = sample::Micro(
      "v0 = const.f64 0.1; v1 = const 0.1; v2 = cast.f64 v1; v3 = less_or_equal.bool v0 v2; "
      "v4 = index.i64 2; v5 = select.i64 v3 v4 v4; v6 = clamp.u64 v5 3 1.8446744073709552e+19; "
      "v7 = const.f64 4.9406564584124654e-324; v8 = is_inf.bool v7 1 0");
  ExpectRoundTrip(program);
}

TEST(Assembly, AConvolutionsHaloIsReadable) {
  const std::string text = Disassemble(sample::MakeProgram());
  for (const char* line :
       {"    axis E + R - 1 of 8 dram 8 local 8  // tile 5\n", "  loop C  // 2 blocks\n",
        "    load: load tile=2 first=(C, E)  // \"b\"\n",
        "    array: array input=0 weight=1 acc=3 bias=2 out=4 drain=0  // \"x\" \"w\" \"conv\" "
        "\"b\" \"conv\"\n",
        "    vector: vector out=1 program=0 reduce=(F)  // \"y\"\n",
        "    store: bus lag=2 slot=0\n", "  program v0 = accumulator; v1 = relu v0 !  // 0\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST(Assembly, BadLinesSayWhatWasExpected) {
  const auto refusal = [](const std::string& text) {
    const auto program = Assemble(text);
    return program.ok() ? std::string() : program.status().message();
  };
  EXPECT_EQ(refusal("// nothing\n\n"), "");
  EXPECT_EQ(refusal("hello\n"), "line 1: 'hello' is no line of a program");
  EXPECT_EQ(refusal("\nproducer x\n"), "line 2: expected: producer \"...\"");
  EXPECT_EQ(refusal("producer \"x\" y\n"), "line 1: 'y' is not expected here");
  EXPECT_EQ(refusal("region input \"x\" address 1\n"),
            "line 1: expected: region input|output|constant|temporary \"NAME\" address N bytes N");
  EXPECT_EQ(refusal("target\n| {\"x\": 1}\ngroup \"g\"\n").substr(0, 39),
            "line 3: target: x: there is no such fie");
  const std::string group = "group \"g\"\ndim \"M\" extent 4 block 2\n";
  EXPECT_EQ(refusal(group + "loop C\n"), "line 3: expected: loop DIMENSION");
  EXPECT_EQ(refusal(group + "hello\n"), "line 3: 'hello' is no line of a group");
  EXPECT_EQ(refusal(group + "body\nlad: load tile=1\n"), "line 4: 'lad' is no engine");
  EXPECT_EQ(refusal(group + "body\nload: lood tile=1\n"), "line 4: 'lood' is no instruction");
  EXPECT_EQ(refusal(group + "body\nload: load tail=1\n"), "line 4: 'load' has no argument 'tail'");
  EXPECT_EQ(refusal(group + "body\nload: load tile=300\n"), "line 4: 'tile' wants =NUMBER");
  EXPECT_EQ(refusal(group + "body\nload: wait token=1 first=(M)\n"),
            "line 4: 'wait' has no argument 'first'");
  EXPECT_EQ(refusal(group + "body\nload: load tile=1 first=(N)\n"),
            "line 4: 'first' wants =(DIMENSION, ...)");
  EXPECT_EQ(refusal(group + "program v0 = lod 1\n"), "line 3: operation 0: no operation 'lod'");
}

}  // namespace
}  // namespace dla::machine
