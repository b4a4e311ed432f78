// Tensors as plain dense arrays: what kernels, constant folding and the evaluator work on.
//
// A Tensor owns its bytes, a TensorView does not (a constant's bytes, a caller's array). Both are
// dense, row-major and little-endian. An absent optional operand is a view without bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "support/element_type.h"
#include "support/status.h"

namespace dla::ir {

// A non-negative size or position as a container's index.
template <typename Integer>
constexpr size_t Idx(Integer i) {
  return static_cast<size_t>(i);
}

// What a value is before it has elements.
struct TensorType {
  ElementType type = ElementType::kF32;
  Shape shape;
  bool operator==(const TensorType&) const = default;
};

struct TensorView {
  ElementType type = ElementType::kF32;
  Shape shape;
  const uint8_t* bytes = nullptr;

  bool present() const { return bytes != nullptr; }
  int64_t elements() const { return ElementCount(shape); }
  const float* f32() const { return static_cast<const float*>(static_cast<const void*>(bytes)); }
};

struct Tensor {
  ElementType type = ElementType::kF32;
  Shape shape;
  std::vector<uint8_t> bytes;

  // Zeros of this type and shape.
  static Tensor Zeros(const TensorType& type);
  static Tensor Floats(Shape shape, const std::vector<float>& values);
  static Tensor Ints(Shape shape, const std::vector<int64_t>& values);  // i64

  int64_t elements() const { return ElementCount(shape); }
  float* f32() { return static_cast<float*>(static_cast<void*>(bytes.data())); }
  TensorView view() const;
  std::vector<float> ToFloats() const;  // the elements as f32, whatever the type
};

// One element, as the widest type of its kind. 4-bit types are not read.
double ReadDouble(const TensorView& tensor, int64_t index);
int64_t ReadInt(const TensorView& tensor, int64_t index);
// Stores with the usual conversion (truncation of floats to integers, wrap-around of integers).
void WriteDouble(Tensor* tensor, int64_t index, double value);
void WriteInt(Tensor* tensor, int64_t index, int64_t value);
// The types that the four functions above know.
bool IsReadable(ElementType type);

// Makes the tensor's bytes a constant, without copying them.
std::shared_ptr<const Constant> MakeConstant(Tensor tensor);
// The elements of a constant value; a view without bytes if the value is not constant.
TensorView ConstantView(const Graph& graph, ValueId id);
// The bytes of a constant in the type in which it is stored, rounded along its summed axes.
std::vector<uint8_t> StoredConstant(const Value& value);
// A dense copy with the elements converted to another readable type.
Tensor ConvertTensor(const TensorView& tensor, ElementType type);

// The integers of a constant (i32 or i64) value; nothing if it is not one.
std::optional<std::vector<int64_t>> ConstantInts(const Graph& graph, ValueId id);
// The number of a constant with one element of a readable type; nothing if it is not one.
std::optional<double> ConstantScalar(const Graph& graph, ValueId id);

// The same where the number can be an immediate of a micro-program: it is exact as an f64.
std::optional<double> ImmediateOf(const Graph& graph, ValueId id);

// The elements of a shape, or nothing if an extent is negative or the product of those that are not
// zero too large to be a tensor (2^40 elements): strides of a shape that passes do not overflow.
std::optional<int64_t> CheckedElementCount(const Shape& shape);
// "1x3x224x224", "scalar" for rank 0.
std::string ShapeText(const Shape& shape);

}  // namespace dla::ir
