#include "runtime/kernels/vector_ops.h"

#include <algorithm>
#include <cmath>

#include "support/status.h"

namespace dla::runtime {
namespace {

template <typename F>
void Map(const float* a, int64_t count, float* to, F f) {
  for (int64_t i = 0; i < count; ++i) to[i] = f(a[i]);
}

template <typename F>
void Map2(const float* a, const float* b, int64_t count, float* to, F f) {
  for (int64_t i = 0; i < count; ++i) to[i] = f(a[i], b[i]);
}

// NaN in either argument gives NaN, as ONNX's Min and Max do.
float Least(float x, float y) { return x < y || x != x ? x : y; }
float Greatest(float x, float y) { return x > y || x != x ? x : y; }

bool ApplyBinary(MicroOp op, const float* a, const float* b, int64_t n, float* to) {
  switch (op) {
    case MicroOp::kAdd:
      Map2(a, b, n, to, [](float x, float y) { return x + y; });
      return true;
    case MicroOp::kSub:
      Map2(a, b, n, to, [](float x, float y) { return x - y; });
      return true;
    case MicroOp::kMul:
      Map2(a, b, n, to, [](float x, float y) { return x * y; });
      return true;
    case MicroOp::kDiv:
      Map2(a, b, n, to, [](float x, float y) { return x / y; });
      return true;
    case MicroOp::kMin:
      Map2(a, b, n, to, Least);
      return true;
    case MicroOp::kMax:
      Map2(a, b, n, to, Greatest);
      return true;
    case MicroOp::kPow:
      Map2(a, b, n, to, [](float x, float y) { return std::pow(x, y); });
      return true;
    default:
      return false;
  }
}

bool ApplyTranscendental(MicroOp op, const float* a, int64_t n, float* to) {
  switch (op) {
    case MicroOp::kExp:
      Map(a, n, to, [](float x) { return std::exp(x); });
      return true;
    case MicroOp::kLog:
      Map(a, n, to, [](float x) { return std::log(x); });
      return true;
    case MicroOp::kSqrt:
      Map(a, n, to, [](float x) { return std::sqrt(x); });
      return true;
    case MicroOp::kReciprocal:
      Map(a, n, to, [](float x) { return 1.0f / x; });
      return true;
    case MicroOp::kTanh:
      Map(a, n, to, [](float x) { return std::tanh(x); });
      return true;
    case MicroOp::kSigmoid:
      Map(a, n, to, [](float x) { return 1.0f / (1.0f + std::exp(-x)); });
      return true;
    case MicroOp::kErf:
      Map(a, n, to, [](float x) { return std::erf(x); });
      return true;
    default:
      return false;
  }
}

bool ApplySimple(const MicroInstruction& op, const float* a, int64_t n, float* to) {
  const float low = op.immediate[0];
  const float high = op.immediate[1];
  switch (op.op) {
    case MicroOp::kConst:
      std::fill(to, to + n, low);
      return true;
    case MicroOp::kNeg:
      Map(a, n, to, [](float x) { return -x; });
      return true;
    case MicroOp::kAbs:
      Map(a, n, to, [](float x) { return std::fabs(x); });
      return true;
    case MicroOp::kFloor:
      Map(a, n, to, [](float x) { return std::floor(x); });
      return true;
    case MicroOp::kCeil:
      Map(a, n, to, [](float x) { return std::ceil(x); });
      return true;
    case MicroOp::kRound:
      Map(a, n, to, [](float x) { return std::nearbyint(x); });
      return true;
    case MicroOp::kRelu:  // NaN stays NaN
      Map(a, n, to, [](float x) { return x < 0.0f ? 0.0f : x; });
      return true;
    case MicroOp::kLeakyRelu:
      Map(a, n, to, [low](float x) { return x < 0.0f ? low * x : x; });
      return true;
    case MicroOp::kClamp:
      Map(a, n, to, [low, high](float x) {
        const float raised = x < low ? low : x;
        return raised > high ? high : raised;
      });
      return true;
    case MicroOp::kCopy:
      if (a != to) std::copy(a, a + n, to);
      return true;
    default:
      return false;
  }
}

}  // namespace

void ApplyOp(const MicroInstruction& op, const float* a, const float* b, int64_t count, float* to) {
  const bool done = ApplySimple(op, a, count, to) || ApplyBinary(op.op, a, b, count, to) ||
                    ApplyTranscendental(op.op, a, count, to);
  DLA_CHECK(done, "operation ", Info(op.op).name);
}

}  // namespace dla::runtime
