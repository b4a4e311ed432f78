// Branch and bound over one choice for each of groups, batch, rows, columns, input and output
// channels, for each order in which the operands' depths can lie. Rules: docs/MAPPING.md.
#include "scheduler/search/uneven.h"

#include <algorithm>
#include <limits>

#include "scheduler/search/layer_cost.h"
#include "scheduler/search/uneven_choices.h"
#include "support/status.h"

namespace dla::scheduler {
namespace {

constexpr int64_t kNothing = std::numeric_limits<int64_t>::max();
constexpr uint32_t kDimsOf[] = {kInputDims, kWeightDims, kOutputDims};
enum Part { kGroups, kBatch, kRows, kColumns, kInChannels, kOutChannels, kParts };

size_t At(int64_t i) { return static_cast<size_t>(i); }

// Bytes of one element of each operand's tile.
constexpr std::array<int64_t, 3> kTileBytes = {1, 1, kAccumulatorBytes};

// What the layer and the machine fix.
struct Problem {
  const Layer& layer;
  const IdealMachine& machine;
  LayerTotals totals;
  int64_t planes = 1;  // N G C
  std::array<bool, 3> is_double{};

  bool FitsIn(const std::array<int64_t, 3>& room) const {
    return Fits(machine, {room[kUnevenWeight], room[kUnevenInput], room[kUnevenOutput]});
  }
  int64_t BytesFor(const std::array<int64_t, 3>& times, int64_t lines) const {
    return totals.weight * times[kUnevenWeight] + planes * lines * times[kUnevenInput] +
           totals.output * (1 + kSpillBytes * (times[kUnevenOutput] - 1));
  }
};

// The product of some parts' choices.
struct Product {
  std::array<int64_t, 3> room{1, 1, 1}, times{1, 1, 1};
  std::array<bool, 3> cut{};
  int64_t sum = 1, rolled = 1;  // rolled: at most one axis of both

  Product With(const UnevenChoice& c) const {
    Product p = *this;
    for (size_t x = 0; x < 3; ++x) {
      p.room[x] *= c.room[x];
      p.times[x] *= c.times[x];
      p.cut[x] = p.cut[x] || c.cut[x];
    }
    p.rolled = std::min(rolled * c.sum, sum * c.rolled);
    p.sum *= c.sum;
    return p;
  }
};

// The least of what is not chosen yet.
struct Rest {
  std::array<int64_t, 3> room{1, 1, 1};
  int64_t lines = 1;
};

// One order of the three depths.
class OrderSearch {
 public:
  OrderSearch(const Problem& problem, const UnevenOrder& order) : p_(problem), order_(order) {
    const Layer& l = p_.layer;
    parts_[kGroups] = GroupChoices(l.G, order);
    parts_[kBatch] = DimensionChoices(l.N, kDimN, order);
    parts_[kRows] = AxisChoices(RowAxis(l), order, &complete_);
    parts_[kColumns] = AxisChoices(ColumnAxis(l), order, &complete_);
    parts_[kInChannels] = DimensionChoices(l.C, kDimC, order);
    parts_[kOutChannels] = DimensionChoices(l.M, kDimM, order);
    for (size_t i = kParts; i-- > 0;) {
      rest_[i] = rest_[i + 1];
      for (size_t x = 0; x < 3; ++x) {
        int64_t least = kNothing;
        for (const UnevenChoice& c : parts_[i]) least = std::min(least, c.room[x]);
        rest_[i].room[x] *= least;
      }
      int64_t least = kNothing;
      for (const UnevenChoice& c : parts_[i]) least = std::min(least, c.rolled);
      rest_[i].lines *= least;
    }
  }

  bool complete() const { return complete_; }

  // Lowers *best; true if it did.
  bool Run(int64_t* best, int64_t* points, int64_t budget) {
    best_ = best, points_ = points, budget_ = budget;
    Visit(0, Product());
    return found_;
  }

  UnevenMapping Result() const;

 private:
  void Visit(size_t part, const Product& product) {
    for (const UnevenChoice& choice : parts_[part]) {
      if (*points_ >= budget_) {
        complete_ = false;
        return;
      }
      ++*points_;
      const Product next = product.With(choice);
      const Rest& rest = rest_[part + 1];
      if (p_.BytesFor(next.times, next.rolled * rest.lines) >= *best_) continue;
      std::array<int64_t, 3> room{};
      for (size_t x = 0; x < 3; ++x) {
        room[x] =
            next.room[x] * rest.room[x] * kTileBytes[x] * (next.cut[x] && p_.is_double[x] ? 2 : 1);
      }
      if (!p_.FitsIn(room)) continue;
      path_[part] = &choice;
      if (part + 1 < kParts) {
        Visit(part + 1, next);
      } else {
        *best_ = p_.BytesFor(next.times, next.rolled);
        found_ = true;
        for (size_t i = 0; i < kParts; ++i) chosen_[i] = *path_[i];
      }
    }
  }

