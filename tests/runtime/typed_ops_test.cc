// Every operation of micro-programs on every type it has, against plain scalar code, on random and
// special values.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "runtime/kernels/vector_program.h"
#include "tests/runtime/scalar_reference.h"

namespace dla::runtime::test {
namespace {

constexpr uint64_t kSeed = 20240611;
constexpr std::array<ElementType, 5> kValueTypes = {
    ElementType::kF32, ElementType::kF64, ElementType::kI64, ElementType::kU64, ElementType::kBool};

bool Has(MicroOp op, ElementType type) {
  return (Info(op).results >> ValueTypeIndex(type) & 1) != 0;
}

// Values of one type: the special ones first, then random ones.
std::vector<Scalar> Values(ElementType type, size_t count, std::mt19937_64* random) {
  std::vector<Scalar> values = SpecialValues(type);
  while (values.size() < count) values.push_back(RandomValue(type, random));
  return values;
}

// Each pair of the first values occurs together.
std::vector<Scalar> Rearranged(std::vector<Scalar> values, std::mt19937_64* random) {
  std::shuffle(values.begin(), values.end(), *random);
  return values;
}

std::vector<uint8_t> Bytes(const std::vector<Scalar>& values) {
  std::vector<uint8_t> bytes;
  for (const Scalar& value : values) AppendBytes(value, &bytes);
  return bytes;
}

// Runs loads of the arguments and the operation, and compares each point with the reference.
void CheckOperation(MicroInstruction op, const std::vector<std::vector<Scalar>>& arguments) {
  MicroProgram program;
  VectorJob job;
  const size_t count = arguments.empty() ? 7 : arguments[0].size();
  std::vector<std::vector<uint8_t>> stored;
  stored.reserve(arguments.size());
  for (size_t a = 0; a < arguments.size(); ++a) {
    const ElementType type = arguments[a][0].type;
    stored.push_back(Bytes(arguments[a]));
    program.ops.push_back({.op = MicroOp::kLoad, .type = type, .operand = static_cast<uint8_t>(a)});
    job.sources.push_back({.type = type, .data = stored.back().data(), .strides = {1}});
    op.argument[a] = static_cast<uint8_t>(a);
  }
  program.ops.push_back(op);
  job.sources.emplace_back();
  ASSERT_TRUE(TypesFit(program, program.ops.size() - 1)) << ToText(program);
  job.program = &program;
  job.kept = {static_cast<int64_t>(count)};
  job.full.assign(program.ops.size(), false);
  job.type = op.type;
  std::vector<uint8_t> output(count * 8, 0xee);
  job.output = output.data();
  job.output_strides = {1};
  VectorWorkspace workspace;
  RunVectorProgram(job, &workspace);
  int wrong = 0;
  for (size_t i = 0; i < count && wrong < 5; ++i) {
    std::vector<Scalar> point;
    for (const auto& argument : arguments) point.push_back(argument[i]);
    const Scalar expected = Reference(op, point);
    const Scalar got =
        FromBytes(op.type, output.data() + i * static_cast<size_t>(TypeBytes(op.type, 1)));
    if (Same(expected, got)) continue;
    ++wrong;
    std::string text = ToText(program);
    for (const Scalar& value : point) text += " " + Text(value);
    ADD_FAILURE() << text << " gave " << Text(got) << ", expected " << Text(expected);
  }
}

// The types that argument 0 may have when the result has `type`.
std::vector<ElementType> ArgumentTypes(MicroOp op, ElementType type) {
  std::vector<ElementType> types;
  for (const ElementType candidate : kValueTypes) {
    MicroProgram program;
    program.ops = {{.op = MicroOp::kConst, .type = candidate},
                   {.op = MicroOp::kConst, .type = type},
                   {.op = op, .type = type, .argument = {0, 0, 0}}};
    if (op == MicroOp::kSelect) program.ops[2].argument = {0, 1, 1};
    if (TypesFit(program, 2)) types.push_back(candidate);
  }
  return types;
}

std::vector<std::array<double, 2>> Immediates(MicroOp op, ElementType type) {
  const bool is_float = IsFloat(type);
  switch (op) {
    case MicroOp::kWrap:
      return {{8, 0}, {8, 1}, {16, 0}, {16, 1}, {32, 0}, {32, 1}};
    case MicroOp::kIsInf:
      return {{0, 0}, {0, 1}, {1, 0}, {1, 1}};
    case MicroOp::kClamp:
      return {{is_float ? -0.5 : -3, 6},
              {is_float ? -std::numeric_limits<double>::infinity() : 0, 2},
              {3, 1}};
    case MicroOp::kLeakyRelu:
      return {{0.25, 0}};
    case MicroOp::kConst:
      return {{0, 0}, {1, 0}, {type == ElementType::kBool ? 1.0 : 37.0, 0}};
    default:
      return {{0, 0}};
  }
}

TEST(TypedOps, EveryOperationOnEveryTypeIsThatOfPlainScalarCode) {
  std::mt19937_64 random(kSeed);
  int checked = 0;
  for (int number = 0; number < kMicroOpCount; ++number) {
    const auto op = static_cast<MicroOp>(number);
    if (op == MicroOp::kLoad || op == MicroOp::kAccumulator || op == MicroOp::kIndex ||
        Info(op).reduces) {
      continue;
    }
    for (const ElementType type : kValueTypes) {
      if (!Has(op, type)) continue;
      for (const ElementType argument_type :
           Info(op).arguments == 0 ? std::vector{type} : ArgumentTypes(op, type)) {
        for (const auto& immediate : Immediates(op, type)) {
          if (type == ElementType::kU64 && immediate[0] < 0) continue;
          SCOPED_TRACE(testing::Message() << Info(op).name << ", seed " << kSeed);
          std::vector<std::vector<Scalar>> arguments;
          for (int a = 0; a < Info(op).arguments; ++a) {
            const ElementType t = op == MicroOp::kSelect && a > 0 ? type : argument_type;
            arguments.push_back(Rearranged(Values(t, 3000, &random), &random));
          }
          CheckOperation({.op = op, .type = type, .immediate = immediate}, arguments);
          ++checked;
        }
      }
    }
  }
  EXPECT_GT(checked, 150);
}

// Every pair of special values, for the operations of two arguments.
TEST(TypedOps, EveryPairOfSpecialValues) {
  for (int number = 0; number < kMicroOpCount; ++number) {
    const auto op = static_cast<MicroOp>(number);
    if (Info(op).arguments != 2 || Info(op).reduces) continue;
    for (const ElementType type : kValueTypes) {
      if (!Has(op, type)) continue;
      for (const ElementType argument_type : ArgumentTypes(op, type)) {
        std::vector<std::vector<Scalar>> arguments(2);
        for (const Scalar& x : SpecialValues(argument_type)) {
          for (const Scalar& y : SpecialValues(argument_type)) {
            arguments[0].push_back(x);
            arguments[1].push_back(y);
          }
        }
        CheckOperation({.op = op, .type = type}, arguments);
      }
    }
  }
}

// Loading and storing: each stored type there and back, and its values against plain code.
TEST(TypedOps, StoredTypesConvertExactlyAndWrap) {
  std::mt19937_64 random(kSeed);
  for (int number = 0; number < kElementTypeCount; ++number) {
    const auto type = static_cast<ElementType>(number);
    if (type == ElementType::kI4 || type == ElementType::kU4) continue;
    SCOPED_TRACE(testing::Message() << TypeName(type) << ", seed " << kSeed);
    const std::vector<Scalar> values = Values(ValueType(type), 3000, &random);
    const std::vector<uint8_t> bytes = Bytes(values);
    MicroProgram program;
    program.ops = {{.op = MicroOp::kLoad, .type = ValueType(type)}};
    for (const int64_t stride : {1, 3}) {
      const auto count = static_cast<int64_t>(values.size());
      std::vector<uint8_t> narrow(static_cast<size_t>(count * stride * TypeBytes(type, 1)));
      std::vector<uint8_t> back(bytes.size());
      VectorJob job;
      job.program = &program;
      job.kept = {count};
      job.full = {false};
      job.sources = {{.type = ValueType(type), .data = bytes.data(), .strides = {1}}};
      job.type = type;
      job.output = narrow.data();
      job.output_strides = {stride};
      VectorWorkspace workspace;
      RunVectorProgram(job, &workspace);
      job.sources = {{.type = type, .data = narrow.data(), .strides = {stride}}};
      job.type = ValueType(type);
      job.output = back.data();
      job.output_strides = {1};
      RunVectorProgram(job, &workspace);
      for (size_t i = 0; i < values.size(); ++i) {
        const Scalar got =
            FromBytes(job.type, back.data() + i * static_cast<size_t>(TypeBytes(job.type, 1)));
        const Scalar expected = StoredAndLoaded(type, values[i]);
        ASSERT_TRUE(Same(expected, got))
            << Text(values[i]) << " became " << Text(got) << ", expected " << Text(expected);
      }
    }
  }
}

// Reductions over the middle of three dimensions, of a full and of a reduced argument.
TEST(TypedOps, ReductionsOfEveryType) {
  std::mt19937_64 random(kSeed);
  constexpr int64_t kOuter = 3, kReduced = 5, kInner = 40;
  for (const MicroOp op :
       {MicroOp::kReduceSum, MicroOp::kReduceMax, MicroOp::kReduceMin, MicroOp::kReduceProduct}) {
    for (const ElementType type : kValueTypes) {
      if (!Has(op, type)) continue;
      SCOPED_TRACE(testing::Message()
                   << Info(op).name << " " << TypeName(type) << ", seed " << kSeed);
      std::vector<Scalar> values =
          Rearranged(Values(type, kOuter * kReduced * kInner, &random), &random);
      const std::vector<uint8_t> bytes = Bytes(values);
      MicroProgram program;
      program.ops = {{.op = MicroOp::kLoad, .type = type}, {.op = op, .type = type}};
      VectorJob job;
      job.program = &program;
      job.kept = {kOuter, kInner};
      job.reduced = {kReduced};
      job.full = {true, false};
      job.sources = {
          {.type = type, .data = bytes.data(), .strides = {kReduced * kInner, 1, kInner}}, {}};
      job.type = type;
      std::vector<uint8_t> output(kOuter * kInner * 8);
      job.output = output.data();
      job.output_strides = {kInner, 1, 0};
      VectorWorkspace workspace;
      RunVectorProgram(job, &workspace);
      for (int64_t o = 0; o < kOuter; ++o) {
        for (int64_t i = 0; i < kInner; ++i) {
          std::vector<Scalar> column;
          for (int64_t r = 0; r < kReduced; ++r) {
            column.push_back(values[static_cast<size_t>((o * kReduced + r) * kInner + i)]);
          }
          const Scalar expected = ReferenceReduction(op, column);
          const Scalar got = FromBytes(type, output.data() + (o * kInner + i) * TypeBytes(type, 1));
          ASSERT_TRUE(Same(expected, got)) << Text(got) << ", expected " << Text(expected);
        }
      }
    }
  }
}

// A sum of products over the middle of three dimensions, in a wider type; the second factor varies
// along it or does not.
TEST(TypedOps, DotOfEveryType) {
  std::mt19937_64 random(kSeed);
  constexpr int64_t kOuter = 3, kReduced = 5, kInner = 40;
  for (const ElementType type : {ElementType::kF32, ElementType::kF64}) {
    for (const bool varies : {true, false}) {
      const size_t count = kOuter * kReduced * kInner;
      std::vector<double> x(count), y(count);
      std::uniform_real_distribution<double> real(-3, 3);
      for (size_t k = 0; k < count; ++k) {
        x[k] = static_cast<float>(real(random));
        y[k] = static_cast<float>(real(random));
      }
      const auto bytes_of = [&](const std::vector<double>& values) {
        std::vector<uint8_t> bytes;
        for (const double value : values) {
          const auto single = static_cast<float>(value);
          const auto* from = type == ElementType::kF32 ? reinterpret_cast<const uint8_t*>(&single)
                                                       : reinterpret_cast<const uint8_t*>(&value);
          bytes.insert(bytes.end(), from, from + TypeBytes(type, 1));
        }
        return bytes;
      };
      const std::vector<uint8_t> x_bytes = bytes_of(x), y_bytes = bytes_of(y);
      MicroProgram program{{{.op = MicroOp::kLoad, .type = type, .operand = 0},
                            {.op = MicroOp::kLoad, .type = type, .operand = 1},
                            {.op = MicroOp::kReduceDot, .type = type, .argument = {0, 1}}}};
      std::vector<uint8_t> out(static_cast<size_t>(TypeBytes(type, kOuter * kInner)));
      VectorJob job;
      job.program = &program;
      job.full = {true, varies, false};
      job.kept = {kOuter, kInner};
      job.reduced = {kReduced};
      const int64_t along = varies ? kInner : 0;
      job.sources = {
          {.type = type, .data = x_bytes.data(), .strides = {kReduced * kInner, 1, kInner}},
          {.type = type, .data = y_bytes.data(), .strides = {kReduced * kInner, 1, along}},
          {}};
      job.type = type;
      job.output = out.data();
      job.output_strides = {kInner, 1, 0};
      VectorWorkspace workspace;
      RunVectorProgram(job, &workspace);
      for (int64_t o = 0; o < kOuter; ++o) {
        for (int64_t i = 0; i < kInner; ++i) {
          long double sum = 0;
          for (int64_t r = 0; r < kReduced; ++r) {
            const auto at = static_cast<size_t>((o * kReduced + r) * kInner + i);
            const auto of_y = static_cast<size_t>(o * kReduced * kInner + r * along + i);
            sum += static_cast<long double>(x[at]) * static_cast<long double>(y[of_y]);
          }
          const size_t at = static_cast<size_t>(TypeBytes(type, o * kInner + i));
          double got = 0;
          if (type == ElementType::kF32) {
            float single = 0;
            std::memcpy(&single, out.data() + at, 4);
            got = single;
            EXPECT_NEAR(got, static_cast<double>(sum), 4e-6) << o << " " << i;
          } else {
            std::memcpy(&got, out.data() + at, 8);
            EXPECT_NEAR(got, static_cast<double>(sum), 1e-14) << o << " " << i;
          }
        }
      }
    }
  }
}

// Index of the maximum, first of equals: reduce_min(select(x == reduce_max(x), index, large)).
TEST(TypedOps, ArgMaxFromIndexAndReductions) {
  constexpr int64_t kRows = 6, kColumns = 9;
  std::vector<int8_t> x(kRows * kColumns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int8_t>(i * 29 % 7);
  std::string error;
  const auto program = ParseMicroProgram(
      "v0 = load.i64 0; v1 = reduce_max.i64 v0; v2 = equal.bool v0 v1; v3 = index.i64 1; "
      "v4 = const.i64 1000; v5 = select.i64 v2 v3 v4; v6 = reduce_min.i64 v5",
      &error);
  ASSERT_TRUE(program.has_value()) << error;
  VectorJob job;
  job.program = &*program;
  job.kept = {kRows};
  job.reduced = {kColumns};
  job.full = FullValues(*program, {true}, 0b10);
  EXPECT_EQ(job.full, (std::vector<bool>{true, false, true, true, false, true, false}));
  job.sources.resize(7);
  job.sources[0] = {.type = ElementType::kI8,
                    .data = reinterpret_cast<const uint8_t*>(x.data()),
                    .strides = {kColumns, 1}};
  job.sources[3] = {.strides = {0, 1}, .start = 100};
  job.type = ElementType::kI32;
  std::vector<int32_t> output(kRows);
  job.output = reinterpret_cast<uint8_t*>(output.data());
  job.output_strides = {1, 0};
  VectorWorkspace workspace;
  RunVectorProgram(job, &workspace);
  for (int64_t r = 0; r < kRows; ++r) {
    const auto row = x.begin() + r * kColumns;
    EXPECT_EQ(output[static_cast<size_t>(r)], 100 + (std::max_element(row, row + kColumns) - row));
  }
}

}  // namespace
}  // namespace dla::runtime::test
