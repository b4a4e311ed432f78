// Best first over block vectors: the vectors with the least bounds are walked in every order of
// their loops until the next bound is no better than what was found. Rules: docs/MAPPING.md.
#include <limits>
#include <tuple>

#include "scheduler/block_candidates.h"
#include "scheduler/search/layer_cost.h"
#include "scheduler/search/layer_optimum.h"
#include "scheduler/search/step_walk.h"

namespace dla::scheduler {
namespace {

constexpr int64_t kInfinite = int64_t{1} << 50;  // times the bytes of a cycle does not overflow
// Vectors collected by one enumeration. More cost memory, fewer cost another enumeration.
constexpr size_t kBatch = 64;

int64_t Within5Percent(int64_t cycles) { return cycles * 105 / 100; }

size_t At(int64_t i) { return static_cast<size_t>(i); }

// A vector of block sizes with bounds over all orders.
struct Vector {
  int64_t key = 0;  // bound of what is minimised
  LayerSizes block{};
  bool output_single = false;

  bool operator<(const Vector& other) const {
    return std::tie(key, block) < std::tie(other.key, other.block);
  }
};

// An axis entry with what bounds need in addition.
struct WindowChoice {
  AxisEntry entry;
  int64_t first_lines = 0;  // of the first tile
  int64_t last_block = 1;
};

struct ChannelChoice {  // a block of output channels
  int64_t block = 1, count = 1, last = 1;
  int64_t folds = 1;  // of all blocks together
};

class CycleSearch {
 public:
  CycleSearch(const Layer& layer, const IdealMachine& machine, Space space)
      : l_(layer),
        m_(machine),
        extent_(ExtentsOf(layer)),
        totals_(TotalsOf(layer)),
        space_(space),
        rolls_(Rolls(space)),
        walk_(layer, machine),
        rows_(Windows(RowAxis(layer))),
        columns_(Windows(ColumnAxis(layer))),
        batches_(Sizes(layer.N)),
        groups_(Sizes(layer.G)),
        depths_(Sizes(layer.C)),
        channels_(Channels()) {}

  std::optional<LatencyOptimum> Run() {
    minimise_bytes_ = false;
    cycles_limit_ = bytes_limit_ = kInfinite;
    best_ = {};
    if (!Minimise()) return std::nullopt;
    LatencyOptimum result;
    result.least_cycles = best_;
    minimise_bytes_ = true;
    cycles_limit_ = Within5Percent(best_.cycles);
    bytes_limit_ = best_.bytes;  // what was found is one that qualifies
    Minimise();
    result.least_bytes = best_;
    result.least_bytes.points = points_;
    result.least_bytes.walked = walked_;
    return result;
  }

 private:
  std::vector<WindowChoice> Windows(const WindowAxis& axis) const {
    std::vector<WindowChoice> choices;
    for (const AxisEntry& entry : AxisEntries(axis, rolls_)) {
      const LineRange first = TileLines(axis, 0, entry.block, 0, entry.tap_block);
      choices.push_back(
          {entry, first.end - first.begin, axis.extent - (entry.count - 1) * entry.block});
    }
    std::sort(choices.begin(), choices.end(), [&](const WindowChoice& a, const WindowChoice& b) {
      const auto key = [&](const WindowChoice& w) {
        return std::tuple(Lines(w.entry), w.entry.tap_count, w.entry.tap_block, w.entry.block);
      };
      return key(a) < key(b);
    });
    return choices;
  }

  std::vector<int64_t> Sizes(int64_t extent) const {
    return space_ == Space::kAll ? AllSizes(extent) : CriticalSizes(extent);
  }

  // Folds round up, so that uneven blocks can be better than even ones; fewest folds first.
  std::vector<ChannelChoice> Channels() const {
    std::vector<int64_t> sizes = Sizes(l_.M);
    if (space_ == Space::kS0Folds || space_ == Space::kS1) {
      for (int64_t size = m_.array_cols; size < l_.M; size += m_.array_cols) sizes.push_back(size);
    }
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    std::vector<ChannelChoice> choices;
    for (const int64_t size : sizes) {
      ChannelChoice c{.block = size, .count = CeilDiv(l_.M, size)};
      c.last = l_.M - (c.count - 1) * size;
      c.folds = (c.count - 1) * CeilDiv(size, m_.array_cols) + CeilDiv(c.last, m_.array_cols);
      choices.push_back(c);
    }
    std::sort(choices.begin(), choices.end(), [](const auto& a, const auto& b) {
      return std::tuple(a.folds, a.count, a.block) < std::tuple(b.folds, b.count, b.block);
    });
    return choices;
  }

