#include "tests/scheduler/nest_walk.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace dla::testing {
namespace {

size_t At(int64_t i) { return static_cast<size_t>(i); }

using Tile = std::vector<int64_t>;  // block numbers of the dimensions that an operand depends on

struct Range {
  int64_t begin, end;
};

// The ranges of all dimensions in one step.
std::vector<Range> RangesOf(const ir::Nest& nest, const scheduler::Mapping& mapping,
                            const std::vector<int64_t>& index) {
  std::vector<Range> ranges;
  for (size_t d = 0; d < nest.dimensions.size(); ++d) {
    const int64_t begin = index[d] * mapping.block[d];
    ranges.push_back({begin, std::min(begin + mapping.block[d], nest.dimensions[d].extent)});
  }
  return ranges;
}

bool Depends(const ir::Operand& operand, size_t d) {
  for (const ir::Axis& axis : operand.axes) {
    for (const ir::Term& term : axis.terms) {
      if (At(term.dimension) == d) return true;
    }
  }
  return false;
}

// Every existing index along an axis that the ranges reach, holes of strides filled in.
std::set<int64_t> AxisIndices(const ir::Axis& axis, const std::vector<Range>& ranges) {
  int64_t low = axis.offset, high = axis.offset;
  for (const ir::Term& term : axis.terms) {
    low += term.coefficient * ranges[At(term.dimension)].begin;
    high += term.coefficient * (ranges[At(term.dimension)].end - 1);
  }
  std::set<int64_t> indices;
  for (int64_t i = low; i <= high; ++i) {
    if (i >= 0 && i < axis.bound) indices.insert(i);
  }
  return indices;
}

// Addresses (elements) of a tile in DRAM, sorted.
std::vector<int64_t> Addresses(const ir::Operand& operand, const std::vector<Range>& ranges) {
  std::vector<int64_t> addresses = {operand.base};
  for (const ir::Axis& axis : operand.axes) {
    std::vector<int64_t> next;
    for (const int64_t address : addresses) {
      for (const int64_t i : AxisIndices(axis, ranges)) next.push_back(address + i * axis.stride);
    }
    addresses = std::move(next);
  }
  std::sort(addresses.begin(), addresses.end());
  return addresses;
}

// Is the dimension one of those that number a gathered operand's indices?
bool Gathers(const ir::Nest& nest, const ir::Operand& operand, size_t d) {
  return operand.gather && Depends(nest.operands[At(operand.gather->indices)], d);
}

// Bytes on the bus: each run of consecutive addresses rounded up to bursts; a packed tile is one.
int64_t BusBytes(const std::vector<int64_t>& addresses, int64_t element_bytes, int64_t burst,
                 bool packed) {
  int64_t bytes = 0;
  int64_t run = 0;
  for (size_t i = 0; i < addresses.size(); ++i) {
    ++run;
    const bool ends = i + 1 == addresses.size() || addresses[i + 1] != addresses[i] + 1;
    if (packed ? i + 1 == addresses.size() : ends) {
      bytes += (run * element_bytes + burst - 1) / burst * burst;
      run = 0;
    }
  }
  return bytes;
}

struct Moved {
  int64_t cycles_bytes[2] = {0, 0};  // bus bytes by overlapping (1) or not (0)
  int64_t descriptors[2] = {0, 0};
};

class Walker {
 public:
  Walker(const ir::Nest& nest, const scheduler::Mapping& mapping, const machine::Target& target)
      : nest_(nest), mapping_(mapping), target_(target) {
    walk_.operands.resize(nest.operands.size() + 1);
    held_.resize(nest.operands.size());
  }

  Walk Run() {
    CountTiles();
    std::vector<int64_t> index(nest_.dimensions.size(), 0);
    bool more = true;
    while (more) {
      Step(index);
      ++walk_.steps;
      const std::vector<int64_t> now = index;
      more = Advance(&index);
      EndStep(now, more ? &index : nullptr);
    }
    walk_.cycles = Time();
    return walk_;
  }

 private:
  size_t output() const { return nest_.operands.size() - 1; }
  bool Contracts() const { return nest_.anchor == ir::Anchor::kContraction; }
  bool Reduces(size_t d) const { return !Depends(nest_.operands.back(), d); }
  int64_t Count(size_t d) const {
    return (nest_.dimensions[d].extent + mapping_.block[d] - 1) / mapping_.block[d];
  }

  bool Advance(std::vector<int64_t>* index) const {
    for (size_t k = mapping_.order.size(); k-- > 0;) {
      const size_t d = At(mapping_.order[k]);
      if (++(*index)[d] < Count(d)) return true;
      (*index)[d] = 0;
    }
    return false;
  }

