#include "scheduler/search/step_walk.h"

namespace dla::scheduler {
namespace {

size_t At(int64_t i) { return static_cast<size_t>(i); }

}  // namespace

StepWalk::StepWalk(const Layer& layer, const IdealMachine& machine)
    : l_(layer), m_(machine), extent_(ExtentsOf(layer)) {}

int64_t StepWalk::TileCycles(uint32_t last) const {
  const int64_t pixels = Length(last, kDimN) * Length(last, kDimE) * Length(last, kDimF);
  const int64_t depth = Length(last, kDimC) * Length(last, kDimR) * Length(last, kDimS);
  return Length(last, kDimG) * CeilDiv(pixels, m_.array_rows) *
         CeilDiv(Length(last, kDimM), m_.array_cols) * (depth + m_.array_rows + m_.array_cols - 2);
}

void StepWalk::BuildLines(const WindowAxis& axis, int out, int tap, std::vector<int64_t>* lines,
                          std::vector<int64_t>* fresh) const {
  const int64_t block = block_[At(out)], taps = block_[At(tap)];
  const int64_t count = dims_[At(out)].count, tap_count = dims_[At(tap)].count;
  lines->resize(At(count * tap_count));
  fresh->resize(At(count * tap_count));
  for (int64_t t = 0; t < tap_count; ++t) {
    const int64_t tap_size = std::min(taps, axis.taps - t * taps);
    const bool shares = (tap_size - 1) * axis.dilation + 1 >= axis.stride;
    LineRange before{};
    for (int64_t i = 0; i < count; ++i) {
      const LineRange range =
          TileLines(axis, i * block, std::min(block, axis.extent - i * block), t * taps, tap_size);
      const size_t at = At(t * count + i);
      (*lines)[at] = range.end - range.begin;
      (*fresh)[at] = i > 0 && shares
                         ? std::max<int64_t>(0, range.end - std::max(range.begin, before.end))
                         : (*lines)[at];
      before = range;
    }
  }
}

void StepWalk::SetBlocks(const LayerSizes& block, bool output_single) {
  block_ = block;
  output_single_ = output_single;
  cut_ = CutMask(extent_, block);
  for (size_t d = 0; d < kLayerDims; ++d) {
    Dim& dim = dims_[d];
    dim.count = CeilDiv(extent_[d], block[d]);
    dim.length = {block[d], extent_[d] - (dim.count - 1) * block[d]};
  }
  compute_ = 0;
  const uint32_t whole = ~cut_ & 255U;
  for (uint32_t sub = cut_;; sub = (sub - 1) & cut_) {
    const uint32_t last = whole | sub;
    tile_cycles_[last] = TileCycles(last);
    weight_[last] = Length(last, kDimG) * Length(last, kDimM) * Length(last, kDimC) *
                    Length(last, kDimR) * Length(last, kDimS);
    output_[last] = Length(last, kDimN) * Length(last, kDimG) * Length(last, kDimM) *
                    Length(last, kDimE) * Length(last, kDimF);
    planes_[last] = Length(last, kDimN) * Length(last, kDimG) * Length(last, kDimC);
    int64_t tiles = 1;  // with just these dimensions at their last block
    for (int d = 0; d < kLayerDims; ++d) {
      if ((last & Bit(d)) == 0) tiles *= dims_[At(d)].count - 1;
    }
    compute_ += tiles * tile_cycles_[last];
    if (sub == 0) break;
  }
  BuildLines(RowAxis(l_), kDimE, kDimR, &rows_, &fresh_rows_);
  BuildLines(ColumnAxis(l_), kDimF, kDimS, &columns_, &fresh_columns_);
}

int64_t StepWalk::FirstLoadCycles() const {
  const uint32_t first = ~cut_ & 255U;
  return CeilDiv(weight_[first] + planes_[first] * rows_[0] * columns_[0], m_.bytes_per_cycle);
}

int64_t StepWalk::LastStoreCycles() const { return CeilDiv(output_[255], m_.bytes_per_cycle); }

int64_t StepWalk::Cycles(const int* order, int count, bool rolls, int64_t limit) {
  // Position of the innermost loop on which each operand depends: its tile is new in a step if the
  // outermost loop that moves is not inside that one.
  int weight_at = -1, input_at = -1, output_at = -1;
  for (int p = 0; p < count; ++p) {
    const uint32_t bit = Bit(order[p]);
    if (kWeightDims & bit) weight_at = p;
    if (kInputDims & bit) input_at = p;
    if (kOutputDims & bit) output_at = p;
  }
  uint32_t outer_reductions = 0;  // each of their iterations visits the output's tiles once more
  for (int p = 0; p < output_at; ++p) outer_reductions |= Bit(order[p]) & ~kOutputDims;
  const int rolling = rolls && input_at >= 0 ? order[input_at] : -1;
  const std::vector<int64_t>& rows = rolling == kDimE ? fresh_rows_ : rows_;
  const std::vector<int64_t>& columns = rolling == kDimF ? fresh_columns_ : columns_;
  const bool serial = output_single_ && output_at >= 0;

  std::array<int64_t, kLayerDims> index{};
  uint32_t last = ~cut_ & 255U;
  const int64_t bus = m_.bytes_per_cycle;
  int64_t start = 0, stored = 0, tail = 0;  // stored: cycles of the store of the step before
  int64_t compute = 0;                      // of the step before
  bool is_first = true;
  int moved = -1;  // outermost loop that moved
  for (;;) {
    int64_t load = moved <= weight_at || is_first ? weight_[last] : 0;
    if (moved <= input_at || is_first) {
      load += planes_[last] * rows[At(index[kDimR] * dims_[kDimE].count + index[kDimE])] *
              columns[At(index[kDimS] * dims_[kDimF].count + index[kDimF])];
    }
    int64_t reload = 0;
    if (moved <= output_at || is_first) {
      const bool again = index[kDimC] + index[kDimR] + index[kDimS] > 0 && outer_reductions != 0;
      if (again) reload = kAccumulatorBytes * output_[last];
    }
    int64_t serial_cycles = 0;
    if (serial) {
      serial_cycles = tail + CeilDiv(reload, bus);
    } else {
      load += reload;
    }
    const int64_t load_cycles = CeilDiv(load, bus);
    if (is_first) {
      start = load_cycles + serial_cycles;
    } else {
      start += std::max(compute, stored + load_cycles) + serial_cycles;
    }
    if (start >= limit) return start;
    // The store of the step before is on the bus after this step's loads: it meets the next ones.
    stored = serial ? 0 : tail;
    compute = tile_cycles_[last];
    is_first = false;

    int p = count - 1;
    const uint32_t here = last;
    for (; p >= 0; --p) {
      const int d = order[p];
      int64_t& at = index[At(d)];
      if (++at < dims_[At(d)].count) {
        if (at == dims_[At(d)].count - 1) last |= Bit(d);
        break;
      }
      at = 0;
      last &= ~Bit(d);
    }
    moved = p;
    tail = 0;
    if (p <= output_at || p < 0) {
      const bool is_final = (outer_reductions & ~here) == 0;
      tail = CeilDiv(output_[here] * (is_final ? 1 : kAccumulatorBytes), bus);
    }
    if (p < 0) break;
  }
  // `stored` is the store of the last step but one, `tail` that of the last.
  return start + std::max(compute, stored) + tail;
}

}  // namespace dla::scheduler
