// How an output axis and its kernel axis can be cut together, and which input lines that loads.
#pragma once

#include <cstdint>
#include <vector>

namespace dla::scheduler {

// Rows E with filter rows R over H input lines; columns likewise.
struct WindowAxis {
  int64_t extent = 1, taps = 1;
  int64_t stride = 1, dilation = 1, pad = 0;
  int64_t real = 1;  // input lines that exist

  bool operator==(const WindowAxis&) const = default;
};

struct AxisEntry {
  int64_t block = 1, tap_block = 1;
  int64_t count = 1, tap_count = 1;
  int64_t lines = 0;   // of the longest tile, clipped: the room that it needs
  int64_t sum = 0;     // lines of all tiles
  int64_t rolled = 0;  // lines loaded if tiles keep what they share with the one before
  int64_t least() const { return rolled < sum ? rolled : sum; }
};

// Input lines of the tile of outputs [begin, begin + size) and taps [tap, tap + tap_size), clipped.
struct LineRange {
  int64_t begin = 0, end = 0;
};
LineRange TileLines(const WindowAxis& axis, int64_t begin, int64_t size, int64_t tap,
                    int64_t tap_size);

// Lines that some output uses.
int64_t TouchedLines(const WindowAxis& axis);

// 1 .. extent.
std::vector<int64_t> AllSizes(int64_t extent);

// All pairs of sizes; `every_size`: all integers, else ceil(D / n).
std::vector<AxisEntry> AxisEntries(const WindowAxis& axis, bool every_size);

// Drops entries that another one matches in every respect (counts, room, lines) and sorts the rest
// by the lines they load.
void KeepParetoSorted(std::vector<AxisEntry>* entries);

}  // namespace dla::scheduler
