// Uneven mappings: the search against a plain enumeration of all loop lists and depths, whose costs
// come from walking each nest step by step. Both share only data types with what they check.
#include "scheduler/search/uneven.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "machine/target_file.h"
#include "scheduler/map_layer.h"
#include "tests/scheduler/optima_table.h"

namespace dla::scheduler {
namespace {

constexpr int64_t kNothing = std::numeric_limits<int64_t>::max();
constexpr int64_t kBudget = 100'000'000;

struct Range {
  int64_t begin = 0, size = 0;
  auto operator<=>(const Range&) const = default;
};
using Ranges = std::array<Range, kLayerDims>;

bool Has(size_t operand, int dim) {
  switch (dim) {
    case kDimG:
      return true;
    case kDimM:
      return operand != 0;
    case kDimC:
    case kDimR:
    case kDimS:
      return operand != 2;
    default:
      return operand != 1;
  }
}

std::set<int64_t> LinesOf(const Range& out, const Range& tap, int64_t real, const Layer& l) {
  std::set<int64_t> lines;
  const int64_t first = out.begin * l.stride + tap.begin * l.dilation - l.pad;
  const int64_t last =
      (out.begin + out.size - 1) * l.stride + (tap.begin + tap.size - 1) * l.dilation - l.pad;
  for (int64_t i = first; i <= last; ++i) {
    if (i >= 0 && i < real) lines.insert(i);
  }
  return lines;
}

int64_t Missing(const std::set<int64_t>& now, const std::set<int64_t>& before) {
  return std::count_if(now.begin(), now.end(), [&](int64_t i) { return before.count(i) == 0; });
}

// What a nest moves and keeps, counted while walking it.
class Walk {
 public:
  Walk(const Layer& layer, const UnevenMapping& mapping) : l_(layer), m_(mapping) {
    Ranges ranges;
    const LayerSizes extent = ExtentsOf(layer);
    for (size_t d = 0; d < kLayerDims; ++d) ranges[d] = {0, extent[d]};
    std::vector<Ranges> outer = {ranges};
    Step(outer, {});
    for (const auto& [output, visits] : outputs_) {
      int64_t size = 1;
      for (const Range& range : output) size *= range.size;
      bytes[2] += size + 4 * size * (visits - 1) + 4 * size * (visits - 1);
    }
  }

  std::array<int64_t, 3> bytes{}, tile{}, tiles{};

 private:
  // ranges[i]: after i loops; index[i]: iteration of loop i.
  void Step(std::vector<Ranges>& ranges, std::vector<int64_t> index) {
    const size_t level = ranges.size() - 1;
    if (level == m_.loops.size()) {
      for (size_t x = 0; x < 3; ++x) See(x, ranges, index);
      return;
    }
    const UnevenLoop& loop = m_.loops[level];
    const auto d = static_cast<size_t>(loop.dim);
    const Range whole = ranges.back()[d];
    int64_t i = 0;
    for (int64_t at = 0; at < whole.size; at += loop.block, ++i) {
      Ranges inner = ranges[level];
      inner[d] = {whole.begin + at, std::min(loop.block, whole.size - at)};
      ranges.push_back(inner);
      index.push_back(i);
      Step(ranges, index);
      index.pop_back();
      ranges.pop_back();
    }
  }

  void See(size_t x, const std::vector<Ranges>& ranges, const std::vector<int64_t>& index) {
    const auto depth = static_cast<size_t>(m_.outside[x]);
    std::vector<Range> now;
    for (int d = 0; d < kLayerDims; ++d) {
      if (Has(x, d)) now.push_back(ranges[depth][static_cast<size_t>(d)]);
    }
    if (now == last_[x]) return;
    last_[x] = now;
    ++tiles[x];
    if (x == 2) ++outputs_[now];
    if (x == 0) {
      Load(ranges[depth], depth, index);
      return;
    }
    int64_t size = 1;
    for (const Range& range : now) size *= range.size;
    tile[x] = std::max(tile[x], size);
    if (x == 1) bytes[1] += size;
  }

