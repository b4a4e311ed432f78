// Tensors in files: .npy, .npz, ONNX TensorProto (.pb) and ONNX data-set folders.
//
// Files are untrusted: what is wrong with them is kMalformed with file, member and reason, and no
// more memory is asked for than the file's size justifies. Both byte orders and Fortran order are
// read; written is little-endian C order. numpy has no bfloat16 and no 4-bit types: bf16 is written
// as the uint16 of its bits, i4 and u4 as one byte an element.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "support/status.h"
#include "support/tensor.h"

namespace dla {

// The most bytes of data that the array `name` of an archive may have; negative: skip it unread.
using TensorLimit = std::function<int64_t(const std::string& name)>;

// `where` is what messages call the file; "": nothing.
Result<Tensor> ParseNpy(std::span<const uint8_t> file, const std::string& where);
std::vector<uint8_t> EncodeNpy(const Tensor& tensor);

// The arrays of an archive, in its order; names are the keys as they are (without ".npy").
Result<std::vector<Tensor>> ReadNpz(const std::string& path, const TensorLimit& limit = nullptr);
Result<std::vector<Tensor>> ParseNpz(std::span<const uint8_t> file, const std::string& where,
                                     const TensorLimit& limit = nullptr);
// Stored, not compressed; the same tensors give the same bytes.
Status WriteNpz(const std::string& path, std::span<const Tensor> tensors);

Result<Tensor> ParseTensorProto(std::span<const uint8_t> file, const std::string& where);
std::vector<uint8_t> EncodeTensorProto(const Tensor& tensor);

// By its ending: .npy or .pb.
Result<Tensor> ReadTensor(const std::string& path);
Status WriteTensor(const std::string& path, const Tensor& tensor);

// PREFIX_0.pb, PREFIX_1.pb, ... of a folder, as many as there are ("input", "output").
Result<std::vector<Tensor>> ReadDataSet(const std::string& folder, const std::string& prefix);

}  // namespace dla
