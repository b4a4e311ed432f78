// Windows that slide over one to three spatial axes: what convolution and pooling share.
#pragma once

#include <vector>

#include "ir/kernels/contraction.h"
#include "ir/op.h"

namespace dla::ir {

// Everything resolved: automatic padding, defaults, ceil_mode. One entry a spatial axis.
struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads_begin, pads_end, output;
};

// The window of a node over the spatial extents `input`; reads strides, dilations, pads, auto_pad
// and ceil_mode.
Result<Window> ResolveWindow(const Node& node, const std::vector<int64_t>& input,
                             const std::vector<int64_t>& kernel);

// The attributes of the canonical spelling: strides, dilations, pads (begin..., end...).
AttributeMap WindowAttributes(const Window& window);

// The extents of a tensor behind batch and channels.
inline std::vector<int64_t> Spatial(const Shape& shape) { return {shape.begin() + 2, shape.end()}; }

// Fails unless there are one to three spatial axes.
Status CheckSpatialRank(const Shape& input);

// The window's extents; the last spatial axis is axis 2 of the ConvShape.
void FillWindow(const Window& window, const std::vector<int64_t>& input, ConvShape* shape);

}  // namespace dla::ir
