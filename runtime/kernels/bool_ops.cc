// Comparisons, tests and logic, whose results are bool, and casts between all types.
#include <cmath>

#include "runtime/kernels/map.h"
#include "runtime/kernels/scalar.h"
#include "runtime/kernels/vector_ops.h"

namespace dla::runtime {
namespace {

// Calls f with a pointer to nothing of the value type's C++ type.
template <typename F>
auto WithType(ElementType type, F f) {
  switch (type) {
    case ElementType::kF32:
      return f(static_cast<float*>(nullptr));
    case ElementType::kF64:
      return f(static_cast<double*>(nullptr));
    case ElementType::kI64:
      return f(static_cast<int64_t*>(nullptr));
    case ElementType::kU64:
      return f(static_cast<uint64_t*>(nullptr));
    default:
      return f(static_cast<uint8_t*>(nullptr));
  }
}

template <typename T>
bool Compare(MicroOp op, const T* a, const T* b, int64_t n, uint8_t* to) {
  switch (op) {
    case MicroOp::kEqual:
      Map2(a, b, n, to, [](T x, T y) { return static_cast<uint8_t>(x == y); });
      return true;
    case MicroOp::kLess:
      Map2(a, b, n, to, [](T x, T y) { return static_cast<uint8_t>(x < y); });
      return true;
    case MicroOp::kLessOrEqual:
      Map2(a, b, n, to, [](T x, T y) { return static_cast<uint8_t>(x <= y); });
      return true;
    default:
      return false;
  }
}

template <typename T>
bool Test(const MicroInstruction& op, const T* a, int64_t n, uint8_t* to) {
  const bool minus = op.immediate[0] != 0;
  const bool plus = op.immediate[1] != 0;
  switch (op.op) {
    case MicroOp::kIsNaN:
      Map(a, n, to, [](T x) { return static_cast<uint8_t>(std::isnan(x)); });
      return true;
    case MicroOp::kIsInf:
      Map(a, n, to, [=](T x) {
        return static_cast<uint8_t>(std::isinf(x) && (std::signbit(x) ? minus : plus));
      });
      return true;
    default:
      return false;
  }
}

bool Logic(MicroOp op, const uint8_t* a, const uint8_t* b, int64_t n, uint8_t* to) {
  using B = uint8_t;
  switch (op) {
    case MicroOp::kAnd:
      Map2(a, b, n, to, [](B x, B y) { return static_cast<B>(x & y); });
      return true;
    case MicroOp::kOr:
      Map2(a, b, n, to, [](B x, B y) { return static_cast<B>(x | y); });
      return true;
    case MicroOp::kXor:
      Map2(a, b, n, to, [](B x, B y) { return static_cast<B>(x ^ y); });
      return true;
    case MicroOp::kNot:
      Map(a, n, to, [](B x) { return static_cast<B>(x ^ 1); });
      return true;
    default:
      return false;
  }
}

// uint8_t stands for bool.
template <typename From, typename To>
To Cast(From x) {
  if constexpr (std::is_same_v<To, uint8_t>) {
    return static_cast<To>(x != 0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return Truncate<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace

bool ApplyBoolOp(const MicroInstruction& op, const VectorArguments& arguments, int64_t count,
                 uint8_t* to) {
  return WithType(arguments.argument_type, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const auto* a = static_cast<const T*>(arguments.a);
    const auto* b = static_cast<const T*>(arguments.b);
    if (Compare(op.op, a, b, count, to)) return true;
    if constexpr (std::is_floating_point_v<T>) return Test(op, a, count, to);
    if constexpr (std::is_same_v<T, uint8_t>) return Logic(op.op, a, b, count, to);
    return false;
  });
}

void ApplyCast(ElementType from_type, const void* from, ElementType to_type, int64_t count,
               void* to) {
  WithType(from_type, [&](auto* source) {
    using From = std::remove_pointer_t<decltype(source)>;
    WithType(to_type, [&](auto* result) {
      using To = std::remove_pointer_t<decltype(result)>;
      Map(static_cast<const From*>(from), count, static_cast<To*>(to), Cast<From, To>);
    });
  });
}

}  // namespace dla::runtime
