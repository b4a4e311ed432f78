#include "tests/runtime/scalar_reference.h"

#include <gtest/gtest.h>

namespace dla::runtime::test {
namespace {

constexpr Wide kTwoTo63 = Wide{1} << 63;
constexpr Wide kTwoTo64 = Wide{1} << 64;

template <typename T>
T FloatOp(const MicroInstruction& op, T x, T y) {
  const T low = static_cast<T>(op.immediate[0]);
  const T high = static_cast<T>(op.immediate[1]);
  const bool nan = std::isnan(x) || std::isnan(y);
  constexpr T kNaN = std::numeric_limits<T>::quiet_NaN();
  switch (op.op) {
    case MicroOp::kConst:
      return low;
    case MicroOp::kAdd:
      return x + y;
    case MicroOp::kSub:
      return x - y;
    case MicroOp::kMul:
      return x * y;
    case MicroOp::kDiv:
      return x / y;
    case MicroOp::kMin:
      return nan ? kNaN : x < y ? x : y;
    case MicroOp::kMax:
      return nan ? kNaN : x > y ? x : y;
    case MicroOp::kPow:
      return std::pow(x, y);
    case MicroOp::kMod: {
      T r = std::fmod(x, y);
      if (r != 0 && std::signbit(r) != std::signbit(y)) r += y;
      return r == 0 ? std::copysign(T{0}, y) : r;
    }
    case MicroOp::kRemainder:
      return std::fmod(x, y);
    case MicroOp::kNeg:
      return -x;
    case MicroOp::kAbs:
      return std::signbit(x) ? -x : x;
    case MicroOp::kSign:
      return std::isnan(x) ? kNaN : static_cast<T>((x > 0) - (x < 0));
    case MicroOp::kRelu:
      return x < 0 ? T{0} : x;
    case MicroOp::kLeakyRelu:
      return x < 0 ? x * low : x;
    case MicroOp::kClamp: {
      if (std::isnan(x)) return x;
      const T raised = low > x ? low : x;
      return high < raised ? high : raised;
    }
    case MicroOp::kCopy:
      return x;
    case MicroOp::kReciprocal:
      return 1 / x;
    case MicroOp::kSigmoid:
      return std::is_same_v<T, float> && x < -18 ? T{0} : 1 / (1 + std::exp(-x));
    default:
      break;
  }
  using Function = T (*)(T);
  const std::pair<MicroOp, Function> functions[] = {
      {MicroOp::kExp, std::exp},     {MicroOp::kLog, std::log},     {MicroOp::kSqrt, std::sqrt},
      {MicroOp::kTanh, std::tanh},   {MicroOp::kErf, std::erf},     {MicroOp::kFloor, std::floor},
      {MicroOp::kCeil, std::ceil},   {MicroOp::kRound, std::rint},  {MicroOp::kSin, std::sin},
      {MicroOp::kCos, std::cos},     {MicroOp::kTan, std::tan},     {MicroOp::kAsin, std::asin},
      {MicroOp::kAcos, std::acos},   {MicroOp::kAtan, std::atan},   {MicroOp::kSinh, std::sinh},
      {MicroOp::kCosh, std::cosh},   {MicroOp::kAsinh, std::asinh}, {MicroOp::kAcosh, std::acosh},
      {MicroOp::kAtanh, std::atanh},
  };
  for (const auto& [name, function] : functions) {
    if (name == op.op) return function(x);
  }
  ADD_FAILURE() << "no reference for " << Info(op.op).name;
  return 0;
}

// x * floor or trunc is exact in 128 bits.
Wide FloorDivide(Wide x, Wide y) { return x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0); }

Wide IntegerPower(ElementType type, Wide base, Wide exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  // The powers of a number modulo 2^64 repeat; large exponents only matter for 0, 1 and -1, or are
  // reached by squaring.
  Wide power = 1;
  Wide square = base;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) power = Whole(type, power * square).whole;
    // The product of two 64-bit numbers fits; signs do not change its low bits.
    const auto low = static_cast<uint64_t>(square);
    square = Whole(type, static_cast<Wide>(static_cast<uint64_t>(low * low))).whole;
  }
  return power;
}

Wide Shift(ElementType type, bool left, Wide x, Wide by) {
  if (by < 0 || by > 63) return left || x >= 0 ? 0 : -1;
  const Wide unit = Wide{1} << static_cast<int>(by);
  if (!left) return FloorDivide(x, unit);
  return Whole(type, static_cast<Wide>(static_cast<uint64_t>(x) * static_cast<uint64_t>(unit)))
      .whole;
}