  int64_t Lines(const AxisEntry& entry) const { return rolls_ ? entry.least() : entry.sum; }

  // Best first in batches; false if nothing fits.
  bool Minimise() {
    bool found = minimise_bytes_;
    after_ = {.key = -1};
    for (;;) {
      heap_.clear();
      Enumerate();
      std::sort_heap(heap_.begin(), heap_.end());
      for (const Vector& vector : heap_) {
        if (vector.key >= BestKey()) return true;
        found |= TryOrders(vector);
      }
      if (heap_.size() < kBatch) return found;
      after_ = heap_.back();
    }
  }

  int64_t BestKey() const { return minimise_bytes_ ? bytes_limit_ : cycles_limit_; }

  // What a vector's bounds must stay below to be of interest now.
  int64_t CyclesBelow() const {
    if (minimise_bytes_) return cycles_limit_ + 1;
    return heap_.size() < kBatch ? cycles_limit_ : std::min(cycles_limit_, heap_[0].key + 1);
  }
  int64_t BytesBelow() const {
    if (!minimise_bytes_) return kInfinite;
    return heap_.size() < kBatch ? bytes_limit_ : std::min(bytes_limit_, heap_[0].key + 1);
  }

  // No vector with these least bytes and least compute cycles is of interest.
  bool Hopeless(int64_t bytes, int64_t compute) const {
    return bytes >= bytes_below_ || compute >= cycles_below_ ||
           bytes > cycles_below_ * m_.bytes_per_cycle;
  }

  void Enumerate() {
    cycles_below_ = CyclesBelow(), bytes_below_ = BytesBelow();
    planes_ = l_.N * l_.G * l_.C;
    macs_depth_ = l_.C * l_.R * l_.S;
    skew_ = m_.array_rows + m_.array_cols - 2;
    const int64_t fixed = totals_.weight + totals_.output;
    const int64_t folds =
        l_.G * CeilDiv(l_.N * l_.E * l_.F, m_.array_rows) * CeilDiv(l_.M, m_.array_cols);
    const int64_t fewest_columns = Lines(columns_.front().entry);
    for (const WindowChoice& r : rows_) {
      const int64_t least = planes_ * Lines(r.entry);
      if (Hopeless(fixed + least * fewest_columns, 0)) break;
      if (Hopeless(0, folds * (macs_depth_ + skew_ * r.entry.tap_count))) continue;
      for (const WindowChoice& c : columns_) {
        if (Hopeless(fixed + least * Lines(c.entry), 0)) break;
        VisitWindow(r, c);
      }
    }
  }

  void VisitWindow(const WindowChoice& r, const WindowChoice& c) {
    input_ = planes_ * r.entry.sum * c.entry.sum;
    input_rolled_ = input_;
    if (rolls_) {
      input_rolled_ =
          planes_ * std::min(r.entry.rolled * c.entry.sum, r.entry.sum * c.entry.rolled);
    }
    taps_ = r.entry.tap_count * c.entry.tap_count;
    windows_ = r.entry.count * c.entry.count;
    for (const int64_t b_n : batches_) {
      const int64_t folds = PixelFolds(r, c, b_n);
      if (Hopeless(0, l_.G * folds * channels_.front().folds * (macs_depth_ + skew_ * taps_))) {
        continue;
      }
      VisitBatch(r, c, b_n, folds);
    }
  }

  // Rows of the array that all tiles' pixels take, in folds.
  int64_t PixelFolds(const WindowChoice& r, const WindowChoice& c, int64_t b_n) const {
    const int64_t n_count = CeilDiv(l_.N, b_n);
    const int64_t n_last = l_.N - (n_count - 1) * b_n;
    const auto plane = [&](int64_t n) {
      const auto folds = [&](int64_t e, int64_t f) { return CeilDiv(n * e * f, m_.array_rows); };
      const int64_t e = r.entry.block, f = c.entry.block;
      const int64_t e_full = r.entry.count - 1, f_full = c.entry.count - 1;
      return e_full * f_full * folds(e, f) + e_full * folds(e, c.last_block) +
             f_full * folds(r.last_block, f) + folds(r.last_block, c.last_block);
    };
    return n_count == 1 ? plane(b_n) : (n_count - 1) * plane(b_n) + plane(n_last);
  }

