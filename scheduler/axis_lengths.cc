#include "scheduler/axis_lengths.h"

#include <algorithm>
#include <utility>

#include "support/checked.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// An axis that is exactly one dimension: blocks of the full size and perhaps one remainder.
bool IsPlain(const ir::Nest& nest, const ir::Axis& axis) {
  return axis.terms.size() == 1 && axis.terms[0].coefficient == 1 && axis.offset == 0 &&
         axis.bound >= nest.dimensions[At(axis.terms[0].dimension)].extent;
}

// Few lengths occur: a list is faster than a tree.
void Add(int64_t length, int64_t count, std::vector<AxisLengths::Entry>* entries) {
  for (AxisLengths::Entry& entry : *entries) {
    if (entry.length != length) continue;
    entry.count += count;
    return;
  }
  entries->push_back({length, count});
}

AxisLengths Summarise(std::vector<AxisLengths::Entry> entries) {
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.length < b.length; });
  AxisLengths lengths = {.entries = std::move(entries)};
  for (const auto& [length, count] : lengths.entries) {
    lengths.sum += length * count;
    if (length > 0) lengths.present += count;
    lengths.longest = std::max(lengths.longest, length);
  }
  return lengths;
}

// Entries of an axis that any point of the nest touches, one after the other.
int64_t CountTouched(const ir::Nest& nest, const ir::Axis& axis) {
  std::vector<bool> touched(static_cast<size_t>(axis.bound), false);
  const std::vector<int64_t> ones(nest.dimensions.size(), 1);
  std::vector<int64_t> index(nest.dimensions.size(), 0);
  size_t t = 0;
  do {
    const Interval interval = AxisInterval(nest, axis, ones, index);
    if (interval.length() > 0) touched[static_cast<size_t>(interval.begin)] = true;
    for (t = 0; t < axis.terms.size(); ++t) {
      const size_t d = At(axis.terms[t].dimension);
      if (++index[d] < nest.dimensions[d].extent) break;
      index[d] = 0;
    }
  } while (t < axis.terms.size());
  return std::count(touched.begin(), touched.end(), true);
}

}  // namespace

Interval AxisInterval(const ir::Nest& nest, const ir::Axis& axis, const Blocks& blocks,
                      std::span<const int64_t> index) {
  int64_t first = axis.offset;
  int64_t last = axis.offset;
  for (const ir::Term& term : axis.terms) {
    const size_t d = At(term.dimension);
    const int64_t start = blocks.Start(term.dimension, index[d]);
    const int64_t length = blocks.Length(nest, term.dimension, index[d]);
    first += term.coefficient * start;
    last += term.coefficient * (start + length - 1);
  }
  const int64_t begin = std::clamp<int64_t>(first, 0, axis.bound);
  return {begin, std::max(begin, std::min(last + 1, axis.bound))};
}

Interval RolledInterval(const ir::Nest& nest, const ir::Axis& axis, const Blocks& blocks,
                        std::span<const int64_t> index, int rolling) {
  Interval interval = AxisInterval(nest, axis, blocks, index);
  const bool rolls = std::any_of(axis.terms.begin(), axis.terms.end(),
                                 [&](const ir::Term& t) { return t.dimension == rolling; });
  if (!rolls || index[At(rolling)] == 0) return interval;
  std::vector<int64_t> before(index.begin(), index.end());
  --before[At(rolling)];
  const Interval previous = AxisInterval(nest, axis, blocks, before);
  interval.begin = std::min(std::max(interval.begin, previous.end), interval.end);
  return interval;
}

AxisLengths LengthsOf(const ir::Nest& nest, const ir::Axis& axis, const Blocks& blocks,
                      int rolling) {
  std::vector<AxisLengths::Entry> counts;
  if (IsPlain(nest, axis)) {
    const int d = axis.terms[0].dimension;
    const int64_t count = blocks.Count(nest, d);
    Add(blocks.Length(nest, d, 0), 1, &counts);
    if (count > 1) Add(blocks.Length(nest, d, count - 1), 1, &counts);
    if (count > 2) Add(blocks.size[At(d)], count - 2, &counts);
    return Summarise(std::move(counts));
  }
  // All combinations of the blocks of the axis' dimensions, odometer fashion.
  std::vector<int64_t> index(nest.dimensions.size(), 0);
  while (true) {
    Add(RolledInterval(nest, axis, blocks, index, rolling).length(), 1, &counts);
    size_t t = 0;
    for (; t < axis.terms.size(); ++t) {
      const size_t d = At(axis.terms[t].dimension);
      if (++index[d] < blocks.Count(nest, axis.terms[t].dimension)) break;
      index[d] = 0;
    }
    if (t == axis.terms.size()) return Summarise(std::move(counts));
  }
}

int64_t TouchedEntries(const ir::Nest& nest, const ir::Axis& axis) {
  // The indices first, first + step, ... (count of them), as long as the terms, from the smallest
  // coefficient on, go on without gaps.
  const int64_t first = axis.offset;
  int64_t step = 1, count = 1;
  std::vector<std::pair<int64_t, int64_t>> terms;  // coefficient, extent
  for (const ir::Term& term : axis.terms) {
    const int64_t extent = nest.dimensions[At(term.dimension)].extent;
    if (extent > 1) terms.emplace_back(term.coefficient, extent);
  }
  std::sort(terms.begin(), terms.end());
  for (const auto& [coefficient, extent] : terms) {
    if (count == 1) step = coefficient;
    if (coefficient % step != 0 || coefficient > step * count) return CountTouched(nest, axis);
    count += coefficient / step * (extent - 1);
  }
  const int64_t low = first < 0 ? CeilDiv(-first, step) : 0;
  const int64_t high = first < axis.bound ? CeilDiv(axis.bound - first, step) : 0;
  return std::max<int64_t>(0, std::min(count, high) - low);
}

}  // namespace dla::scheduler
