#include "scheduler/exact/size_tree.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "scheduler/axis_lengths.h"
#include "scheduler/block_candidates.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

constexpr int64_t kMostSizes = 32768;    // of a dimension
constexpr int64_t kMostPairs = 4096;     // of the dimensions of one axis
constexpr int64_t kMostTiles = 1 << 21;  // of all these pairs together

// At most `most` of them, in geometric steps; both ends stay.
std::vector<int64_t> ThinnedTo(const std::vector<int64_t>& sizes, int64_t most) {
  if (static_cast<int64_t>(sizes.size()) <= most) return sizes;
  std::vector<int64_t> kept;
  const double ratio = std::pow(static_cast<double>(sizes.back()),
                                1.2 / static_cast<double>(std::max<int64_t>(most, 2)));
  double next = 1;
  for (const int64_t size : sizes) {
    if (static_cast<double>(size) < next && size != sizes.back()) continue;
    kept.push_back(size);
    next = static_cast<double>(size) * ratio;
  }
  return kept;
}

std::vector<int64_t> Sorted(std::vector<int64_t> sizes) {
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

// Multiples of the array's sides, and powers of two below them.
std::vector<int64_t> StridedSizes(int64_t extent, const machine::Target& target) {
  std::vector<int64_t> sizes = {extent};
  for (const int64_t side : {target.array.rows, target.array.cols}) {
    for (int64_t size = 1; size < std::min(side, extent); size *= 2) sizes.push_back(size);
    for (int64_t size = side; size < extent; size += side) sizes.push_back(size);
  }
  return Sorted(std::move(sizes));
}

std::vector<int64_t> SizesOfSpace(int64_t extent, const machine::Target& target, SizeSpace space) {
  if (space == SizeSpace::kEven) return CriticalSizes(extent);
  if (space == SizeSpace::kStrided) return StridedSizes(extent, target);
  std::vector<int64_t> sizes;
  if (extent <= kMostSizes) {
    sizes.resize(static_cast<size_t>(extent));
    std::iota(sizes.begin(), sizes.end(), int64_t{1});
    return sizes;
  }
  sizes = CriticalSizes(extent);
  for (const int64_t side : {target.array.rows, target.array.cols, target.vector.lanes}) {
    for (int64_t size = side; size < extent && size <= 64 * side; size += side) {
      sizes.push_back(size);
    }
  }
  return Sorted(std::move(sizes));
}

int64_t Blocks(int64_t extent, const std::vector<int64_t>& sizes) {
  int64_t blocks = 0;
  for (const int64_t size : sizes) blocks += CeilDiv(extent, size);
  return blocks;
}

// Thins the sizes of the dimensions that meet on the axis until all pairs can be tabled; true if
// that took any away.
bool ThinAxis(const ir::Nest& nest, const ir::Axis& axis, std::vector<std::vector<int64_t>>* of) {
  bool thinned = false;
  while (true) {
    int64_t pairs = 1;
    int64_t tiles = 1;
    size_t longest = 0;
    size_t most = 0;
    for (const ir::Term& term : axis.terms) {
      const size_t d = static_cast<size_t>(term.dimension);
      pairs *= static_cast<int64_t>((*of)[d].size());
      tiles *= Blocks(nest.dimensions[d].extent, (*of)[d]);
      if ((*of)[d].size() > most) most = (*of)[d].size(), longest = d;
    }
    if (axis.terms.size() < 2 || most <= 1 || (pairs <= kMostPairs && tiles <= kMostTiles)) {
      return thinned;
    }
    std::vector<int64_t>& sizes = (*of)[longest];
    // Small blocks of a long dimension make the most tiles.
    if (tiles > kMostTiles) sizes.erase(sizes.begin());
    sizes = ThinnedTo(sizes, std::max<int64_t>(static_cast<int64_t>(sizes.size()) * 3 / 4, 1));
    thinned = true;
  }
}

}  // namespace

SizeTree::SizeTree(int64_t extent, std::vector<int64_t> sizes)
    : extent_(extent), sizes_(std::move(sizes)) {
  nodes_.emplace_back();
  if (sizes_.size() < 2) {
    Build(kRoot, 0, sizes_.size());
    return;
  }
  nodes_[0] = {.lo = sizes_.front(), .hi = extent, .least_count = 1, .left = 1, .right = 2};
  nodes_.resize(3);
  Build(1, sizes_.size() - 1, sizes_.size());
  Build(2, 0, sizes_.size() - 1);
}

