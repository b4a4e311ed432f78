// A tile as an engine sees it: every index of its hull can be read, clipped ones as the pad value.
//
// Where nothing is clipped the view points into the scratchpad; otherwise the tile is copied once
// into a buffer that has the pad value around it, so that inner loops need no bounds.
#pragma once

#include <cstdint>

#include "machine/program.h"
#include "runtime/kernels/workspace.h"
#include "runtime/tile.h"

namespace dla::runtime {

// Element (i_0, i_1, ...) relative to the tile's `first` lies at data + sum of i_a * stride_a, in
// elements of the operand's type; no alignment is promised.
struct View {
  const uint8_t* data = nullptr;
  AxisArray strides{};
};

View StageTile(const machine::OperandDesc& operand, const Tile& tile, const uint8_t* scratchpad,
               Reused<uint8_t>* buffer);

// The same view as dense f32, every element rounded to `read_as` (a float type).
// `overflows` grows by how many finite ones became infinities.
View StageRounded(const machine::OperandDesc& operand, const Tile& tile, const uint8_t* scratchpad,
                  Reused<uint8_t>* buffer, Reused<float>* values, int64_t* overflows);

// `count` elements of the operand's type as f32, rounded to the type that the array reads it as.
// Gives how many finite ones became infinities.
int64_t RoundToRead(const machine::OperandDesc& operand, const uint8_t* bytes, int64_t count,
                    float* values);

// How far, in elements, the view's pointer moves when dimension `dim` goes on by one.
int64_t StrideAlong(const machine::OperandDesc& operand, const AxisArray& strides, size_t dim);

// `number` in the operand type's bytes, saturated; returns how many.
int64_t EncodeScalar(ElementType type, double number, uint8_t* bytes);

}  // namespace dla::runtime
