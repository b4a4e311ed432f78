#include "scheduler/block_candidates.h"

#include <algorithm>

#include "scheduler/transfers.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

// At most this many sizes a dimension; beyond it they are thinned out in geometric steps.
constexpr size_t kMaxSizes = 40;

std::vector<int64_t> Thinned(const std::vector<int64_t>& sizes, size_t most) {
  if (sizes.size() <= most) return sizes;
  std::vector<int64_t> kept;
  double next = 1;
  const double ratio = 1.0 + 4.0 / static_cast<double>(most);
  for (const int64_t size : sizes) {
    if (static_cast<double>(size) < next && size != sizes.back()) continue;
    kept.push_back(size);
    next = static_cast<double>(size) * ratio;
  }
  return kept;
}

// A window dimension: it shares an axis of some operand with another dimension and is not in the
// output (kernel rows and columns).
bool IsWindow(const ir::Nest& nest, int d) {
  if (!nest.IsReduction(d)) return false;
  for (const ir::Operand& operand : nest.operands) {
    for (const ir::Axis& axis : operand.axes) {
      if (axis.terms.size() < 2) continue;
      for (const ir::Term& term : axis.terms) {
        if (term.dimension == d) return true;
      }
    }
  }
  return false;
}

}  // namespace

std::vector<int64_t> CriticalSizes(int64_t extent) {
  std::vector<int64_t> sizes;
  // Successive distinct values of ceil(extent / n), from the largest down.
  for (int64_t n = 1; n <= extent;) {
    const int64_t size = CeilDiv(extent, n);
    sizes.push_back(size);
    if (size == 1) break;
    n = CeilDiv(extent, size - 1);
  }
  std::reverse(sizes.begin(), sizes.end());
  return sizes;
}

std::vector<std::vector<int64_t>> BlockCandidates(const ir::Nest& nest,
                                                  const machine::Target& target, bool cut_kernel) {
  const bool contracts = nest.anchor == ir::Anchor::kContraction;
  const uint32_t channels = contracts ? DependenceMask(nest, ir::Nest::kWeight) &
                                            DependenceMask(nest, nest.output()) &
                                            ~DependenceMask(nest, ir::Nest::kInput)
                                      : 0;
  std::vector<std::vector<int64_t>> candidates;
  for (size_t d = 0; d < nest.dimensions.size(); ++d) {
    const int64_t extent = nest.dimensions[d].extent;
    const uint32_t bit = uint32_t{1} << d;
    const int dim = static_cast<int>(d);
    const bool reduces = nest.IsReduction(dim) || (nest.reduce_mask & bit) != 0;
    if (dim == nest.pass_dimension) {
      candidates.push_back({1});
      continue;
    }
    const bool stays_whole = !contracts && reduces && nest.pass_dimension < 0;
    if (stays_whole || (contracts && !cut_kernel && IsWindow(nest, dim))) {
      candidates.push_back({extent});
      continue;
    }
    std::vector<int64_t> sizes = Thinned(CriticalSizes(extent), kMaxSizes);
    if (channels & bit) {
      for (int64_t size = target.array.cols; size < extent; size += target.array.cols) {
        if (size <= 8 * target.array.cols) sizes.push_back(size);
      }
      std::sort(sizes.begin(), sizes.end());
      sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    }
    candidates.push_back(std::move(sizes));
  }
  return candidates;
}

}  // namespace dla::scheduler
