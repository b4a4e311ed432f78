#include "scheduler/search/methods.h"

#include <algorithm>
#include <limits>
#include <random>

#include "scheduler/block_candidates.h"
#include "scheduler/search/layer_cost.h"

namespace dla::scheduler {
namespace {

constexpr int64_t kDoesNotFit = std::numeric_limits<int64_t>::max();

size_t At(int64_t i) { return static_cast<size_t>(i); }

// Bytes of block vectors, given as indices into lists of sizes.
class VectorCost {
 public:
  VectorCost(const Layer& layer, const IdealMachine& machine)
      : machine_(machine),
        extent_(ExtentsOf(layer)),
        totals_(TotalsOf(layer)),
        rows_(Table(RowAxis(layer))),
        columns_(Table(ColumnAxis(layer))) {}

  // False if the tiles do not fit.
  bool TermsOf(const LayerSizes& b, ClassTerms* terms) const {
    const AxisEntry& rows = rows_[At((b[kDimR] - 1) * extent_[kDimE] + b[kDimE] - 1)];
    const AxisEntry& columns = columns_[At((b[kDimS] - 1) * extent_[kDimF] + b[kDimF] - 1)];
    const uint32_t cut = CutMask(extent_, b);
    const auto slots = [&](uint32_t dims) { return (cut & dims) != 0 ? 2 : 1; };
    const Room room = {
        slots(kWeightDims) * b[kDimG] * b[kDimM] * b[kDimC] * b[kDimR] * b[kDimS],
        slots(kInputDims) * b[kDimN] * b[kDimG] * b[kDimC] * rows.lines * columns.lines,
        slots(kOutputDims) * kAccumulatorBytes * b[kDimN] * b[kDimG] * b[kDimM] * b[kDimE] *
            b[kDimF]};
    if (!Fits(machine_, room)) return false;
    const auto count = [&](int d) { return CeilDiv(extent_[At(d)], b[At(d)]); };
    terms->input = extent_[kDimN] * extent_[kDimG] * extent_[kDimC] * rows.sum * columns.sum;
    terms->input_rolled = terms->input;
    terms->sigma = count(kDimN) * rows.count * columns.count;
    terms->m_count = count(kDimM);
    terms->rho = count(kDimC) * rows.tap_count * columns.tap_count;
    return true;
  }

  const LayerTotals& totals() const { return totals_; }
  const LayerSizes& extent() const { return extent_; }

 private:
  // Entry (tap - 1) * extent + block - 1.
  static std::vector<AxisEntry> Table(const WindowAxis& axis) { return AxisEntries(axis, true); }

  const IdealMachine& machine_;
  const LayerSizes extent_;
  const LayerTotals totals_;
  const std::vector<AxisEntry> rows_, columns_;
};

// Remembers the best vector seen.
struct Best {
  LayerOptimum found;
  int stationary = 0;
  bool any = false;

  // The bytes of one class, or kDoesNotFit.
  int64_t See(const VectorCost& cost, const LayerSizes& block, int order_class) {
    ++found.points;
    ClassTerms terms;
    if (!cost.TermsOf(block, &terms)) return kDoesNotFit;
    const int64_t bytes = BytesOfClass(cost.totals(), terms, order_class);
    Keep(bytes, block, order_class);
    return bytes;
  }

  int64_t SeeAll(const VectorCost& cost, const LayerSizes& block) {
    found.points += 3;
    ClassTerms terms;
    if (!cost.TermsOf(block, &terms)) return kDoesNotFit;
    const ClassCost least = LeastOfClasses(cost.totals(), terms);
    Keep(least.bytes, block, least.stationary);
    return least.bytes;
  }

  void Keep(int64_t bytes, const LayerSizes& block, int order_class) {
    if (any && bytes >= found.bytes) return;
    found.bytes = bytes;
    found.mapping.block = block;
    stationary = order_class;
    any = true;
  }