  void VisitBatch(const WindowChoice& r, const WindowChoice& c, int64_t b_n, int64_t folds) {
    const int64_t sigma = CeilDiv(l_.N, b_n) * windows_;
    for (auto g = groups_.rbegin(); g != groups_.rend(); ++g) {
      for (auto d = depths_.rbegin(); d != depths_.rend(); ++d) {
        const int64_t rho = CeilDiv(l_.C, *d) * taps_;
        const int64_t per_fold = l_.G * folds * (macs_depth_ + skew_ * rho);
        const ClassCost least = LeastOfClasses(totals_, {input_, input_rolled_, sigma, 1, rho});
        // Both rise with the blocks of input channels.
        if (Hopeless(least.bytes, per_fold * channels_.front().folds)) break;
        VisitDepth(
            r, c,
            {b_n, *g, 0, *d, r.entry.block, c.entry.block, r.entry.tap_block, c.entry.tap_block},
            sigma, rho, per_fold);
      }
    }
  }

  void VisitDepth(const WindowChoice& r, const WindowChoice& c, LayerSizes block, int64_t sigma,
                  int64_t rho, int64_t per_fold) {
    const bool g_cut = block[kDimG] < l_.G, n_cut = block[kDimN] < l_.N;
    const bool inputs_cut = block[kDimC] < l_.C || g_cut || taps_ > 1;
    const bool outputs_cut = n_cut || g_cut || windows_ > 1;
    const int64_t planes = block[kDimN] * block[kDimG] * block[kDimC];
    Room room;
    room.input =
        planes * r.entry.lines * c.entry.lines * (inputs_cut || n_cut || windows_ > 1 ? 2 : 1);
    if (!Fits(m_, room)) return;
    const int64_t weight_unit = block[kDimG] * block[kDimC] * block[kDimR] * block[kDimS];
    const int64_t pixels = block[kDimN] * block[kDimE] * block[kDimF];
    const int64_t first_input = planes * r.first_lines * c.first_lines;
    const int64_t last_pixels =
        LastSize(kDimN, block) * LastSize(kDimG, block) * r.last_block * c.last_block;
    for (const ChannelChoice& m : channels_) {
      const int64_t compute = per_fold * m.folds;
      if (Hopeless(0, compute)) break;
      ++points_;
      const bool m_cut = m.count > 1;
      room.weight = weight_unit * m.block * (inputs_cut || m_cut ? 2 : 1);
      const int64_t output = kAccumulatorBytes * block[kDimG] * pixels * m.block;
      const bool moves = outputs_cut || m_cut;
      room.output = moves ? 2 * output : output;
      bool single = false;
      if (!Fits(m_, room)) {
        if (!rolls_ || !moves) continue;
        room.output = output;
        single = true;
        if (!Fits(m_, room)) continue;
      }
      const ClassCost least = LeastOfClasses(totals_, {input_, input_rolled_, sigma, m.count, rho});
      // A single output buffer: the stores wait for the array and the array for the stores.
      const int64_t stores = single ? totals_.output : last_pixels * m.last;
      const int64_t cycles =
          std::max(CeilDiv(weight_unit * m.block + first_input, m_.bytes_per_cycle) + compute +
                       CeilDiv(stores, m_.bytes_per_cycle),
                   CeilDiv(least.bytes, m_.bytes_per_cycle));
      if (cycles >= cycles_below_ || least.bytes >= bytes_below_) continue;
      block[kDimM] = m.block;
      Collect({minimise_bytes_ ? least.bytes : cycles, block, single});
    }
  }

  int64_t LastSize(int d, const LayerSizes& block) const {
    return extent_[At(d)] - (CeilDiv(extent_[At(d)], block[At(d)]) - 1) * block[At(d)];
  }

  // Keeps the kBatch least vectors after the last batch.
  void Collect(const Vector& vector) {
    if (!(after_ < vector)) return;
    if (heap_.size() == kBatch) {
      if (!(vector < heap_[0])) return;
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
    }
    heap_.push_back(vector);
    std::push_heap(heap_.begin(), heap_.end());
    cycles_below_ = CyclesBelow(), bytes_below_ = BytesBelow();
  }

  // All orders of the cut loops that can still win; true if one is the new best.
  bool TryOrders(const Vector& vector) {
    walk_.SetBlocks(vector.block, vector.output_single);
    vector_ = &vector;
    const uint32_t cut = CutMask(extent_, vector.block);
    std::vector<int> order;
    for (int d = 0; d < kLayerDims; ++d) {
      counts_[At(d)] = CeilDiv(extent_[At(d)], vector.block[At(d)]);
      if ((cut & Bit(d)) != 0) order.push_back(d);
    }
    FindInput(vector.block);
    serial_floor_ = walk_.FirstLoadCycles() + walk_.ComputeCycles();
    bool found = false;
    do {
      found |= TryOrder(order);
    } while (std::next_permutation(order.begin(), order.end()));
    return found;
  }

