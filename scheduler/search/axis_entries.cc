#include "scheduler/search/axis_entries.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "scheduler/block_candidates.h"

namespace dla::scheduler {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Adds what one filter block contributes. All tiles but those that reach over an edge have the same
// length, so only the latter are looked at one by one.
void AddFilterBlock(const WindowAxis& axis, int64_t tap, int64_t taps, AxisEntry* entry) {
  const int64_t s = axis.stride;
  const int64_t reach = (taps - 1) * axis.dilation + 1;
  const int64_t offset = tap * axis.dilation - axis.pad;
  const int64_t last = entry->count - 1;
  const int64_t full = (entry->block - 1) * s + reach;
  const int64_t step = entry->block * s;
  const int64_t tail = (axis.extent - last * entry->block - 1) * s + reach;
  int64_t sum = last * full + tail;
  int64_t first_whole = 0;  // tiles before this one begin in the padding
  const auto length = [&](int64_t i) {
    const int64_t begin = i * step + offset;
    const int64_t end = begin + (i == last ? tail : full);
    return std::max<int64_t>(0, std::min(axis.real, end) - std::max<int64_t>(0, begin));
  };
  for (; first_whole <= last && first_whole * step + offset < 0; ++first_whole) {
    sum -= (first_whole == last ? tail : full) - length(first_whole);
    entry->lines = std::max(entry->lines, length(first_whole));
  }
  int64_t whole_end = last + 1;  // tiles from here on end in the padding
  while (whole_end > first_whole) {
    const int64_t i = whole_end - 1;
    if (i * step + offset + (i == last ? tail : full) <= axis.real) break;
    sum -= (i == last ? tail : full) - length(i);
    entry->lines = std::max(entry->lines, length(i));
    --whole_end;
  }
  if (first_whole < whole_end) {
    entry->lines = std::max(entry->lines, first_whole == last ? tail : full);
  }
  entry->sum += sum;
  if (reach < s) {
    entry->rolled += sum;  // neighbours share nothing
  } else {
    const int64_t end = std::min(axis.real, (axis.extent - 1) * s + reach + offset);
    entry->rolled += std::max<int64_t>(0, end - std::max<int64_t>(0, offset));
  }
}

}  // namespace

LineRange TileLines(const WindowAxis& axis, int64_t begin, int64_t size, int64_t tap,
                    int64_t tap_size) {
  const int64_t lo = begin * axis.stride + tap * axis.dilation - axis.pad;
  const int64_t hi = lo + (size - 1) * axis.stride + (tap_size - 1) * axis.dilation + 1;
  const int64_t first = std::clamp<int64_t>(lo, 0, axis.real);
  return {first, std::max(first, std::min(hi, axis.real))};
}

int64_t TouchedLines(const WindowAxis& axis) {
  // Marking is simplest: windows overlap in every way with stride, dilation and padding.
  std::vector<bool> used(static_cast<size_t>(axis.real));
  for (int64_t e = 0; e < axis.extent; ++e) {
    for (int64_t r = 0; r < axis.taps; ++r) {
      const int64_t line = e * axis.stride + r * axis.dilation - axis.pad;
      if (line >= 0 && line < axis.real) used[static_cast<size_t>(line)] = true;
    }
  }
  return std::count(used.begin(), used.end(), true);
}

std::vector<int64_t> AllSizes(int64_t extent) {
  std::vector<int64_t> all(static_cast<size_t>(extent));
  std::iota(all.begin(), all.end(), 1);
  return all;
}

std::vector<AxisEntry> AxisEntries(const WindowAxis& axis, bool every_size) {
  const auto sizes = [&](int64_t extent) {
    return every_size ? AllSizes(extent) : CriticalSizes(extent);
  };
  const std::vector<int64_t> blocks = sizes(axis.extent);
  const std::vector<int64_t> tap_blocks = sizes(axis.taps);
  std::vector<AxisEntry> entries;
  entries.reserve(blocks.size() * tap_blocks.size());
  for (const int64_t tap_block : tap_blocks) {
    for (const int64_t block : blocks) {
      AxisEntry entry{.block = block,
                      .tap_block = tap_block,
                      .count = CeilDiv(axis.extent, block),
                      .tap_count = CeilDiv(axis.taps, tap_block)};
      for (int64_t tap = 0; tap < axis.taps; tap += tap_block) {
        AddFilterBlock(axis, tap, std::min(tap_block, axis.taps - tap), &entry);
      }
      entries.push_back(entry);
    }
  }
  return entries;
}

void KeepParetoSorted(std::vector<AxisEntry>* entries) {
  // A smaller block means more blocks unless the counts are equal, so only entries with the same
  // two counts can match one another in both.
  const auto key = [](const AxisEntry& e) {
    return std::tuple(e.tap_count, e.count, e.tap_block, e.block);
  };
  std::sort(entries->begin(), entries->end(),
            [&](const AxisEntry& a, const AxisEntry& b) { return key(a) < key(b); });
  std::vector<AxisEntry> kept;
  kept.reserve(entries->size());
  size_t group = 0;
  for (const AxisEntry& e : *entries) {
    if (!kept.empty() && (kept[group].count != e.count || kept[group].tap_count != e.tap_count)) {
      group = kept.size();
    }
    const bool dominated =
        std::any_of(kept.begin() + static_cast<int64_t>(group), kept.end(), [&](const auto& k) {
          return k.block <= e.block && k.tap_block <= e.tap_block && k.lines <= e.lines &&
                 k.sum <= e.sum && k.rolled <= e.rolled;
        });
    if (!dominated) kept.push_back(e);
  }
  std::sort(kept.begin(), kept.end(), [&](const AxisEntry& a, const AxisEntry& b) {
    return std::tuple(a.least(), key(a)) < std::tuple(b.least(), key(b));
  });
  *entries = std::move(kept);
}

}  // namespace dla::scheduler
