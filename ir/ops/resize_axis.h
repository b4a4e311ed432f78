// How one axis is resized: which input entries each output entry takes, and how much of them.
#pragma once

#include <string>
#include <vector>

#include "ir/tensor.h"

namespace dla::ir {

struct ResizeModes {
  std::string mode = "nearest", coordinates = "half_pixel", nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  bool exclude_outside = false, antialias = false;
};

struct ResizeAxis {
  int64_t input = 1, output = 1;
  double scale = 1;
  bool by_size = false;               // the sizes were given: the scale is exactly output / input
  double roi_start = 0, roi_end = 1;  // of tf_crop_and_resize

  bool changes(const ResizeModes& modes) const {
    return output != input || modes.coordinates == "tf_crop_and_resize" || scale != 1;
  }
};

// Where output entry o stands in the input.
double SourcePosition(const ResizeModes& modes, const ResizeAxis& axis, int64_t o);
// Mode nearest: the input entry of each output entry.
std::vector<int64_t> NearestEntries(const ResizeModes& modes, const ResizeAxis& axis);
// Other modes: the share of each input entry in each output entry, [output, input].
std::vector<double> InterpolationMatrix(const ResizeModes& modes, const ResizeAxis& axis);
// tf_crop_and_resize: output entries that stand outside the input.
std::vector<bool> OutsideEntries(const ResizeModes& modes, const ResizeAxis& axis);

}  // namespace dla::ir