  Tile TileOf(size_t operand, const std::vector<int64_t>& index) const {
    Tile tile;
    for (size_t d = 0; d < index.size(); ++d) {
      if (Depends(nest_.operands[operand], d)) tile.push_back(index[d]);
    }
    return tile;
  }

  bool AtFirstReduction(const std::vector<int64_t>& index) const {
    for (size_t d = 0; d < index.size(); ++d) {
      if (Reduces(d) && index[d] != 0) return false;
    }
    return true;
  }
  bool AtLastReduction(const std::vector<int64_t>& index) const {
    for (size_t d = 0; d < index.size(); ++d) {
      if (Reduces(d) && index[d] + 1 != Count(d)) return false;
    }
    return true;
  }

  // An operand that has one tile in all moves once and never waits for the step before.
  void CountTiles() {
    for (size_t o = 0; o < nest_.operands.size(); ++o) {
      int64_t tiles = 1;
      for (size_t d = 0; d < nest_.dimensions.size(); ++d) {
        if (Depends(nest_.operands[o], d)) tiles *= Count(d);
      }
      one_tile_.push_back(tiles == 1);
    }
  }
  bool Overlaps(size_t o) const { return one_tile_[o] || mapping_.operands[o].is_double; }
  bool AccumulatorsOverlap() const { return one_tile_[output()] || mapping_.accumulator.is_double; }
  bool InPlace() const {
    return Contracts() && mapping_.operands[output()].memory == mapping_.accumulator.memory;
  }

  void Move(size_t entry, const ir::Operand& operand, int64_t element_bytes, bool packed,
            bool store, bool overlaps, const std::vector<int64_t>& index, Moved* moved) {
    const std::vector<int64_t> addresses = Addresses(operand, RangesOf(nest_, mapping_, index));
    if (addresses.empty()) return;
    const int64_t bytes = static_cast<int64_t>(addresses.size()) * element_bytes;
    const int64_t bus = BusOf(operand, RangesOf(nest_, mapping_, index), 0, element_bytes, packed);
    Walk::PerOperand& counts = walk_.operands[entry];
    (store ? counts.store_bytes : counts.load_bytes) += bytes;
    (store ? counts.store_bus_bytes : counts.load_bus_bytes) += bus;
    ++counts.descriptors;
    counts.largest_tile = std::max(counts.largest_tile, static_cast<int64_t>(addresses.size()));
    moved->cycles_bytes[overlaps ? 1 : 0] += bus;
    ++moved->descriptors[overlaps ? 1 : 0];
  }

  // Dimensions from `d` on; of a gathered operand each index by itself.
  int64_t BusOf(const ir::Operand& operand, std::vector<Range> ranges, size_t d,
                int64_t element_bytes, bool packed) const {
    while (d < ranges.size() && !Gathers(nest_, operand, d)) ++d;
    if (d == ranges.size()) {
      return BusBytes(Addresses(operand, ranges), element_bytes, target_.dram.burst_bytes, packed);
    }
    int64_t bytes = 0;
    const Range whole = ranges[d];
    for (int64_t i = whole.begin; i < whole.end; ++i) {
      ranges[d] = {i, i + 1};
      bytes += BusOf(operand, ranges, d + 1, element_bytes, packed);
    }
    return bytes;
  }

  int64_t PartialBytes() const {
    return TypeBytes(target_.array.accumulator.at(nest_.operands[0].type), 1);
  }

  void Step(const std::vector<int64_t>& index) {
    Moved loads;
    const bool drains = !Contracts() || AtLastReduction(index);
    for (size_t o = 0; o < output(); ++o) {
      const bool is_bias = Contracts() && static_cast<int>(o) == nest_.bias;
      const bool fused = Contracts() && o > 1 && !is_bias;
      if ((is_bias && !AtFirstReduction(index)) || (fused && !drains)) continue;
      if (held_[o] == TileOf(o, index)) continue;
      held_[o] = TileOf(o, index);
      Move(o, nest_.operands[o], TypeBytes(nest_.operands[o].type, 1),
           o == 1 && nest_.operands[o].is_constant && Contracts(), false, Overlaps(o), index,
           &loads);
    }
    const Tile tile = TileOf(output(), index);
    if (Contracts() && current_ != tile && begun_.count(tile) != 0) {
      Move(nest_.operands.size(), nest_.operands.back(), PartialBytes(), true, false,
           AccumulatorsOverlap(), index, &loads);
    }
    current_ = tile;
    begun_.insert(tile);
    loads_.push_back(loads);
    compute_.push_back(Compute(index, drains));
  }

