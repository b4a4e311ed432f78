#include "runtime/kernels/vector_ops.h"

#include <algorithm>

#include "runtime/kernels/convert.h"
#include "support/status.h"

namespace dla::runtime {
namespace {

// The operations that every type has.
template <typename T>
bool ApplyAnyOp(const MicroInstruction& op, const VectorArguments& arguments, int64_t count,
                T* to) {
  const auto* a = static_cast<const T*>(arguments.a);
  const auto* b = static_cast<const T*>(arguments.b);
  const auto* c = static_cast<const T*>(arguments.c);
  switch (op.op) {
    case MicroOp::kConst: {
      T value;
      ValueFromDouble(op.type, op.immediate[0], &value);
      std::fill(to, to + count, value);
      return true;
    }
    case MicroOp::kCopy:
      if (a != to) std::copy(a, a + count, to);
      return true;
    case MicroOp::kSelect: {
      const auto* condition = static_cast<const uint8_t*>(arguments.a);
      for (int64_t i = 0; i < count; ++i) to[i] = condition[i] != 0 ? b[i] : c[i];
      return true;
    }
    case MicroOp::kCast:
      ApplyCast(arguments.argument_type, arguments.a, op.type, count, to);
      return true;
    default:
      return false;
  }
}

template <typename T>
bool Apply(const MicroInstruction& op, const VectorArguments& arguments, int64_t count, void* out) {
  auto* to = static_cast<T*>(out);
  if (ApplyAnyOp<T>(op, arguments, count, to)) return true;
  if constexpr (std::is_same_v<T, uint8_t>) {
    return ApplyBoolOp(op, arguments, count, to);
  } else {
    const auto* a = static_cast<const T*>(arguments.a);
    const auto* b = static_cast<const T*>(arguments.b);
    if constexpr (std::is_floating_point_v<T>) {
      return ApplyFloatOp(op, a, b, count, to);
    } else {
      return ApplyIntegerOp(op, a, b, count, to);
    }
  }
}

}  // namespace

void ApplyOp(const MicroInstruction& op, const VectorArguments& arguments, int64_t count,
             void* to) {
  bool done = false;
  switch (op.type) {
    case ElementType::kF32:
      done = Apply<float>(op, arguments, count, to);
      break;
    case ElementType::kF64:
      done = Apply<double>(op, arguments, count, to);
      break;
    case ElementType::kI64:
      done = Apply<int64_t>(op, arguments, count, to);
      break;
    case ElementType::kU64:
      done = Apply<uint64_t>(op, arguments, count, to);
      break;
    default:
      done = Apply<uint8_t>(op, arguments, count, to);
  }
  DLA_CHECK(done, "operation ", Info(op.op).name, " on ", TypeName(op.type));
}

}  // namespace dla::runtime