Wide WholeOp(const MicroInstruction& op, Wide x, Wide y) {
  switch (op.op) {
    case MicroOp::kConst:
      return static_cast<Wide>(op.immediate[0]);
    case MicroOp::kAdd:
      return x + y;
    case MicroOp::kSub:
      return x - y;
    case MicroOp::kMul:
      return static_cast<Wide>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
    case MicroOp::kDiv:
      return y == 0 ? 0 : x / y;
    case MicroOp::kMin:
      return x < y ? x : y;
    case MicroOp::kMax:
      return x > y ? x : y;
    case MicroOp::kPow:
      return IntegerPower(op.type, x, y);
    case MicroOp::kMod:
      return y == 0 ? 0 : x - y * FloorDivide(x, y);
    case MicroOp::kRemainder:
      return y == 0 ? 0 : x % y;
    case MicroOp::kNeg:
      return -x;
    case MicroOp::kAbs:
      return x < 0 ? -x : x;
    case MicroOp::kSign:
      return (x > 0) - (x < 0);
    case MicroOp::kRelu:
      return x < 0 ? 0 : x;
    case MicroOp::kClamp: {
      const auto low = static_cast<Wide>(op.immediate[0]),
                 high = static_cast<Wide>(op.immediate[1]);
      const Wide raised = x < low ? low : x;
      return raised > high ? high : raised;
    }
    case MicroOp::kCopy:
      return x;
    case MicroOp::kBitAnd:
    case MicroOp::kAnd:
      return x & y;
    case MicroOp::kBitOr:
    case MicroOp::kOr:
      return x | y;
    case MicroOp::kBitXor:
    case MicroOp::kXor:
      return x ^ y;
    case MicroOp::kBitNot:
      return -1 - x;
    case MicroOp::kNot:
      return 1 - x;
    case MicroOp::kShiftLeft:
    case MicroOp::kShiftRight:
      return Shift(op.type, op.op == MicroOp::kShiftLeft, x, y);
    case MicroOp::kWrap: {
      const Wide unit = Wide{1} << static_cast<int>(op.immediate[0]);
      const Wide low = x - unit * FloorDivide(x, unit);
      return op.immediate[1] != 0 && low >= unit / 2 ? low - unit : low;
    }
    default:
      ADD_FAILURE() << "no reference for " << Info(op.op).name;
      return 0;
  }
}

Wide TruncatedWhole(ElementType type, double x) {
  if (std::isnan(x)) return 0;
  const Wide low = type == ElementType::kI64 ? -kTwoTo63 : 0;
  const Wide high = (type == ElementType::kI64 ? kTwoTo63 : kTwoTo64) - 1;
  if (x <= static_cast<double>(low)) return low;
  if (x >= static_cast<double>(high)) return high;
  return static_cast<Wide>(x);
}

Scalar CastTo(ElementType type, const Scalar& x) {
  const bool is_whole = !IsFloat(x.type);
  // f32 to f64 is exact, so one path serves both.
  const double number = x.type == ElementType::kF32 ? static_cast<double>(x.f32) : x.f64;
  switch (type) {
    case ElementType::kF32:
      return F32(is_whole ? static_cast<float>(x.whole) : static_cast<float>(number));
    case ElementType::kF64:
      return F64(is_whole ? static_cast<double>(x.whole) : number);
    case ElementType::kBool:
      return Bool(is_whole ? x.whole != 0 : number != 0);
    default:
      return Whole(type, is_whole ? x.whole : TruncatedWhole(type, number));
  }
}

// -1, 0, 1, or 2 if one is NaN.
int Order(const Scalar& x, const Scalar& y) {
  if (!IsFloat(x.type)) return (x.whole > y.whole) - (x.whole < y.whole);
  const double a = x.type == ElementType::kF32 ? static_cast<double>(x.f32) : x.f64;
  const double b = y.type == ElementType::kF32 ? static_cast<double>(y.f32) : y.f64;
  if (std::isnan(a) || std::isnan(b)) return 2;
  return (a > b) - (a < b);
}

template <typename T>
bool IsInfinity(T x, const std::array<double, 2>& wanted) {
  if (x == std::numeric_limits<T>::infinity()) return wanted[1] != 0;
  return x == -std::numeric_limits<T>::infinity() && wanted[0] != 0;
}

}  // namespace

Scalar Reference(const MicroInstruction& op, const std::vector<Scalar>& arguments) {
  const auto argument = [&](size_t a) {
    return a < arguments.size() ? arguments[a] : Scalar{.type = op.type};
  };
  const Scalar x = argument(0), y = argument(1);
  switch (op.op) {
    case MicroOp::kEqual:
      return Bool(Order(x, y) == 0);
    case MicroOp::kLess:
      return Bool(Order(x, y) == -1);
    case MicroOp::kLessOrEqual:
      return Bool(Order(x, y) == -1 || Order(x, y) == 0);
    case MicroOp::kSelect:
      return x.whole != 0 ? y : argument(2);
    case MicroOp::kCast:
      return CastTo(op.type, x);
    case MicroOp::kIsNaN:
      return Bool(Order(x, x) == 2);
    case MicroOp::kIsInf:
      return Bool(x.type == ElementType::kF32 ? IsInfinity(x.f32, op.immediate)
                                              : IsInfinity(x.f64, op.immediate));
    default:
      break;
  }
  if (op.type == ElementType::kF32) return F32(FloatOp(op, x.f32, y.f32));
  if (op.type == ElementType::kF64) return F64(FloatOp(op, x.f64, y.f64));
  return Whole(op.type, WholeOp(op, x.whole, y.whole));
}