  // What leaves after the step: a finished tile, or one that makes room for another.
  void EndStep(const std::vector<int64_t>& index, const std::vector<int64_t>* next) {
    Moved stores;
    const bool done = !Contracts() || AtLastReduction(index);
    if (done) {
      const bool overlaps = InPlace() ? AccumulatorsOverlap() : Overlaps(output());
      Move(output(), nest_.operands.back(), TypeBytes(nest_.operands.back().type, 1), false, true,
           overlaps, index, &stores);
    } else if (next != nullptr && TileOf(output(), *next) != TileOf(output(), index)) {
      Move(nest_.operands.size(), nest_.operands.back(), PartialBytes(), true, true,
           AccumulatorsOverlap(), index, &stores);
    }
    stores_.push_back(stores);
  }

  // Output stationary only.
  int64_t Compute(const std::vector<int64_t>& index, bool drains) {
    if (!Contracts()) return 0;
    int64_t groups = 1, pixels = 1, channels = 1, depth = 1, points = 1;
    const std::vector<Range> ranges = RangesOf(nest_, mapping_, index);
    for (size_t d = 0; d < ranges.size(); ++d) {
      const int64_t length = ranges[d].end - ranges[d].begin;
      const bool x = Depends(nest_.operands[0], d);
      const bool w = Depends(nest_.operands[1], d);
      if (Reduces(d)) {
        depth *= length;
        continue;
      }
      points *= length;
      (x && w ? groups : x ? pixels : channels) *= length;
    }
    walk_.macs += groups * pixels * channels * depth;
    const auto up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
    const machine::Rational rate =
        target_.array.rates.at({nest_.operands[0].type, nest_.operands[1].type});
    const int64_t fold =
        up(depth * rate.denominator, rate.numerator) + target_.array.rows + target_.array.cols - 2;
    int64_t cycles =
        groups * up(pixels, target_.array.rows) * up(channels, target_.array.cols) * fold;
    // A fused residual is one addition a point on the vector engine.
    const bool adds =
        std::any_of(nest_.program.ops.begin(), nest_.program.ops.end(),
                    [](const MicroInstruction& op) { return op.op == MicroOp::kAdd; });
    if (adds && drains) cycles += target_.vector.startup_cycles + up(points, target_.vector.lanes);
    return cycles;
  }

  int64_t BusTime(const Moved& moved, int overlaps) const {
    if (moved.descriptors[overlaps] == 0) return 0;
    const machine::Rational rate = target_.dram.bytes_per_cycle;
    return moved.descriptors[overlaps] * target_.dma_startup_cycles +
           (moved.cycles_bytes[overlaps] * rate.denominator + rate.numerator - 1) / rate.numerator;
  }

  // All transfers in the order of the bus; each starts when the bus is free and the step that it
  // waits for has ended.
  int64_t Time() const {
    const int64_t steps = walk_.steps;
    std::vector<int64_t> end(At(steps), 0);
    const auto ended = [&](int64_t i) { return i < 0 ? 0 : end[At(std::min(i, steps - 1))]; };
    int64_t bus = 0;
    for (int64_t i = 0; i < steps + 2; ++i) {
      int64_t start = ended(i - 1);
      const auto serve = [&](int64_t cycles, int64_t after, int64_t latency) {
        if (cycles == 0) return;
        bus = std::max(bus, ended(after)) + cycles;
        start = std::max(start, bus + latency);
      };
      const int64_t latency = target_.dram.latency_cycles;
      if (i >= 2) serve(BusTime(stores_[At(i - 2)], 1), i - 2, 0);
      if (i < steps) serve(BusTime(loads_[At(i)], 1), i - 2, latency);
      if (i >= 1 && i - 1 < steps) serve(BusTime(stores_[At(i - 1)], 0), i - 1, 0);
      if (i < steps) serve(BusTime(loads_[At(i)], 0), i - 1, latency);
      if (i < steps) end[At(i)] = start + compute_[At(i)];
    }
    return std::max(bus, end.back());
  }

  const ir::Nest& nest_;
  const scheduler::Mapping& mapping_;
  const machine::Target& target_;
  Walk walk_;
  std::vector<bool> one_tile_;
  std::vector<std::optional<Tile>> held_;
  std::optional<Tile> current_;
  std::set<Tile> begun_;
  std::vector<Moved> loads_, stores_;
  std::vector<int64_t> compute_;
};

}  // namespace

Walk WalkNest(const ir::Nest& nest, const scheduler::Mapping& mapping,
              const machine::Target& target) {
  return Walker(nest, mapping, target).Run();
}

}  // namespace dla::testing
