#include "runtime/kernels/staging.h"

#include <cstring>

#include "runtime/kernels/convert.h"
#include "runtime/strided_copy.h"

namespace dla::runtime {

using machine::OperandDesc;

int64_t EncodeScalar(ElementType type, float value, uint8_t* bytes) {
  FromF32(type, &value, 1, bytes);
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

}  // namespace dla::runtime
