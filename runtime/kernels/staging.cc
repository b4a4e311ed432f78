#include "runtime/kernels/staging.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/kernels/convert.h"
#include "runtime/strided_copy.h"
#include "support/micro_program.h"

namespace dla::runtime {

using machine::OperandDesc;

int64_t EncodeScalar(ElementType type, double number, uint8_t* bytes) {
  // Infinities stand for the ends of a stored integer type, which may be narrower than its value's.
  if (!IsFloat(type) && type != ElementType::kBool) {
    const bool is_signed = type == ElementType::kI8 || type == ElementType::kI16 ||
                           type == ElementType::kI32 || type == ElementType::kI64;
    const int bits = TypeBits(type) - (is_signed ? 1 : 0);
    const double end = std::ldexp(1.0, bits);
    const double low = is_signed ? -end : 0.0;
    // f64 has no number just below 2^63; the conversion saturates there.
    number = std::clamp(number, low, bits > 52 ? end : end - 1);
  }
  alignas(8) uint8_t value[8];
  ValueFromDouble(ValueType(type), number, value);
  StoreValues(type, value, 1, bytes);
  return TypeBytes(type, 1);
}

int64_t StrideAlong(const OperandDesc& operand, const AxisArray& strides, size_t dim) {
  int64_t stride = 0;
  for (size_t a = 0; a < operand.axes.size(); ++a) {
    for (const machine::TermDesc& term : operand.axes[a].terms) {
      if (term.dim == dim) stride += term.coefficient * strides[a];
    }
  }
  return stride;
}

View StageTile(const OperandDesc& operand, const Tile& tile, const uint8_t* scratchpad,
               Reused<uint8_t>* buffer) {
  const int64_t size = ElementBytes(operand);
  View view;
  const uint8_t* tile_data =
      scratchpad + tile.address + (tile.elements == 0 ? 0 : LocalOffset(operand, tile) * size);
  if (!tile.clipped()) {
    view.data = tile_data;
    for (size_t a = 0; a < operand.axes.size(); ++a) {
      view.strides[a] = operand.axes[a].local_stride;
    }
    return view;
  }
  int64_t hull = 1;
  int64_t inside = 0;  // where the first existing element goes
  for (size_t a = operand.axes.size(); a-- > 0;) {
    view.strides[a] = hull;
    inside += (tile.begin[a] - tile.first[a]) * hull;
    hull *= tile.hull[a];
  }
  uint8_t* staged = buffer->Get(hull * size);
  view.data = staged;
  uint8_t pad[8] = {};
  EncodeScalar(operand.type, operand.pad_value, pad);
  bool zero = true;
  for (int64_t i = 0; i < size; ++i) zero = zero && pad[i] == 0;
  if (zero) {
    std::memset(staged, 0, static_cast<size_t>(hull * size));
  } else {
    for (int64_t i = 0; i < hull; ++i) {
      std::memcpy(staged + i * size, pad, static_cast<size_t>(size));
    }
  }
  if (tile.elements == 0) return view;
  CopyBox box;
  for (size_t a = 0; a < operand.axes.size(); ++a) {
    box.Add(tile.length[a], view.strides[a], operand.axes[a].local_stride);
  }
  box.Run(staged + inside * size, tile_data, size);
  return view;
}

int64_t RoundToRead(const OperandDesc& operand, const uint8_t* bytes, int64_t count,
                    float* values) {
  LoadValues(operand.type, bytes, count, values);
  const ElementType read = operand.ReadType();
  if (read == operand.type || read == ElementType::kF32) return 0;
  const int64_t overflows = CountOverflows(read, values, count);
  // Through the narrow type and back, a few elements at a time.
  uint8_t narrow[256];
  constexpr int64_t kStep = sizeof(narrow) / 2;
  for (int64_t i = 0; i < count; i += kStep) {
    const int64_t n = std::min(kStep, count - i);
    StoreValues(read, values + i, n, narrow);
    LoadValues(read, narrow, n, values + i);
  }
  return overflows;
}

View StageRounded(const OperandDesc& operand, const Tile& tile, const uint8_t* scratchpad,
                  Reused<uint8_t>* buffer, Reused<float>* values, int64_t* overflows) {
  View view = StageTile(operand, tile, scratchpad, buffer);
  const int64_t size = ElementBytes(operand);
  int64_t hull = 1;
  AxisArray dense{};
  for (size_t a = operand.axes.size(); a-- > 0;) {
    dense[a] = hull;
    hull *= tile.hull[a];
  }
  if (!tile.clipped()) {
    CopyBox box;
    for (size_t a = 0; a < operand.axes.size(); ++a) {
      box.Add(tile.length[a], dense[a], view.strides[a]);
    }
    uint8_t* copy = buffer->Get(hull * size);
    box.Run(copy, view.data, size);
    view.data = copy;
  }
  float* rounded = values->Get(hull);
  *overflows += RoundToRead(operand, view.data, hull, rounded);
  return {.data = reinterpret_cast<const uint8_t*>(rounded), .strides = dense};
}

}  // namespace dla::runtime
