#include "scheduler/footprint.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "support/checked.h"

namespace dla::scheduler {

Footprint::Footprint(const ir::Operand& operand, int64_t element_bytes, bool packed,
                     const machine::Dram& dram, uint32_t gathered)
    : element_bytes_(element_bytes), burst_bytes_(dram.burst_bytes), packed_(packed) {
  by_stride_.resize(operand.axes.size());
  std::iota(by_stride_.begin(), by_stride_.end(), size_t{0});
  const auto is_gathered = [&](size_t axis) { return (gathered >> axis & 1U) != 0; };
  std::stable_sort(by_stride_.begin(), by_stride_.end(), [&](size_t a, size_t b) {
    return std::pair(is_gathered(a), operand.axes[a].stride) <
           std::pair(is_gathered(b), operand.axes[b].stride);
  });
  for (const size_t axis : by_stride_) {
    strides_.push_back(is_gathered(axis) ? 0 : operand.axes[axis].stride);
  }
}

int64_t Footprint::Rounded(int64_t run) const {
  return RoundUp(run * element_bytes_, burst_bytes_);
}

int64_t Footprint::BusBytes(std::span<const int64_t> lengths) const {
  int64_t run = 1;
  int64_t runs = 1;
  for (size_t i = 0; i < by_stride_.size(); ++i) {
    const int64_t length = lengths[by_stride_[i]];
    if (length == 1) continue;
    if (packed_ || (runs == 1 && strides_[i] == run)) {
      run *= length;
    } else {
      runs *= length;
    }
  }
  return runs * Rounded(run);
}

int64_t Footprint::TotalBusBytes(std::span<const AxisLengths* const> axes) const {
  if (burst_bytes_ == 1) {
    int64_t elements = 1;
    for (const AxisLengths* axis : axes) elements *= axis->sum;
    return elements * element_bytes_;
  }
  return packed_ ? PackedSum(axes, 0, 1) : SumFrom(axes, 0, 1);
}

// The axes from `position` on (by stride), inside a run of `run` elements: while an axis continues
// the run, each of its lengths is a case of its own; once one does not, all further axes only
// repeat the run.
int64_t Footprint::SumFrom(std::span<const AxisLengths* const> axes, size_t position,
                           int64_t run) const {
  if (position == by_stride_.size()) return Rounded(run);
  const AxisLengths& axis = *axes[by_stride_[position]];
  int64_t total = 0;
  int64_t repeats = 0;  // of the run, by lengths of this axis that do not continue it
  for (const AxisLengths::Entry& entry : axis.entries) {
    if (entry.length == 0) continue;
    if (entry.length == 1) {
      total += entry.count * SumFrom(axes, position + 1, run);
    } else if (strides_[position] == run) {
      total += entry.count * SumFrom(axes, position + 1, run * entry.length);
    } else {
      repeats += entry.count * entry.length;
    }
  }
  if (repeats > 0) {
    for (size_t p = position + 1; p < by_stride_.size(); ++p) {
      repeats *= axes[by_stride_[p]]->sum;
    }
    total += repeats * Rounded(run);
  }
  return total;
}

int64_t Footprint::PackedSum(std::span<const AxisLengths* const> axes, size_t axis,
                             int64_t run) const {
  if (axis == axes.size()) return Rounded(run);
  int64_t total = 0;
  for (const AxisLengths::Entry& entry : axes[axis]->entries) {
    if (entry.length > 0) total += entry.count * PackedSum(axes, axis + 1, run * entry.length);
  }
  return total;
}

}  // namespace dla::scheduler
