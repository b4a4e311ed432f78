// Operations on f32 and f64.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "runtime/kernels/map.h"
#include "runtime/kernels/scalar.h"
#include "runtime/kernels/vector_ops.h"

namespace dla::runtime {
namespace {

template <typename T>
bool ApplyBinary(MicroOp op, const T* a, const T* b, int64_t n, T* to) {
  switch (op) {
    case MicroOp::kAdd:
      Map2(a, b, n, to, [](T x, T y) { return x + y; });
      return true;
    case MicroOp::kSub:
      Map2(a, b, n, to, [](T x, T y) { return x - y; });
      return true;
    case MicroOp::kMul:
      Map2(a, b, n, to, [](T x, T y) { return x * y; });
      return true;
    case MicroOp::kDiv:
      Map2(a, b, n, to, [](T x, T y) { return x / y; });
      return true;
    case MicroOp::kMin:
      Map2(a, b, n, to, Least<T>);
      return true;
    case MicroOp::kMax:
      Map2(a, b, n, to, Greatest<T>);
      return true;
    case MicroOp::kPow:
      Map2(a, b, n, to, [](T x, T y) { return std::pow(x, y); });
      return true;
    case MicroOp::kMod:
      Map2(a, b, n, to, FlooredRemainder<T>);
      return true;
    case MicroOp::kRemainder:
      Map2(a, b, n, to, Remainder<T>);
      return true;
    default:
      return false;
  }
}

template <typename T>
bool ApplyExponential(MicroOp op, const T* a, int64_t n, T* to) {
  switch (op) {
    case MicroOp::kExp:
      Map(a, n, to, [](T x) { return std::exp(x); });
      return true;
    case MicroOp::kLog:
      Map(a, n, to, [](T x) { return std::log(x); });
      return true;
    case MicroOp::kSqrt:
      Map(a, n, to, [](T x) { return std::sqrt(x); });
      return true;
    case MicroOp::kReciprocal:
      Map(a, n, to, [](T x) { return T{1} / x; });
      return true;
    case MicroOp::kTanh:
      Map(a, n, to, [](T x) { return std::tanh(x); });
      return true;
    case MicroOp::kSigmoid:
      Map(a, n, to, [](T x) {
        // The tail of f32 is 0 (ir/kernels/micro_arithmetic.h says why).
        constexpr bool kHasTail = std::is_same_v<T, float>;
        return kHasTail && x < T{-18} ? T{0} : T{1} / (T{1} + std::exp(-x));
      });
      return true;
    case MicroOp::kErf:
      Map(a, n, to, [](T x) { return std::erf(x); });
      return true;
    case MicroOp::kSinh:
      Map(a, n, to, [](T x) { return std::sinh(x); });
      return true;
    case MicroOp::kCosh:
      Map(a, n, to, [](T x) { return std::cosh(x); });
      return true;
    default:
      return false;
  }
}

template <typename T>
bool ApplyTrigonometric(MicroOp op, const T* a, int64_t n, T* to) {
  switch (op) {
    case MicroOp::kSin:
      Map(a, n, to, [](T x) { return std::sin(x); });
      return true;
    case MicroOp::kCos:
      Map(a, n, to, [](T x) { return std::cos(x); });
      return true;
    case MicroOp::kTan:
      Map(a, n, to, [](T x) { return std::tan(x); });
      return true;
    case MicroOp::kAsin:
      Map(a, n, to, [](T x) { return std::asin(x); });
      return true;
    case MicroOp::kAcos:
      Map(a, n, to, [](T x) { return std::acos(x); });
      return true;
    case MicroOp::kAtan:
      Map(a, n, to, [](T x) { return std::atan(x); });
      return true;
    case MicroOp::kAsinh:
      Map(a, n, to, [](T x) { return std::asinh(x); });
      return true;
    case MicroOp::kAcosh:
      Map(a, n, to, [](T x) { return std::acosh(x); });
      return true;
    case MicroOp::kAtanh:
      Map(a, n, to, [](T x) { return std::atanh(x); });
      return true;
    default:
      return false;
  }
}

template <typename T>
bool ApplySimple(const MicroInstruction& op, const T* a, int64_t n, T* to) {
  const T low = static_cast<T>(op.immediate[0]);
  const T high = static_cast<T>(op.immediate[1]);
  switch (op.op) {
    case MicroOp::kNeg:
      Map(a, n, to, [](T x) { return -x; });
      return true;
    case MicroOp::kAbs:
      Map(a, n, to, [](T x) { return std::fabs(x); });
      return true;
    case MicroOp::kFloor:
      Map(a, n, to, [](T x) { return std::floor(x); });
      return true;
    case MicroOp::kCeil:
      Map(a, n, to, [](T x) { return std::ceil(x); });
      return true;
    case MicroOp::kRound:
      Map(a, n, to, [](T x) { return std::nearbyint(x); });
      return true;
    case MicroOp::kSign:
      Map(a, n, to, Sign<T>);
      return true;
    case MicroOp::kRelu:  // NaN stays NaN
      Map(a, n, to, [](T x) { return x < 0 ? T{0} : x; });
      return true;
    case MicroOp::kLeakyRelu:
      Map(a, n, to, [low](T x) { return x < 0 ? low * x : x; });
      return true;
    case MicroOp::kClamp:
      Map(a, n, to, [low, high](T x) {
        const T raised = x < low ? low : x;
        return raised > high ? high : raised;
      });
      return true;
    default:
      return false;
  }
}

}  // namespace

template <typename T>
bool ApplyFloatOp(const MicroInstruction& op, const T* a, const T* b, int64_t count, T* to) {
  return ApplySimple(op, a, count, to) || ApplyBinary(op.op, a, b, count, to) ||
         ApplyExponential(op.op, a, count, to) || ApplyTrigonometric(op.op, a, count, to);
}

template bool ApplyFloatOp(const MicroInstruction&, const float*, const float*, int64_t, float*);
template bool ApplyFloatOp(const MicroInstruction&, const double*, const double*, int64_t, double*);

}  // namespace dla::runtime