  // The blocks of each dimension at positions 0 to 2; 0 where the operand there does not have it.
  std::array<std::array<int64_t, 3>, kLayerDims> BlocksByPosition() const;

  const Problem& p_;
  const UnevenOrder order_;
  std::array<std::vector<UnevenChoice>, kParts> parts_;
  std::array<Rest, kParts + 1> rest_;
  bool complete_ = true, found_ = false;
  int64_t* best_ = nullptr;
  int64_t* points_ = nullptr;
  int64_t budget_ = 0;
  std::array<const UnevenChoice*, kParts> path_{};
  std::array<UnevenChoice, kParts> chosen_{};
};

std::array<std::array<int64_t, 3>, kLayerDims> OrderSearch::BlocksByPosition() const {
  struct Source {
    int dim;
    Part part;
    size_t which;
  };
  constexpr Source kSources[] = {
      {kDimN, kBatch, 0}, {kDimM, kOutChannels, 0}, {kDimC, kInChannels, 0}, {kDimE, kRows, 0},
      {kDimR, kRows, 1},  {kDimF, kColumns, 0},     {kDimS, kColumns, 1}};
  std::array<std::array<int64_t, 3>, kLayerDims> blocks{};
  for (const Source& source : kSources) {
    const NestedBlocks& pair = chosen_[source.part].blocks[source.which];
    bool is_outer = true;
    for (int position = 0; position < 3; ++position) {
      if (position == order_[At(IrrelevantOperand(source.dim))]) continue;
      blocks[At(source.dim)][At(position)] = is_outer ? pair.outer : pair.inner;
      is_outer = false;
    }
  }
  for (int position = 0; position < 3; ++position) {
    const bool single = position >= chosen_[kGroups].blocks[0].outer;
    blocks[kDimG][At(position)] = single ? 1 : p_.layer.G;
  }
  return blocks;
}

UnevenMapping OrderSearch::Result() const {
  const UnevenChoice& rows = chosen_[kRows];
  const UnevenChoice& columns = chosen_[kColumns];
  UnevenMapping mapping;
  const bool rows_roll = rows.rolled * columns.sum <= rows.sum * columns.rolled;
  const int rolling = rows_roll ? kDimE : kDimF;
  const bool rolls = rows.rolled < rows.sum || columns.rolled < columns.sum;
  const auto blocks = BlocksByPosition();
  LayerSizes size = ExtentsOf(p_.layer);
  const auto cut = [&](int dim, int position) {
    const int64_t block = blocks[At(dim)][At(position)];
    if (block == 0 || block >= size[At(dim)]) return;
    mapping.loops.push_back({dim, block});
    size[At(dim)] = block;
  };
  for (int position = 0; position < 3; ++position) {
    // What rolls is the innermost loop outside the input's tile.
    const bool last = rolls && order_[kUnevenInput] == position;
    for (int dim = 0; dim < kLayerDims; ++dim) {
      if (!last || dim != rolling) cut(dim, position);
    }
    if (last) cut(rolling, position);
    for (size_t x = 0; x < 3; ++x) {
      if (order_[x] == position) mapping.outside[x] = static_cast<int>(mapping.loops.size());
    }
  }
  if (rolls) mapping.rolling = rolling;
  return mapping;
}

// The even mapping as one of this space: each tile lies inside the innermost loop that moves it.
UnevenMapping AsUneven(const LayerMapping& even) {
  UnevenMapping mapping;
  mapping.rolling = even.rolling;
  for (const int dim : even.order) {
    mapping.loops.push_back({dim, even.block[At(dim)]});
    for (size_t x = 0; x < 3; ++x) {
      if ((kDimsOf[x] & Bit(dim)) != 0) {
        mapping.outside[x] = static_cast<int>(mapping.loops.size());
      }
    }
  }
  return mapping;
}

// The operand whose depth is outermost is cut into at least so many tiles, which are as many
// visits of the other two as their product (docs/MAPPING.md, "Uneven").
int64_t BoundOfOrder(const Problem& p, const UnevenOrder& order) {
  std::array<size_t, 3> at{};
  for (size_t x = 0; x < 3; ++x) at[At(order[x])] = x;
  const int64_t compulsory_input = CompulsoryBytes(p.layer) - p.totals.weight - p.totals.output;
  const std::array<int64_t, 3> elements = {compulsory_input, p.totals.weight, p.totals.output};
  const IdealMachine& m = p.machine;
  const std::array<int64_t, 3> capacity = {m.input_bytes, m.weight_bytes, m.output_bytes};
  const size_t first = at[0];
  const int64_t needs = elements[first] / p.layer.G * kTileBytes[first];
  const int64_t has = m.pool_bytes > 0 ? m.pool_bytes : capacity[first];
  const int64_t tile = has / (p.is_double[first] ? 2 : 1);
  const auto cost = [&](size_t x, int64_t times) {
    return x == kUnevenOutput ? elements[x] * (1 + kSpillBytes * (times - 1)) : elements[x] * times;
  };
  const int64_t tiles = needs <= has ? 1 : CeilDiv(needs, std::max<int64_t>(tile, 1));
  int64_t least = kNothing;
  for (int64_t second = 1; second <= tiles; ++second) {
    least = std::min(least, cost(at[1], second) + cost(at[2], CeilDiv(tiles, second)));
  }
  return elements[first] + least;
}

}  // namespace

int64_t UnevenBytes(const Layer& layer, const UnevenMapping& mapping) {
  const LayerSizes extent = ExtentsOf(layer);
  std::array<int64_t, 3> times{1, 1, 1};
  int64_t lines = 0;
  for (size_t x = 0; x < 3; ++x) {
    int depth = mapping.outside[x];
    while (depth > 0 && (kDimsOf[x] & Bit(mapping.loops[At(depth - 1)].dim)) == 0) --depth;
    std::array<std::vector<int64_t>, kLayerDims> blocks;
    for (int i = 0; i < depth; ++i) {
      blocks[At(mapping.loops[At(i)].dim)].push_back(mapping.loops[At(i)].block);
    }
    for (int d = 0; d < kLayerDims; ++d) {
      if ((kDimsOf[x] & Bit(d)) != 0) continue;
      times[x] *= static_cast<int64_t>(PiecesOf(extent[At(d)], blocks[At(d)]).size());
    }
    if (x != kUnevenInput) continue;
    const int last = depth > 0 ? mapping.loops[At(depth - 1)].dim : -1;
    const auto lines_of = [&](const WindowAxis& axis, int out, int tap) {
      const PieceLines found = LinesOf(axis, PiecesOf(extent[At(out)], blocks[At(out)]),
                                       PiecesOf(extent[At(tap)], blocks[At(tap)]));
      return mapping.rolling == out && last == out ? found.rolled : found.sum;
    };
    lines = lines_of(RowAxis(layer), kDimE, kDimR) * lines_of(ColumnAxis(layer), kDimF, kDimS);
  }
  const Problem problem = {layer, {}, TotalsOf(layer), layer.N * layer.G * layer.C, {}};
  return problem.BytesFor(times, lines);
}

std::optional<UnevenOptimum> LeastBytesUneven(const Layer& layer, const IdealMachine& machine,
                                              Buffers buffers, int64_t budget) {
  const bool double_inputs = buffers != Buffers::kSingle;
  const Problem problem = {layer,
                           machine,
                           TotalsOf(layer),
                           layer.N * layer.G * layer.C,
                           {double_inputs, double_inputs, buffers == Buffers::kDouble}};
  UnevenOptimum optimum;
  int64_t best = kNothing;
  if (const auto even = LeastBytes(layer, machine, Space::kS1, buffers)) {
    best = even->bytes;
    optimum.mapping = AsUneven(even->mapping);
  }
  int64_t bound = kNothing;  // of the orders that were not searched to the end
  constexpr int64_t kOrders = 6;
  UnevenOrder order = {0, 1, 2};
  do {
    const int64_t least = BoundOfOrder(problem, order);
    if (least >= best) continue;
    OrderSearch search(problem, order);
    const int64_t until = optimum.points + CeilDiv(budget, kOrders);
    if (search.Run(&best, &optimum.points, until)) optimum.mapping = search.Result();
    if (!search.complete()) bound = std::min(bound, least);
  } while (std::next_permutation(order.begin(), order.end()));
  if (best == kNothing) return std::nullopt;
  optimum.bytes = UnevenBytes(layer, optimum.mapping);
  DLA_CHECK(optimum.bytes <= best);
  optimum.lower_bound = std::min(bound, optimum.bytes);
  optimum.proven = optimum.lower_bound == optimum.bytes;
  return optimum;
}

}  // namespace dla::scheduler
