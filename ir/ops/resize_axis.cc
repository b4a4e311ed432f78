#include "ir/ops/resize_axis.h"

#include <algorithm>
#include <cmath>

namespace dla::ir {
namespace {

int64_t Nearest(const std::string& mode, double x, int64_t input) {
  double rounded = std::floor(x);
  if (mode == "round_prefer_floor") rounded = std::ceil(x - 0.5);
  if (mode == "round_prefer_ceil") rounded = std::floor(x + 0.5);
  if (mode == "ceil") rounded = std::ceil(x);
  return static_cast<int64_t>(std::clamp(rounded, 0.0, static_cast<double>(input - 1)));
}

double Triangle(double x) { return std::max(0.0, 1.0 - std::fabs(x)); }

double Cubic(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0.0;
}

// Shares of the entries around x, those outside the input included.
struct Shares {
  int64_t first = 0;
  std::vector<double> values;
};

Shares SharesAt(const ResizeModes& modes, double x, double scale) {
  const bool cubic = modes.mode == "cubic";
  const double squeeze = modes.antialias ? std::min(scale, 1.0) : 1.0;
  const double reach = (cubic ? 2.0 : 1.0) / squeeze;
  Shares shares;
  shares.first = static_cast<int64_t>(std::floor(x - reach)) + 1;
  const int64_t last = static_cast<int64_t>(std::ceil(x + reach)) - 1;
  double sum = 0;
  for (int64_t i = shares.first; i <= last; ++i) {
    const double distance = (static_cast<double>(i) - x) * squeeze;
    shares.values.push_back(cubic ? Cubic(distance, modes.cubic_a) : Triangle(distance));
    sum += shares.values.back();
  }
  if (modes.antialias) {
    for (double& share : shares.values) share /= sum;
  }
  return shares;
}

}  // namespace

// Places decide which entry is the nearest, so that their last bit matters. Where sizes are given
// they are quotients of integers, rounded once. Where a scale is given they are computed in f32,
// the type of the scale: by a scale of 0.6, 1.5 / 0.6 is 2.5 there, but less in f64. ONNX Runtime's
// entries agree but for a few where its own f32 rounds another way.
double SourcePosition(const ResizeModes& modes, const ResizeAxis& axis, int64_t o) {
  const double in = static_cast<double>(axis.input), out = static_cast<double>(axis.output);
  const float x = static_cast<float>(o), scale = static_cast<float>(axis.scale);
  const std::string& mode = modes.coordinates;
  if (mode == "align_corners") {
    return axis.output == 1 ? 0 : static_cast<double>(o) * (in - 1) / (out - 1);
  }
  if (mode == "tf_crop_and_resize") {
    if (axis.output == 1) return 0.5 * (axis.roi_start + axis.roi_end) * (in - 1);
    return axis.roi_start * (in - 1) +
           static_cast<double>(o) * (axis.roi_end - axis.roi_start) * (in - 1) / (out - 1);
  }
  if (mode == "asymmetric") return axis.by_size ? static_cast<double>(o) * in / out : x / scale;
  if (mode == "tf_half_pixel_for_nn") {
    return axis.by_size ? static_cast<double>(2 * o + 1) * in / (2 * out) : (x + 0.5F) / scale;
  }
  if (mode == "pytorch_half_pixel" && axis.output == 1) return 0;
  if (axis.by_size) return (static_cast<double>(2 * o + 1) * in - out) / (2 * out);
  const float half_pixel = (x + 0.5F) / scale - 0.5F;
  if (mode != "half_pixel_symmetric") return half_pixel;
  const double adjustment = out / (axis.scale * in);
  return in / 2 * (1 - adjustment) + half_pixel;
}

std::vector<int64_t> NearestEntries(const ResizeModes& modes, const ResizeAxis& axis) {
  std::vector<int64_t> entries;
  for (int64_t o = 0; o < axis.output; ++o) {
    entries.push_back(Nearest(modes.nearest, SourcePosition(modes, axis, o), axis.input));
  }
  return entries;
}

std::vector<double> InterpolationMatrix(const ResizeModes& modes, const ResizeAxis& axis) {
  std::vector<double> matrix(Idx(axis.output * axis.input), 0.0);
  const std::vector<bool> outside = OutsideEntries(modes, axis);
  for (int64_t o = 0; o < axis.output; ++o) {
    if (outside[Idx(o)]) continue;
    const double x = SourcePosition(modes, axis, o);
    const Shares shares = SharesAt(modes, x, axis.scale);
    double sum = 0;
    for (size_t k = 0; k < shares.values.size(); ++k) {
      const int64_t at = shares.first + static_cast<int64_t>(k);
      const int64_t entry = std::clamp<int64_t>(at, 0, axis.input - 1);
      if (modes.exclude_outside && entry != at) continue;
      matrix[Idx(o * axis.input + entry)] += shares.values[k];
      sum += shares.values[k];
    }
    if (!modes.exclude_outside || sum == 0) continue;
    for (int64_t i = 0; i < axis.input; ++i) matrix[Idx(o * axis.input + i)] /= sum;
  }
  return matrix;
}

std::vector<bool> OutsideEntries(const ResizeModes& modes, const ResizeAxis& axis) {
  std::vector<bool> outside;
  for (int64_t o = 0; o < axis.output; ++o) {
    const double x = SourcePosition(modes, axis, o);
    outside.push_back(modes.coordinates == "tf_crop_and_resize" &&
                      (x < 0 || x > static_cast<double>(axis.input - 1)));
  }
  return outside;
}

}  // namespace dla::ir
