// Arithmetic of views: where the elements of a value lie if it is a view of another.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace dla::ir {

// Strides of a tensor of shape `from`, seen with shape `to` (the same elements in row-major
// order); nothing if no strides do.
std::optional<Shape> ReshapeStrides(const Shape& from, const Shape& strides, const Shape& to);

// The storage of a kView node's result as a view of its operand, and the other way round: the
// storage of the operand so that the node's result lies at `output`. Concat has neither (see
// ConcatPart); slices have no way back.
std::optional<Storage> ForwardView(const Node& node, const Storage& input, const Shape& input_shape,
                                   const Shape& output_shape);
std::optional<Storage> BackwardView(const Node& node, const Storage& output,
                                    const Shape& output_shape, const Shape& input_shape);

// The part of a concatenation's storage that begins at entry `start` of `axis`.
Storage ConcatPart(const Storage& output, int64_t axis, int64_t start);

// The part of an Interleave's storage that is its operand k.
Storage InterleavePart(const Node& node, const Storage& output, int k);

}  // namespace dla::ir