// Where [begin, end) parts: the first size of the upper half.
size_t SizeTree::Middle(size_t begin, size_t end) const {
  const auto count = [&](size_t i) { return CeilDiv(extent_, sizes_[i]); };
  if (count(begin) == count(end - 1)) return begin + std::max<size_t>((end - begin) / 8, 1);
  const double middle =
      std::sqrt(static_cast<double>(sizes_[begin]) * static_cast<double>(sizes_[end - 1]));
  size_t best = end - 1;
  double distance = INFINITY;
  for (size_t i = begin + 1; i < end; ++i) {
    if (count(i) == count(i - 1)) continue;
    const double d = std::abs(std::log(static_cast<double>(sizes_[i]) / middle));
    if (d < distance) distance = d, best = i;
  }
  return best;
}

void SizeTree::Build(int at, size_t begin, size_t end) {
  const size_t i = static_cast<size_t>(at);
  nodes_[i] = {
      .lo = sizes_[begin], .hi = sizes_[end - 1], .least_count = CeilDiv(extent_, sizes_[end - 1])};
  if (end - begin == 1) return;
  const size_t middle = Middle(begin, end);
  const int left = static_cast<int>(nodes_.size());
  nodes_.resize(nodes_.size() + 2);
  nodes_[i].left = left;
  nodes_[i].right = left + 1;
  Build(left, begin, middle);
  Build(left + 1, middle, end);
}

int SizeTree::Find(int64_t size) const {
  int at = kRoot;
  while (!node(at).IsPoint()) {
    const SizeNode& left = node(node(at).left);
    at = left.lo <= size && size <= left.hi ? node(at).left : node(at).right;
  }
  return at;
}

SearchSizes SizesOf(const ir::Nest& nest, const machine::Target& target, SizeSpace space) {
  SearchSizes sizes;
  const bool contracts = nest.anchor == ir::Anchor::kContraction;
  for (size_t d = 0; d < nest.dimensions.size(); ++d) {
    const int dim = static_cast<int>(d);
    const int64_t extent = nest.dimensions[d].extent;
    const bool reduces = nest.IsReduction(dim) || (nest.reduce_mask >> d & 1U) != 0;
    if (dim == nest.pass_dimension) {
      sizes.of.push_back({1});
    } else if (!contracts && reduces && nest.pass_dimension < 0) {
      sizes.of.push_back({extent});
    } else {
      const std::vector<int64_t> of_space = SizesOfSpace(extent, target, space);
      sizes.of.push_back(ThinnedTo(of_space, kMostSizes));
      const size_t wanted =
          space == SizeSpace::kAll ? static_cast<size_t>(extent) : of_space.size();
      sizes.all = sizes.all && sizes.of.back().size() == wanted;
    }
  }
  for (const ir::Operand& operand : nest.operands) {
    for (const ir::Axis& axis : operand.axes) {
      if (ThinAxis(nest, axis, &sizes.of)) sizes.all = false;
    }
  }
  return sizes;
}

AxisTable::AxisTable(const ir::Nest& nest, const ir::Axis& axis, const std::vector<SizeTree>& trees,
                     int64_t element_bytes, int64_t burst_bytes) {
  size_t size = 1;
  std::vector<int64_t> block(nest.dimensions.size(), 1);
  for (const ir::Term& term : axis.terms) {
    terms_.push_back({term.dimension, size});
    size *= static_cast<size_t>(trees[static_cast<size_t>(term.dimension)].size());
  }
  entries_.resize(size);
  std::vector<int64_t> first(nest.dimensions.size(), 0);
  std::vector<int64_t> last(nest.dimensions.size(), 0);
  for (size_t i = size; i-- > 0;) {
    AxisLeast& least = entries_[i];
    bool is_point = true;
    for (const Term& term : terms_) {
      const SizeTree& tree = trees[static_cast<size_t>(term.dimension)];
      const int at = static_cast<int>(i / term.stride % static_cast<size_t>(tree.size()));
      const SizeNode& node = tree.node(at);
      block[static_cast<size_t>(term.dimension)] = node.lo;
      last[static_cast<size_t>(term.dimension)] = node.least_count - 1;
      if (node.IsPoint()) continue;
      const AxisLeast& a = entries_[i + static_cast<size_t>(node.left - at) * term.stride];
      const AxisLeast& b = entries_[i + static_cast<size_t>(node.right - at) * term.stride];
      least = {std::min(a.sum, b.sum),         std::min(a.present, b.present),
               std::min(a.longest, b.longest), std::min(a.first, b.first),
               std::min(a.last, b.last),       std::min(a.rounded, b.rounded)};
      is_point = false;
      break;
    }
    if (!is_point) continue;
    const AxisLengths lengths = LengthsOf(nest, axis, block, -1);
    least = {.sum = lengths.sum,
             .present = lengths.present,
             .longest = lengths.longest,
             .first = AxisInterval(nest, axis, block, first).length(),
             .last = AxisInterval(nest, axis, block, last).length()};
    for (const AxisLengths::Entry& entry : lengths.entries) {
      least.rounded += entry.count * RoundUp(entry.length * element_bytes, burst_bytes);
    }
  }
}

}  // namespace dla::scheduler
