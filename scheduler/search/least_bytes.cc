// Branch and bound over (rows entry, columns entry, batch, groups, input channels); the blocks of
// output channels follow from the room that is left. Rules and proofs: docs/MAPPING.md.
#include <limits>

#include "scheduler/block_candidates.h"
#include "scheduler/search/layer_cost.h"
#include "scheduler/search/layer_optimum.h"

namespace dla::scheduler {
namespace {

class ByteSearch {
 public:
  ByteSearch(const Layer& layer, const IdealMachine& machine, Space space, Buffers buffers)
      : l_(layer),
        m_(machine),
        totals_(TotalsOf(layer)),
        double_inputs_(buffers != Buffers::kSingle),
        double_output_(buffers == Buffers::kDouble),
        rolls_(Rolls(space)),
        tables_(ParetoTables(layer, Rolls(space))),
        batches_(CriticalSizes(layer.N)),
        channels_(CriticalSizes(layer.C)) {}

  std::optional<LayerOptimum> Run() {
    const int64_t planes = l_.N * l_.G * l_.C;
    const int64_t fixed = totals_.weight + totals_.output;
    const int64_t fewest_columns = Lines(tables_.columns.front());
    for (const AxisEntry& rows : tables_.rows) {
      if (fixed + planes * Lines(rows) * fewest_columns >= best_) break;
      for (const AxisEntry& columns : tables_.columns) {
        input_rolled_ =
            planes * (rolls_ ? std::min(rows.rolled * columns.sum, rows.sum * columns.rolled)
                             : rows.sum * columns.sum);
        // Both tables rise in the lines they load at least.
        if (fixed + planes * Lines(rows) * Lines(columns) >= best_) break;
        if (fixed + input_rolled_ >= best_) continue;
        input_ = planes * rows.sum * columns.sum;
        rows_ = &rows, columns_ = &columns;
        VisitWindow();
      }
    }
    if (best_ == std::numeric_limits<int64_t>::max()) return std::nullopt;
    return Result();
  }

 private:
  int64_t Lines(const AxisEntry& entry) const { return rolls_ ? entry.least() : entry.sum; }

  void VisitWindow() {
    window_cut_ = rows_->count * columns_->count > 1;
    taps_ = rows_->tap_count * columns_->tap_count;
    taps_cut_ = taps_ > 1;
    for (size_t n = batches_.size(); n-- > 0;) {
      VisitGroups(batches_[n], l_.G);
      // Groups share nothing: cutting them at all only makes room, so one at a time is enough.
      if (l_.G > 1) VisitGroups(batches_[n], 1);
    }
  }

  void VisitGroups(int64_t b_n, int64_t b_g) {
    sigma_ = CeilDiv(l_.N, b_n) * rows_->count * columns_->count;
    // Output-stationary orders pay nothing for cutting the channels; the others pay for every
    // block, so few blocks are worth a look.
    const int64_t floor = totals_.weight + input_rolled_;
    for (size_t c = channels_.size(); c-- > 0;) {
      const int64_t rho = CeilDiv(l_.C, channels_[c]) * taps_;
      if (floor + totals_.output * (1 + kSpillBytes * (rho - 1)) >= best_) break;
      VisitChannels(b_n, b_g, channels_[c]);
    }
    if (totals_.weight * sigma_ + input_ + totals_.output >= best_) return;
    VisitChannels(b_n, b_g, l_.C);
    if (l_.C > 1) VisitChannels(b_n, b_g, 1);
  }

  void VisitChannels(int64_t b_n, int64_t b_g, int64_t b_c) {
    ++points_;
    const bool c_cut = b_c < l_.C, g_cut = b_g < l_.G, n_cut = b_n < l_.N;
    const bool inputs_cut = c_cut || g_cut || taps_cut_;
    const int64_t input_slots = double_inputs_ && (inputs_cut || n_cut || window_cut_) ? 2 : 1;
    const int64_t input_room = input_slots * b_n * b_g * b_c * rows_->lines * columns_->lines;
    const int64_t weight_unit = b_g * b_c * rows_->tap_block * columns_->tap_block;
    const int64_t output_unit = kAccumulatorBytes * b_n * b_g * rows_->block * columns_->block;
    const int64_t weight_whole = double_inputs_ && inputs_cut ? 2 : 1;
    const int64_t output_whole = double_output_ && (n_cut || g_cut || window_cut_) ? 2 : 1;
    int64_t b_m = l_.M;
    if (!Fits(m_,
              {weight_whole * weight_unit * b_m, input_room, output_whole * output_unit * b_m})) {
      b_m = LargestCut(input_room, weight_unit * (double_inputs_ ? 2 : 1),
                       output_unit * (double_output_ ? 2 : 1));
      if (b_m == 0) return;
    }
    const int64_t m_count = CeilDiv(l_.M, b_m);
    const int64_t rho = CeilDiv(l_.C, b_c) * taps_;
    const ClassCost cost = LeastOfClasses(totals_, {input_, input_rolled_, sigma_, m_count, rho});
    if (cost.bytes >= best_) return;
    best_ = cost.bytes;
    stationary_ = cost.stationary;
    found_ = {b_n,
              b_g,
              CeilDiv(l_.M, m_count),
              b_c,
              rows_->block,
              columns_->block,
              rows_->tap_block,
              columns_->tap_block};
    rolled_rows_ = rows_->rolled * columns_->sum <= rows_->sum * columns_->rolled;
  }

  // The largest block of output channels that fits; 0: not even one.
  int64_t LargestCut(int64_t input_room, int64_t weight_unit, int64_t output_unit) const {
    if (m_.pool_bytes > 0) {
      return std::max<int64_t>(0, m_.pool_bytes - input_room) / (weight_unit + output_unit);
    }
    if (input_room > m_.input_bytes) return 0;
    return std::min(m_.weight_bytes / weight_unit, m_.output_bytes / output_unit);
  }

  LayerOptimum Result() const {
    LayerOptimum result;
    result.bytes = best_;
    result.points = points_;
    result.mapping.block = found_;
    const uint32_t cut = CutMask(ExtentsOf(l_), found_);
    const bool rolls = rolls_ && stationary_ != 2;
    if (rolls && (cut & (Bit(kDimE) | Bit(kDimF))) != 0) {
      result.mapping.rolling = rolled_rows_ ? kDimE : kDimF;
      if ((cut & Bit(result.mapping.rolling)) == 0) result.mapping.rolling = -1;
    }
    result.mapping.order = ClassOrder(cut, stationary_, result.mapping.rolling);
    return result;
  }

  const Layer& l_;
  const IdealMachine& m_;
  const LayerTotals totals_;
  const bool double_inputs_, double_output_, rolls_;
  const AxisTables tables_;
  const std::vector<int64_t> batches_, channels_;

  const AxisEntry* rows_ = nullptr;
  const AxisEntry* columns_ = nullptr;
  int64_t input_ = 0, input_rolled_ = 0, sigma_ = 1, taps_ = 1;
  bool window_cut_ = false, taps_cut_ = false;

  int64_t best_ = std::numeric_limits<int64_t>::max();
  int stationary_ = 0;
  bool rolled_rows_ = false;
  LayerSizes found_{};
  int64_t points_ = 0;
};

}  // namespace

std::optional<LayerOptimum> LeastBytes(const Layer& layer, const IdealMachine& machine, Space space,
                                       Buffers buffers) {
  return ByteSearch(layer, machine, space, buffers).Run();
}

}  // namespace dla::scheduler