  void Load(const Ranges& r, size_t depth, const std::vector<int64_t>& index) {
    std::set<int64_t> rows = LinesOf(r[kDimE], r[kDimR], l_.H, l_);
    std::set<int64_t> columns = LinesOf(r[kDimF], r[kDimS], l_.W, l_);
    const int64_t planes = r[kDimN].size * r[kDimG].size * r[kDimC].size;
    tile[0] = std::max(tile[0], planes * std::ssize(rows) * std::ssize(columns));
    size_t innermost = depth;
    while (innermost > 0 && !Has(0, m_.loops[innermost - 1].dim)) --innermost;
    const int dim = innermost > 0 ? m_.loops[innermost - 1].dim : -1;
    const bool keeps = dim >= 0 && dim == m_.rolling && index[innermost - 1] > 0;
    const int64_t new_rows = keeps && dim == kDimE ? Missing(rows, rows_) : std::ssize(rows);
    const int64_t new_columns =
        keeps && dim == kDimF ? Missing(columns, columns_) : std::ssize(columns);
    bytes[0] += planes * new_rows * new_columns;
    rows_ = std::move(rows);
    columns_ = std::move(columns);
  }

  const Layer& l_;
  const UnevenMapping& m_;
  std::array<std::vector<Range>, 3> last_;
  std::map<std::vector<Range>, int64_t> outputs_;
  std::set<int64_t> rows_, columns_;  // of the input's tile before
};

std::array<int64_t, 3> RoomOf(const Walk& walk, Buffers buffers) {
  const auto slots = [&](size_t x) {
    const bool is_double = x == 2 ? buffers == Buffers::kDouble : buffers != Buffers::kSingle;
    return is_double && walk.tiles[x] > 1 ? 2 : 1;
  };
  return {slots(0) * walk.tile[0], slots(1) * walk.tile[1], slots(2) * 4 * walk.tile[2]};
}

bool FitIn(const IdealMachine& m, const std::array<int64_t, 3>& room) {
  if (m.pool_bytes > 0) return room[0] + room[1] + room[2] <= m.pool_bytes;
  return room[0] <= m.input_bytes && room[1] <= m.weight_bytes && room[2] <= m.output_bytes;
}

// All lists of loops, all depths, all ways to roll. An operand's cost depends on the loops outside
// its tile alone, so a list is built from outside and operands are closed on the way.
class Enumeration {
 public:
  Enumeration(const Layer& layer, const IdealMachine& machine, Buffers buffers)
      : l_(layer), m_(machine), buffers_(buffers) {
    Extend({}, ExtentsOf(layer), {State{}});
  }
  int64_t best = kNothing;

 private:
  struct State {
    std::array<bool, 3> closed{};
    std::array<int64_t, 3> room{};
    int64_t bytes = 0;
  };

  void Extend(const std::vector<UnevenLoop>& loops, const LayerSizes& size,
              std::vector<State> states) {
    const int depth = static_cast<int>(loops.size());
    UnevenMapping mapping = {loops, {depth, depth, depth}, -1};
    const Walk plain(l_, mapping);
    const std::array<int64_t, 3> room = RoomOf(plain, buffers_);
    int64_t least_input = plain.bytes[0];
    for (const int rolling : {static_cast<int>(kDimE), static_cast<int>(kDimF)}) {
      mapping.rolling = rolling;
      least_input = std::min(least_input, Walk(l_, mapping).bytes[0]);
    }
    for (size_t x = 0; x < 3; ++x) {
      const size_t before = states.size();
      for (size_t i = 0; i < before; ++i) {
        if (states[i].closed[x]) continue;
        State next = states[i];
        next.closed[x] = true;
        next.room[x] = room[x];
        next.bytes += x == 0 ? least_input : plain.bytes[x];
        states.push_back(next);
      }
    }
    std::vector<State> open;
    for (const State& state : states) {
      if (!FitIn(m_, state.room) || state.bytes >= best) continue;
      if (state.closed[0] && state.closed[1] && state.closed[2]) {
        best = state.bytes;
      } else {
        open.push_back(state);
      }
    }
    if (open.empty()) return;
    for (int d = 0; d < kLayerDims; ++d) {
      for (int64_t block = size[static_cast<size_t>(d)] - 1; block >= 1; --block) {
        std::vector<UnevenLoop> longer = loops;
        longer.push_back({d, block});
        LayerSizes smaller = size;
        smaller[static_cast<size_t>(d)] = block;
        Extend(longer, smaller, open);
      }
    }
  }