  std::optional<LayerOptimum> Result(const VectorCost& cost) const {
    if (!any) return std::nullopt;
    LayerOptimum result = found;
    result.mapping.order = ClassOrder(CutMask(cost.extent(), found.mapping.block), stationary, -1);
    return result;
  }
};

class GridSearch {
 public:
  GridSearch(const Layer& layer, const IdealMachine& machine, Grid grid, std::string_view nest,
             Exit exit)
      : cost_(layer, machine), exit_(exit) {
    constexpr std::string_view kLetters = "NGMCEFRS";
    block_ = cost_.extent();
    for (const char letter : nest) {
      const auto d = static_cast<int>(kLetters.find(letter));
      const int64_t extent = cost_.extent()[At(d)];
      std::vector<int64_t> sizes =
          grid == Grid::kEveryInteger ? AllSizes(extent) : CriticalSizes(extent);
      if (grid == Grid::kArray && (d == kDimM || d == kDimC)) {
        const int64_t side = d == kDimM ? machine.array_cols : machine.array_rows;
        sizes.clear();
        for (int64_t size = side; size < extent; size += side) sizes.push_back(size);
        sizes.push_back(extent);
      }
      loops_.emplace_back(d, std::move(sizes));
    }
  }

  std::optional<LayerOptimum> Run() {
    if (exit_ == Exit::kNever) {
      order_class_ = -1;
      Visit(0);
    } else {
      for (order_class_ = 0; order_class_ < 3; ++order_class_) Visit(0);
    }
    return best_.Result(cost_);
  }

 private:
  // The least bytes found inside this loop, sizes increasing.
  int64_t Visit(size_t level) {
    if (level == loops_.size()) {
      return order_class_ < 0 ? best_.SeeAll(cost_, block_)
                              : best_.See(cost_, block_, order_class_);
    }
    const auto& [d, sizes] = loops_[level];
    const bool exits =
        exit_ != Exit::kNever && (exit_ != Exit::kNotFewerInnermost || level + 1 == loops_.size());
    int64_t least = kDoesNotFit, before = kDoesNotFit;
    for (const int64_t size : sizes) {
      block_[At(d)] = size;
      const int64_t bytes = Visit(level + 1);
      least = std::min(least, bytes);
      // Nothing to compare with before the first size that fits.
      const bool worse = exit_ == Exit::kOnlyWhenMore ? bytes > before : bytes >= before;
      if (exits && before != kDoesNotFit && worse) break;
      before = bytes;
    }
    return least;
  }

  VectorCost cost_;
  const Exit exit_;
  std::vector<std::pair<int, std::vector<int64_t>>> loops_;  // dimension, sizes
  LayerSizes block_{};
  int order_class_ = -1;  // -1: the best of all
  Best best_;
};

}  // namespace

std::optional<LayerOptimum> SearchGrid(const Layer& layer, const IdealMachine& machine, Grid grid,
                                       std::string_view nest, Exit exit) {
  return GridSearch(layer, machine, grid, nest, exit).Run();
}

std::optional<LayerOptimum> SearchExhaustively(const Layer& layer, const IdealMachine& machine) {
  return SearchGrid(layer, machine, Grid::kEven, "NGMCEFRS", Exit::kNever);
}

std::optional<LayerOptimum> SearchRandomly(const Layer& layer, const IdealMachine& machine,
                                           int64_t samples, uint32_t seed) {
  const VectorCost cost(layer, machine);
  std::array<std::vector<int64_t>, kLayerDims> sizes;
  for (size_t d = 0; d < kLayerDims; ++d) sizes[d] = CriticalSizes(cost.extent()[d]);
  std::mt19937 random(seed);
  Best best;
  LayerSizes block{};
  for (int64_t i = 0; i < samples; ++i) {
    for (size_t d = 0; d < kLayerDims; ++d) block[d] = sizes[d][random() % sizes[d].size()];
    best.SeeAll(cost, block);
  }
  return best.Result(cost);
}

}  // namespace dla::scheduler
