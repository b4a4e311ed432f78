// Any bytes as each kind of tensor file: refused, or a tensor as large as its shape says.
#include "support/tensor_file.h"

namespace {
void Check(const dla::Tensor& tensor) {
  const auto elements = dla::CountElements(tensor.shape);
  DLA_CHECK(elements &&
                dla::TypeBytes(tensor.type, *elements) == static_cast<int64_t>(tensor.bytes.size()),
            "shape and bytes differ");
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  if (const auto tensor = dla::ParseNpy(bytes, "fuzz"); tensor.ok()) Check(*tensor);
  if (const auto tensor = dla::ParseTensorProto(bytes, "fuzz"); tensor.ok()) Check(*tensor);
  if (const auto tensors = dla::ParseNpz(bytes, "fuzz"); tensors.ok()) {
    for (const dla::Tensor& tensor : *tensors) Check(tensor);
  }
  return 0;
}