Scalar ReferenceReduction(MicroOp op, const std::vector<Scalar>& values) {
  const ElementType type = values[0].type;
  const bool sum = op == MicroOp::kReduceSum;
  if (IsFloat(type) && (sum || op == MicroOp::kReduceProduct)) {
    // f32 in f64, f64 in long double, as the evaluator.
    double single = sum ? 0 : 1;
    long double twice = sum ? 0 : 1;
    for (const Scalar& value : values) {
      const double x = type == ElementType::kF32 ? static_cast<double>(value.f32) : value.f64;
      single = sum ? single + x : single * x;
      twice = sum ? twice + x : twice * x;
    }
    return type == ElementType::kF32 ? F32(static_cast<float>(single))
                                     : F64(static_cast<double>(twice));
  }
  MicroInstruction pair{.op = sum                             ? MicroOp::kAdd
                              : op == MicroOp::kReduceProduct ? MicroOp::kMul
                              : op == MicroOp::kReduceMax     ? MicroOp::kMax
                                                              : MicroOp::kMin,
                        .type = type};
  Scalar result = values[0];
  for (size_t i = 1; i < values.size(); ++i) result = Reference(pair, {result, values[i]});
  return result;
}

Scalar StoredAndLoaded(ElementType type, const Scalar& value) {
  if (type == ElementType::kF16) return F32(HalfToFloat(FloatToHalf(value.f32)));
  if (type == ElementType::kBF16) return F32(BFloat16ToFloat(FloatToBFloat16(value.f32)));
  if (IsValueType(type)) return value;
  MicroInstruction wrap{.op = MicroOp::kWrap, .type = ElementType::kI64};
  const bool is_signed = TypeName(type)[0] == 'i';
  wrap.immediate = {static_cast<double>(TypeBits(type)), is_signed ? 1.0 : 0.0};
  return Reference(wrap, {value});
}

std::vector<Scalar> SpecialValues(ElementType type) {
  std::vector<Scalar> values;
  if (type == ElementType::kF32) {
    using L = std::numeric_limits<float>;
    for (const float x :
         {0.0f, 1.0f, 0.5f, 1.5f, 2.5f, 3.0f, 1e-30f, L::denorm_min(), L::min(), L::max(),
          L::infinity(), L::quiet_NaN(), 0x1p63f, 0x1p64f, 16777217.0f, 88.8f, 104.0f}) {
      values.push_back(F32(x));
      values.push_back(F32(-x));
    }
  } else if (type == ElementType::kF64) {
    using L = std::numeric_limits<double>;
    for (const double x :
         {0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 1e-300, L::denorm_min(), L::min(), L::max(), L::infinity(),
          L::quiet_NaN(), 0x1p63, 0x1p64, 0x1p53, 1e39, 709.9}) {
      values.push_back(F64(x));
      values.push_back(F64(-x));
    }
  } else if (type == ElementType::kBool) {
    values = {Bool(false), Bool(true)};
  } else {
    for (const Wide x : {Wide{0}, Wide{1}, Wide{2}, Wide{7}, Wide{127}, Wide{128}, Wide{255},
                         Wide{256}, Wide{32767}, Wide{65535}, Wide{1} << 31, Wide{1} << 32,
                         Wide{1} << 53, kTwoTo63 - 1, kTwoTo63, Wide{63}, Wide{64}}) {
      values.push_back(Whole(type, x));
      values.push_back(Whole(type, -x));
    }
  }
  return values;
}

Scalar RandomValue(ElementType type, std::mt19937_64* random) {
  const uint64_t bits = (*random)();
  // Half of them are of ordinary size, half are any bits.
  const bool ordinary = ((*random)() & 1) != 0;
  switch (type) {
    case ElementType::kF32:
      return F32(ordinary ? static_cast<float>(static_cast<int32_t>(bits)) / 0x1p26f
                          : std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case ElementType::kF64:
      return F64(ordinary ? static_cast<double>(static_cast<int32_t>(bits)) / 0x1p26
                          : std::bit_cast<double>(bits));
    case ElementType::kBool:
      return Bool((bits & 1) != 0);
    default:
      return Whole(type, ordinary ? Wide{static_cast<int8_t>(bits)} : Wide{bits});
  }
}

}  // namespace dla::runtime::test