  const Layer& l_;
  const IdealMachine& m_;
  const Buffers buffers_;
};

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t In(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(engine_() % static_cast<uint64_t>(most - least + 1));
  }

 private:
  std::mt19937 engine_;
};

// `cuts`: how many dimensions are larger than one, of at most `most` each.
Layer RandomLayer(Random* random, int cuts, int64_t most) {
  Layer l;
  int64_t* const extents[] = {&l.N, &l.G, &l.M, &l.C, &l.E, &l.F, &l.R, &l.S};
  for (int i = 0; i < cuts; ++i) *extents[random->In(0, 7)] = random->In(2, most);
  l.stride = random->In(1, 3), l.dilation = random->In(1, 2);
  // Padding that leaves real lines on both axes.
  l.pad = std::min(random->In(0, 1), std::min((l.R - 1) * l.dilation, (l.S - 1) * l.dilation) / 2);
  l.H = (l.E - 1) * l.stride + l.dilation * (l.R - 1) + 1 - 2 * l.pad + random->In(0, 1);
  l.W = (l.F - 1) * l.stride + l.dilation * (l.S - 1) + 1 - 2 * l.pad + random->In(0, 1);
  return l;
}

IdealMachine RandomMachine(Random* random, int64_t most) {
  IdealMachine m;
  m.input_bytes = random->In(2, most);
  m.weight_bytes = random->In(2, most);
  m.output_bytes = random->In(8, 4 * most);
  if (random->In(0, 1) == 0) m.pool_bytes = random->In(10, 4 * most);
  return m;
}

// The mapping costs what the search says and fits, counted step by step.
void ExpectWalked(const Layer& layer, const IdealMachine& machine, Buffers buffers,
                  const UnevenOptimum& found) {
  const Walk walk(layer, found.mapping);
  EXPECT_EQ(walk.bytes[0] + walk.bytes[1] + walk.bytes[2], found.bytes);
  EXPECT_TRUE(FitIn(machine, RoomOf(walk, buffers)));
}

TEST(Uneven, EqualToPlainEnumeration) {
  int compared = 0, better = 0, nothing = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const int cuts = static_cast<int>(random.In(2, 4));
    const Layer layer = RandomLayer(&random, cuts, cuts == 4 ? 2 : cuts == 3 ? 3 : 6);
    const IdealMachine machine = RandomMachine(&random, 8);
    const auto buffers = static_cast<Buffers>(random.In(0, 2));
    const auto found = LeastBytesUneven(layer, machine, buffers, kBudget);
    const auto even = LeastBytes(layer, machine, Space::kS1, buffers);
    const Enumeration all(layer, machine, buffers);
    ASSERT_EQ(found.has_value(), all.best != kNothing);
    if (!found) {
      ++nothing;
      continue;
    }
    ++compared;
    EXPECT_EQ(found->bytes, all.best);
    EXPECT_TRUE(found->proven);
    EXPECT_EQ(found->lower_bound, found->bytes);
    ExpectWalked(layer, machine, buffers, *found);
    if (even) {
      EXPECT_LE(found->bytes, even->bytes);
      better += found->bytes < even->bytes ? 1 : 0;
    }
  }
  std::printf("%d layers compared, %d better than even, %d that do not fit\n", compared, better,
              nothing);
  EXPECT_GT(compared, 300);
  EXPECT_GT(better, 20);
}

