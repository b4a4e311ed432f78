// Operations on i64 and u64. Everything wraps.
#include <algorithm>

#include "runtime/kernels/convert.h"
#include "runtime/kernels/map.h"
#include "runtime/kernels/scalar.h"
#include "runtime/kernels/vector_ops.h"

namespace dla::runtime {
namespace {

template <typename T>
bool ApplyArithmetic(MicroOp op, const T* a, const T* b, int64_t n, T* to) {
  using U = uint64_t;
  switch (op) {
    case MicroOp::kAdd:
      Map2(a, b, n, to, [](T x, T y) { return Wrapping(x, y, [](U p, U q) { return p + q; }); });
      return true;
    case MicroOp::kSub:
      Map2(a, b, n, to, [](T x, T y) { return Wrapping(x, y, [](U p, U q) { return p - q; }); });
      return true;
    case MicroOp::kMul:
      Map2(a, b, n, to, [](T x, T y) { return Wrapping(x, y, [](U p, U q) { return p * q; }); });
      return true;
    case MicroOp::kDiv:
      Map2(a, b, n, to, Quotient<T>);
      return true;
    case MicroOp::kMin:
      Map2(a, b, n, to, Least<T>);
      return true;
    case MicroOp::kMax:
      Map2(a, b, n, to, Greatest<T>);
      return true;
    case MicroOp::kPow:
      Map2(a, b, n, to, IntegerPower<T>);
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
bool ApplyBits(MicroOp op, const T* a, const T* b, int64_t n, T* to) {
  switch (op) {
    case MicroOp::kBitAnd:
      Map2(a, b, n, to, [](T x, T y) { return x & y; });
      return true;
    case MicroOp::kBitOr:
      Map2(a, b, n, to, [](T x, T y) { return x | y; });
      return true;
    case MicroOp::kBitXor:
      Map2(a, b, n, to, [](T x, T y) { return x ^ y; });
      return true;
    case MicroOp::kShiftLeft:
      Map2(a, b, n, to, ShiftLeft<T>);
      return true;
    case MicroOp::kShiftRight:
      Map2(a, b, n, to, ShiftRight<T>);
      return true;
    case MicroOp::kBitNot:
      Map(a, n, to, [](T x) { return ~x; });
      return true;
    default:
      return false;
  }
}

template <typename T>
T Negated(T x) {
  return static_cast<T>(-static_cast<uint64_t>(x));
}

template <typename T>
void ApplyClamp(const MicroInstruction& op, const T* a, int64_t n, T* to) {
  T low, high;
  ValueFromDouble(op.type, op.immediate[0], &low);
  ValueFromDouble(op.type, op.immediate[1], &high);
  Map(a, n, to, [low, high](T x) { return std::min(std::max(x, low), high); });
}

template <typename T>
void ApplyWrap(const MicroInstruction& op, const T* a, int64_t n, T* to) {
  const auto bits = static_cast<int>(op.immediate[0]);
  const bool is_signed = op.immediate[1] != 0;
  Map(a, n, to,
      [=](T x) { return static_cast<T>(Wrap(static_cast<int64_t>(x), bits, is_signed)); });
}

template <typename T>
bool ApplyUnary(const MicroInstruction& op, const T* a, int64_t n, T* to) {
  switch (op.op) {
    case MicroOp::kNeg:
      Map(a, n, to, Negated<T>);
      return true;
    case MicroOp::kAbs:
      Map(a, n, to, [](T x) { return x < 0 ? Negated(x) : x; });
      return true;
    case MicroOp::kSign:
      Map(a, n, to, Sign<T>);
      return true;
    case MicroOp::kRelu:
      Map(a, n, to, [](T x) { return x < 0 ? T{0} : x; });
      return true;
    case MicroOp::kClamp:
      ApplyClamp(op, a, n, to);
      return true;
    case MicroOp::kWrap:
      ApplyWrap(op, a, n, to);
      return true;
    default:
      return false;
  }
}

}  // namespace

template <typename T>
bool ApplyIntegerOp(const MicroInstruction& op, const T* a, const T* b, int64_t count, T* to) {
  return ApplyArithmetic(op.op, a, b, count, to) || ApplyBits(op.op, a, b, count, to) ||
         ApplyUnary(op, a, count, to);
}

template bool ApplyIntegerOp(const MicroInstruction&, const int64_t*, const int64_t*, int64_t,
                             int64_t*);
template bool ApplyIntegerOp(const MicroInstruction&, const uint64_t*, const uint64_t*, int64_t,
                             uint64_t*);

}  // namespace dla::runtime