  void FindInput(const LayerSizes& block) {
    const auto find = [](const std::vector<WindowChoice>& choices, int64_t size, int64_t taps) {
      return std::find_if(choices.begin(), choices.end(),
                          [&](const WindowChoice& w) {
                            return w.entry.block == size && w.entry.tap_block == taps;
                          })
          ->entry;
    };
    const AxisEntry r = find(rows_, block[kDimE], block[kDimR]);
    const AxisEntry c = find(columns_, block[kDimF], block[kDimS]);
    input_ = planes_ * r.sum * c.sum;
    rolled_[0] = planes_ * r.rolled * c.sum;
    rolled_[1] = planes_ * r.sum * c.rolled;
  }

  bool TryOrder(const std::vector<int>& order) {
    int64_t weight = totals_.weight, input = input_, visits = 1;
    int64_t outside_weight = 1, outside_output = 1;
    int rolling = -1;
    bool m_outside = false, m_outside_input = false;
    for (const int d : order) {
      const uint32_t bit = Bit(d);
      if (kWeightDims & bit) {
        weight = totals_.weight * outside_weight;
      } else {
        outside_weight *= counts_[At(d)];
      }
      if (kOutputDims & bit) {
        visits = outside_output;
      } else {
        outside_output *= counts_[At(d)];
      }
      if (kInputDims & bit) {
        rolling = d;
        m_outside_input = m_outside;
      } else {
        m_outside = true;
      }
    }
    if (!rolls_ || (rolling != kDimE && rolling != kDimF)) rolling = -1;
    if (rolling >= 0) input = rolled_[At(rolling - kDimE)];
    if (m_outside_input) input *= counts_[kDimM];
    const int64_t output = totals_.output * (1 + kSpillBytes * (visits - 1));
    const int64_t bytes = weight + input + output;
    if (minimise_bytes_ && bytes >= bytes_limit_) return false;
    const int64_t stores = CeilDiv(vector_->output_single ? output : 0, m_.bytes_per_cycle);
    const int64_t bound = std::max(serial_floor_ + std::max(stores, walk_.LastStoreCycles()),
                                   CeilDiv(bytes, m_.bytes_per_cycle));
    const int64_t below = cycles_limit_ + (minimise_bytes_ ? 1 : 0);
    if (bound >= below) return false;
    ++walked_;
    const int64_t cycles =
        walk_.Cycles(order.data(), static_cast<int>(order.size()), rolls_, below);
    if (cycles >= below) return false;
    (minimise_bytes_ ? bytes_limit_ : cycles_limit_) = minimise_bytes_ ? bytes : cycles;
    best_.bytes = bytes, best_.cycles = cycles;
    best_.points = points_, best_.walked = walked_;
    best_.mapping = {vector_->block, order, rolling, vector_->output_single};
    return true;
  }

  const Layer& l_;
  const IdealMachine& m_;
  const LayerSizes extent_;
  const LayerTotals totals_;
  const Space space_;
  const bool rolls_;
  StepWalk walk_;
  const std::vector<WindowChoice> rows_, columns_;
  const std::vector<int64_t> batches_, groups_, depths_;
  const std::vector<ChannelChoice> channels_;

  bool minimise_bytes_ = false;
  // Results must be below what is minimised, and at most the other one.
  int64_t cycles_limit_ = kInfinite, bytes_limit_ = kInfinite;
  int64_t cycles_below_ = kInfinite, bytes_below_ = kInfinite;
  LayerOptimum best_;
  std::vector<Vector> heap_;
  Vector after_;
  int64_t points_ = 0, walked_ = 0;

  int64_t planes_ = 0, macs_depth_ = 0, skew_ = 0;
  int64_t input_ = 0, input_rolled_ = 0, taps_ = 1, windows_ = 1;
  const Vector* vector_ = nullptr;
  LayerSizes counts_{};
  std::array<int64_t, 2> rolled_{};
  int64_t serial_floor_ = 0;
};

}  // namespace

std::optional<LatencyOptimum> LeastCycles(const Layer& layer, const IdealMachine& machine,
                                          Space space) {
  return CycleSearch(layer, machine, space).Run();
}

}  // namespace dla::scheduler