TEST(Uneven, NeverWorseThanEvenAndWalked) {
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed + 100'000);
    const Layer layer = RandomLayer(&random, 5, 5);
    const IdealMachine machine = RandomMachine(&random, 60);
    const auto buffers = static_cast<Buffers>(random.In(0, 2));
    const auto even = LeastBytes(layer, machine, Space::kS1, buffers);
    const auto found = LeastBytesUneven(layer, machine, buffers, kBudget);
    if (!even) continue;
    ASSERT_TRUE(found.has_value());
    EXPECT_LE(found->bytes, even->bytes);
    EXPECT_GE(found->bytes, CompulsoryBytes(layer));
    ExpectWalked(layer, machine, buffers, *found);
    // A search that ends early: a mapping that is as it says, and a bound that holds.
    const auto cut_short = LeastBytesUneven(layer, machine, buffers, 20);
    ASSERT_TRUE(cut_short.has_value());
    ExpectWalked(layer, machine, buffers, *cut_short);
    EXPECT_LE(cut_short->lower_bound, found->bytes);
    EXPECT_GE(cut_short->bytes, found->bytes);
    EXPECT_EQ(cut_short->proven, cut_short->lower_bound == cut_short->bytes);
  }
}

TEST(Uneven, ProvenOnTheLayersOfTheTables) {
  const std::vector<TableRow> rows = ReadTable("optima.csv");
  ASSERT_EQ(rows.size(), 90U);
  int better = 0;
  for (const bool pooled : {false, true}) {
    const IdealMachine machine = {.pool_bytes = pooled ? 3 * 65536 : 0};
    for (const TableRow& row : rows) {
      SCOPED_TRACE(row.at("name"));
      const Layer layer = LayerOf(row);
      const auto even = LeastBytes(layer, machine, Space::kS1, Buffers::kSingle);
      const auto found = LeastBytesUneven(layer, machine, Buffers::kSingle, 2 * kBudget);
      ASSERT_TRUE(even && found);
      EXPECT_TRUE(found->proven);
      EXPECT_LE(found->bytes, even->bytes);
      EXPECT_GE(found->bytes, CompulsoryBytes(layer));
      better += found->bytes < even->bytes ? 1 : 0;
      // A bound of a search that hardly began holds.
      const auto cut_short = LeastBytesUneven(layer, machine, Buffers::kSingle, 6);
      EXPECT_LE(cut_short->lower_bound, found->bytes);
      EXPECT_GE(cut_short->lower_bound, CompulsoryBytes(layer));
    }
  }
  EXPECT_EQ(better, 3);
}

TEST(Uneven, MapLayerTakesBytesOnAnIdealTargetAlone) {
  const Layer layer = {.M = 8, .C = 8, .E = 8, .H = 8};
  const auto ideal = machine::LoadTarget("edge32-ideal", {});
  const auto real = machine::LoadTarget("edge32", {});
  ASSERT_TRUE(ideal.ok() && real.ok());
  MapOptions options;
  ASSERT_TRUE(ParseSpace("uneven", &options).ok());
  EXPECT_EQ(MapLayer(layer, *ideal, options).status().code(), ErrorCode::kUsage);
  options.objective = Objective::kTraffic;
  EXPECT_EQ(MapLayer(layer, *real, options).status().code(), ErrorCode::kUsage);
  const auto mapped = MapLayer(layer, *ideal, options);
  ASSERT_TRUE(mapped.ok());
  ASSERT_TRUE(mapped->uneven.has_value());
  EXPECT_EQ(mapped->uneven->bytes, 3 * 64);
  EXPECT_TRUE(mapped->proven);
  options.method = SearchMethod::kCompiler;
  EXPECT_EQ(MapLayer(layer, *ideal, options).status().code(), ErrorCode::kUsage);
}

}  // namespace
}  // namespace dla::scheduler
