// One micro-operation on columns: the arithmetic of micro_arithmetic.h, by operation and type.
#include <cmath>

#include "ir/kernels/micro.h"
#include "ir/kernels/micro_arithmetic.h"
#include "support/status.h"

namespace dla::ir {
namespace {

using Arguments = std::span<const MicroColumn* const>;

template <typename T, typename R, typename F>
void Each(Arguments x, MicroColumn* result, F f) {
  const T* a = x[0]->As<T>();
  R* out = result->As<R>();
  for (int64_t i = 0; i < result->count(); ++i) out[i] = f(a[i]);
}

template <typename T, typename R, typename F>
void Pairs(Arguments x, MicroColumn* result, F f) {
  const T* a = x[0]->As<T>();
  const T* b = x[1]->As<T>();
  R* out = result->As<R>();
  for (int64_t i = 0; i < result->count(); ++i) out[i] = f(a[i], b[i]);
}

// Calls `f` with a value of the type, for its C++ type.
template <typename F>
void WithType(ElementType type, F f) {
  switch (type) {
    case ElementType::kF32:
      return f(float{});
    case ElementType::kF64:
      return f(double{});
    case ElementType::kU64:
      return f(uint64_t{});
    case ElementType::kBool:
      return f(bool{});
    default:
      return f(int64_t{});
  }
}

template <typename T>
bool ApplyFloating(const MicroInstruction& op, Arguments x, MicroColumn* result) {
  const auto each = [&](auto f) {
    Each<T, T>(x, result, f);
    return true;
  };
  switch (op.op) {
    case MicroOp::kPow:
      Pairs<T, T>(x, result, [](T a, T b) { return std::pow(a, b); });
      return true;
    case MicroOp::kExp:
      return each([](T a) { return std::exp(a); });
    case MicroOp::kLog:
      return each([](T a) { return std::log(a); });
    case MicroOp::kSqrt:
      return each([](T a) { return std::sqrt(a); });
    case MicroOp::kReciprocal:
      return each([](T a) { return T{1} / a; });
    case MicroOp::kTanh:
      return each([](T a) { return std::tanh(a); });
    case MicroOp::kSigmoid:
      return each(Logistic<T>);
    case MicroOp::kErf:
      return each([](T a) { return std::erf(a); });
    case MicroOp::kFloor:
      return each([](T a) { return std::floor(a); });
    case MicroOp::kCeil:
      return each([](T a) { return std::ceil(a); });
    case MicroOp::kRound:  // ties to even in the default rounding mode
      return each([](T a) { return std::nearbyint(a); });
    case MicroOp::kSin:
      return each([](T a) { return std::sin(a); });
    case MicroOp::kCos:
      return each([](T a) { return std::cos(a); });
    case MicroOp::kTan:
      return each([](T a) { return std::tan(a); });
    case MicroOp::kAsin:
      return each([](T a) { return std::asin(a); });
    case MicroOp::kAcos:
      return each([](T a) { return std::acos(a); });
    case MicroOp::kAtan:
      return each([](T a) { return std::atan(a); });
    case MicroOp::kSinh:
      return each([](T a) { return std::sinh(a); });
    case MicroOp::kCosh:
      return each([](T a) { return std::cosh(a); });
    case MicroOp::kAsinh:
      return each([](T a) { return std::asinh(a); });
    case MicroOp::kAcosh:
      return each([](T a) { return std::acosh(a); });
    case MicroOp::kAtanh:
      return each([](T a) { return std::atanh(a); });
    default:
      return false;
  }
}

template <typename T>
bool ApplyInteger(const MicroInstruction& op, Arguments x, MicroColumn* result) {
  const auto pairs = [&](auto f) {
    Pairs<T, T>(x, result, f);
    return true;
  };
  switch (op.op) {
    case MicroOp::kBitAnd:
      return pairs([](T a, T b) { return a & b; });
    case MicroOp::kBitOr:
      return pairs([](T a, T b) { return a | b; });
    case MicroOp::kBitXor:
      return pairs([](T a, T b) { return a ^ b; });
    case MicroOp::kBitNot:
      Each<T, T>(x, result, [](T a) { return ~a; });
      return true;
    case MicroOp::kShiftLeft:
      return pairs(ShiftLeft<T>);
    case MicroOp::kShiftRight:
      return pairs(ShiftRight<T>);
    case MicroOp::kWrap: {
      const int shift = 64 - static_cast<int>(op.immediate[0]);
      const bool is_signed = op.immediate[1] != 0;
      Each<T, T>(x, result, [=](T a) {
        const uint64_t high = static_cast<uint64_t>(a) << shift;
        return static_cast<T>(is_signed ? static_cast<uint64_t>(static_cast<int64_t>(high) >> shift)
                                        : high >> shift);
      });
      return true;
    }
    default:
      return false;
  }
}

// What all numbers have.
template <typename T>
bool ApplyNumber(const MicroInstruction& op, Arguments x, MicroColumn* result) {
  const T low = FromDouble<T>(op.immediate[0]), high = FromDouble<T>(op.immediate[1]);
  const auto pairs = [&](auto f) {
    Pairs<T, T>(x, result, f);
    return true;
  };
  const auto each = [&](auto f) {
    Each<T, T>(x, result, f);
    return true;
  };
  switch (op.op) {
    case MicroOp::kAdd:
      return pairs([](T a, T b) { return Wrapping(a, b, [](auto p, auto q) { return p + q; }); });
    case MicroOp::kSub:
      return pairs([](T a, T b) { return Wrapping(a, b, [](auto p, auto q) { return p - q; }); });
    case MicroOp::kMul:
      return pairs([](T a, T b) { return Wrapping(a, b, [](auto p, auto q) { return p * q; }); });
    case MicroOp::kDiv:
      return pairs(Quotient<T>);
    case MicroOp::kMin:
      return pairs(Minimum<T>);
    case MicroOp::kMax:
      return pairs(Maximum<T>);
    case MicroOp::kMod:
      return pairs(Modulo<T>);
    case MicroOp::kRemainder:
      return pairs(Remainder<T>);
    case MicroOp::kNeg:
      return each([](T a) {
        if constexpr (kIsFloating<T>) return -a;
        return static_cast<T>(0 - static_cast<uint64_t>(a));
      });
    case MicroOp::kAbs:
      return each([](T a) {
        if constexpr (kIsFloating<T>) return std::fabs(a);
        if constexpr (std::is_signed_v<T>) {
          return a < 0 ? static_cast<T>(0 - static_cast<uint64_t>(a)) : a;
        }
        return a;
      });
    case MicroOp::kSign:
      return each(Sign<T>);
    case MicroOp::kRelu:
      return each([](T a) { return Maximum(a, T{0}); });
    case MicroOp::kLeakyRelu:
      return each([=](T a) { return a < 0 ? low * a : a; });
    case MicroOp::kClamp:
      return each([=](T a) { return Minimum(Maximum(a, low), high); });
    default:
      return false;
  }
}

// Operations whose arguments have another type than the result, or whose type does not matter.
bool ApplyMixed(const MicroInstruction& op, Arguments x, MicroColumn* result) {
  switch (op.op) {
    case MicroOp::kEqual:
      WithType(x[0]->type(), [&](auto t) {
        Pairs<decltype(t), bool>(x, result, [](auto a, auto b) { return a == b; });
      });
      return true;
    case MicroOp::kLess:
      WithType(x[0]->type(), [&](auto t) {
        Pairs<decltype(t), bool>(x, result, [](auto a, auto b) { return a < b; });
      });
      return true;
    case MicroOp::kLessOrEqual:
      WithType(x[0]->type(), [&](auto t) {
        Pairs<decltype(t), bool>(x, result, [](auto a, auto b) { return a <= b; });
      });
      return true;
    case MicroOp::kIsNaN:
      WithType(x[0]->type(),
               [&](auto t) { Each<decltype(t), bool>(x, result, [](auto a) { return a != a; }); });
      return true;
    case MicroOp::kIsInf:
      WithType(x[0]->type(), [&](auto t) {
        Each<decltype(t), bool>(x, result, [&](auto a) {
          const double value = static_cast<double>(a);
          return std::isinf(value) && op.immediate[value < 0 ? 0 : 1] != 0;
        });
      });
      return true;
    case MicroOp::kCast:
      WithType(x[0]->type(), [&](auto from) {
        WithType(op.type, [&](auto to) {
          Each<decltype(from), decltype(to)>(x, result, CastValue<decltype(to), decltype(from)>);
        });
      });
      return true;
    case MicroOp::kCopy:
      *result = *x[0];
      return true;
    case MicroOp::kSelect:
      WithType(op.type, [&](auto t) {
        using T = decltype(t);
        for (int64_t i = 0; i < result->count(); ++i) {
          result->As<T>()[i] = x[x[0]->As<bool>()[i] ? 1 : 2]->As<T>()[i];
        }
      });
      return true;
    default:
      return false;
  }
}

bool ApplyLogic(const MicroInstruction& op, Arguments x, MicroColumn* result) {
  switch (op.op) {
    case MicroOp::kAnd:
      Pairs<bool, bool>(x, result, [](bool a, bool b) { return a && b; });
      return true;
    case MicroOp::kOr:
      Pairs<bool, bool>(x, result, [](bool a, bool b) { return a || b; });
      return true;
    case MicroOp::kXor:
      Pairs<bool, bool>(x, result, [](bool a, bool b) { return a != b; });
      return true;
    case MicroOp::kNot:
      Each<bool, bool>(x, result, [](bool a) { return !a; });
      return true;
    default:
      return false;
  }
}

template <typename T>
void Reduce(const MicroInstruction& op, const MicroColumn& x, MicroColumn* result) {
  // Sums and products in a wider type, of integers without sign, which wraps.
  using WideFloat = std::conditional_t<std::is_same_v<T, double>, long double, double>;
  using Wide = std::conditional_t<kIsFloating<T>, WideFloat, uint64_t>;
  const T* values = x.As<T>();
  const int64_t count = x.count();
  T reduced = values[0];
  if (op.op == MicroOp::kReduceSum || op.op == MicroOp::kReduceProduct) {
    const bool sum = op.op == MicroOp::kReduceSum;
    Wide wide = sum ? Wide{0} : Wide{1};
    for (int64_t i = 0; i < count; ++i) {
      wide = sum ? wide + static_cast<Wide>(values[i]) : wide * static_cast<Wide>(values[i]);
    }
    reduced = static_cast<T>(wide);
  } else {
    const bool max = op.op == MicroOp::kReduceMax;
    for (int64_t i = 1; i < count; ++i) {
      reduced = max ? Maximum(reduced, values[i]) : Minimum(reduced, values[i]);
    }
  }
  std::fill_n(result->As<T>(), count, reduced);
}

template <typename T>
void ReduceDot(const MicroColumn& x, const MicroColumn& y, MicroColumn* result) {
  using Wide = std::conditional_t<std::is_same_v<T, double>, long double, double>;
  Wide sum = 0;
  for (int64_t i = 0; i < x.count(); ++i) {
    sum += static_cast<Wide>(x.As<T>()[i]) * static_cast<Wide>(y.As<T>()[i]);
  }
  std::fill_n(result->As<T>(), x.count(), static_cast<T>(sum));
}

template <typename T>
bool Apply(const MicroInstruction& op, Arguments x, MicroColumn* result) {
  if constexpr (std::is_same_v<T, bool>) {
    return ApplyLogic(op, x, result);
  } else {
    if (op.op == MicroOp::kReduceDot) {
      ReduceDot<T>(*x[0], *x[1], result);
      return true;
    }
    if (Info(op.op).reduces) {
      Reduce<T>(op, *x[0], result);
      return true;
    }
    if (ApplyNumber<T>(op, x, result)) return true;
    if constexpr (kIsFloating<T>) return ApplyFloating<T>(op, x, result);
    if constexpr (!kIsFloating<T>) return ApplyInteger<T>(op, x, result);
  }
}

}  // namespace

void ApplyMicroOp(const MicroInstruction& op, std::span<const MicroColumn* const> arguments,
                  MicroColumn* result) {
  if (ApplyMixed(op, arguments, result)) return;
  WithType(op.type, [&](auto t) {
    DLA_CHECK(Apply<decltype(t)>(op, arguments, result), Info(op.op).name, " of ",
              TypeName(op.type));
  });
}

}  // namespace dla::ir
