// Text form and types of micro-programs.
#include "support/micro_program.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace dla {
namespace {

std::string ErrorOf(const std::string& text) {
  std::string error;
  EXPECT_FALSE(ParseMicroProgram(text, &error).has_value()) << text;
  return error;
}

// A random operation of any kind; only the fields that it has are set.
MicroInstruction RandomOperation(size_t index, std::mt19937_64* random) {
  constexpr ElementType kTypes[] = {ElementType::kF32, ElementType::kF64, ElementType::kI64,
                                    ElementType::kU64, ElementType::kBool};
  MicroInstruction op;
  do {
    op.op = static_cast<MicroOp>((*random)() % kMicroOpCount);
  } while (index == 0 && Info(op.op).arguments > 0);
  op.type = kTypes[(*random)() % 5];
  op.stage = (*random)() % 2 == 0;
  if (NamesOperand(op.op)) op.operand = static_cast<uint8_t>((*random)() % 256);
  for (int a = 0; a < Info(op.op).arguments; ++a) {
    op.argument[static_cast<size_t>(a)] = static_cast<uint8_t>((*random)() % index);
  }
  for (int m = 0; m < Info(op.op).immediates; ++m) {
    const uint64_t bits = (*random)();
    double value = op.type == ElementType::kF32
                       ? static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)))
                       : std::bit_cast<double>(bits);
    if (std::isnan(value)) value = std::numeric_limits<double>::infinity();
    op.immediate[static_cast<size_t>(m)] = value;
  }
  return op;
}

TEST(MicroProgram, EveryProgramReadsBackFromItsText) {
  constexpr uint64_t kSeed = 71;
  std::mt19937_64 random(kSeed);
  for (int i = 0; i < 2000; ++i) {
    MicroProgram program;
    const size_t count = 1 + random() % kMaxMicroOps;
    for (size_t o = 0; o < count; ++o) program.ops.push_back(RandomOperation(o, &random));
    std::string error;
    const auto back = ParseMicroProgram(ToText(program), &error);
    ASSERT_TRUE(back.has_value()) << "seed " << kSeed << ": " << error << ": " << ToText(program);
    ASSERT_EQ(*back, program) << "seed " << kSeed << ": " << ToText(program);
  }
}

TEST(MicroProgram, NamesOfOperationsAreTheirOwn) {
  for (int i = 0; i < kMicroOpCount; ++i) {
    EXPECT_EQ(ParseMicroOp(Info(static_cast<MicroOp>(i)).name), static_cast<MicroOp>(i));
    EXPECT_NE(Info(static_cast<MicroOp>(i)).results, 0);
  }
}

TEST(MicroProgram, TextsThatAreNoneSayWhy) {
  EXPECT_EQ(ErrorOf("v1 = load 0"), "operation 0: 'v0 = ...' expected");
  EXPECT_EQ(ErrorOf("v0 = load.i8 0"), "operation 0: no operation 'load.i8'");
  EXPECT_EQ(ErrorOf("v0 = load. 0"), "operation 0: no operation 'load.'");
  EXPECT_EQ(ErrorOf("v0 = fly 0"), "operation 0: no operation 'fly'");
  for (const char* text :
       {"v0 = load 0; v1 = select.bool v0 v0", "v0 = index.i64", "v0 = const",
        "v0 = load 0; v1 = not.bool v1", "v0 = load 0 1", "v0 = load 256", "v0 = const 1e999"}) {
    EXPECT_NE(ErrorOf(text).find("arguments are missing, wrong or too many"), std::string::npos)
        << text;
  }
}

TEST(MicroProgram, IndicesAreFullWhereTheirDimensionIsReduced) {
  std::string error;
  const auto program = ParseMicroProgram(
      "v0 = index.i64 0; v1 = index.i64 2; v2 = add.i64 v0 v1; v3 = reduce_max.i64 v2; "
      "v4 = load.i64 0; v5 = add.i64 v3 v4",
      &error);
  ASSERT_TRUE(program.has_value()) << error;
  EXPECT_EQ(FullValues(*program, {false}, 0b100),
            (std::vector<bool>{false, true, true, false, false, false}));
}

}  // namespace
}  // namespace dla
