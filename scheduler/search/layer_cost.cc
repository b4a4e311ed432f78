#include "scheduler/search/layer_cost.h"

namespace dla::scheduler {

LayerSizes ExtentsOf(const Layer& l) { return {l.N, l.G, l.M, l.C, l.E, l.F, l.R, l.S}; }

WindowAxis RowAxis(const Layer& l) { return {l.E, l.R, l.stride, l.dilation, l.pad, l.H}; }

WindowAxis ColumnAxis(const Layer& l) { return {l.F, l.S, l.stride, l.dilation, l.pad, l.W}; }

AxisTables ParetoTables(const Layer& layer, bool every_size) {
  const auto build = [&](const WindowAxis& axis) {
    std::vector<AxisEntry> entries = AxisEntries(axis, every_size);
    KeepParetoSorted(&entries);
    return entries;
  };
  AxisTables tables;
  tables.rows = build(RowAxis(layer));
  tables.columns = RowAxis(layer) == ColumnAxis(layer) ? tables.rows : build(ColumnAxis(layer));
  return tables;
}

LayerTotals TotalsOf(const Layer& l) {
  return {l.G * l.M * l.C * l.R * l.S, l.N * l.G * l.M * l.E * l.F};
}

uint32_t CutMask(const LayerSizes& extent, const LayerSizes& block) {
  uint32_t cut = 0;
  for (int d = 0; d < kLayerDims; ++d) {
    const auto i = static_cast<size_t>(d);
    if (block[i] < extent[i]) cut |= Bit(d);
  }
  return cut;
}

std::vector<int> ClassOrder(uint32_t cut, int stationary, int rolling) {
  constexpr uint32_t kDims[] = {kWeightDims, kInputDims, kOutputDims};
  const uint32_t relevant = kDims[stationary];
  std::vector<int> order;
  for (const uint32_t part : {relevant, ~relevant}) {
    for (int d = 0; d < kLayerDims; ++d) {
      if ((cut & part & Bit(d)) != 0 && d != rolling) order.push_back(d);
    }
    if (rolling >= 0 && (part & Bit(rolling)) != 0) order.push_back(rolling);
  }
  return order;
}

int64_t CompulsoryBytes(const Layer& layer) {
  const LayerTotals totals = TotalsOf(layer);
  return totals.weight + totals.output +
         layer.N * layer.G * layer.C * TouchedLines(RowAxis(layer)) *
             TouchedLines(ColumnAxis(layer));
}

}  // namespace dla::scheduler
