#include "ir/kernels/micro.h"

#include <algorithm>
#include <cmath>

#include "support/status.h"

namespace dla::ir {
namespace {

// Points that are computed together, so that values stay in the cache.
constexpr int64_t kChunk = 256;

float Max(float a, float b) { return a < b ? b : a; }
float Min(float a, float b) { return b < a ? b : a; }

float Sigmoid(float x) {
  // Either form avoids the overflow of exp at its end.
  if (x >= 0) return 1.0f / (1.0f + std::exp(-x));
  const float e = std::exp(x);
  return e / (1.0f + e);
}

}  // namespace

float ApplyMicroOp(const MicroInstruction& op, float a, float b) {
  switch (op.op) {
    case MicroOp::kAdd:
      return a + b;
    case MicroOp::kSub:
      return a - b;
    case MicroOp::kMul:
      return a * b;
    case MicroOp::kDiv:
      return a / b;
    case MicroOp::kMin:
      return Min(a, b);
    case MicroOp::kMax:
      return Max(a, b);
    case MicroOp::kPow:
      return std::pow(a, b);
    case MicroOp::kNeg:
      return -a;
    case MicroOp::kAbs:
      return std::fabs(a);
    case MicroOp::kExp:
      return std::exp(a);
    case MicroOp::kLog:
      return std::log(a);
    case MicroOp::kSqrt:
      return std::sqrt(a);
    case MicroOp::kReciprocal:
      return 1.0f / a;
    case MicroOp::kTanh:
      return std::tanh(a);
    case MicroOp::kSigmoid:
      return Sigmoid(a);
    case MicroOp::kErf:
      return std::erf(a);
    case MicroOp::kFloor:
      return std::floor(a);
    case MicroOp::kCeil:
      return std::ceil(a);
    case MicroOp::kRound:
      return std::nearbyint(a);  // ties to even in the default rounding mode
    case MicroOp::kRelu:
      return Max(a, 0.0f);
    case MicroOp::kLeakyRelu:
      return a < 0 ? static_cast<float>(op.immediate[0]) * a : a;
    case MicroOp::kClamp:
      return Min(Max(a, static_cast<float>(op.immediate[0])), static_cast<float>(op.immediate[1]));
    case MicroOp::kCopy:
      return a;
    default:
      DLA_CHECK(false, "no element-wise operation: ", Info(op.op).name);
  }
}

void RunMicroProgram(const MicroProgram& program, std::span<const float* const> arguments,
                     int64_t count, float* result) {
  std::vector<std::vector<float>> values(program.ops.size(), std::vector<float>(kChunk));
  for (int64_t begin = 0; begin < count; begin += kChunk) {
    const int64_t points = std::min(kChunk, count - begin);
    for (size_t i = 0; i < program.ops.size(); ++i) {
      const MicroInstruction& op = program.ops[i];
      float* out = values[i].data();
      if (op.op == MicroOp::kLoad) {
        std::copy_n(arguments[op.operand] + begin, points, out);
      } else if (op.op == MicroOp::kConst) {
        std::fill_n(out, points, static_cast<float>(op.immediate[0]));
      } else {
        const float* a = values[op.argument[0]].data();
        const float* b = values[op.argument[1]].data();
        for (int64_t p = 0; p < points; ++p) out[p] = ApplyMicroOp(op, a[p], b[p]);
      }
    }
    std::copy_n(values.back().data(), points, result + begin);
  }
}

}  // namespace dla::ir
