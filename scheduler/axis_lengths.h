// How long an operand's axis is in each tile: the closed form behind bytes and buffer sizes.
//
// The axis of a tile covers the indices from the first to the last that its dimensions' blocks
// reach (a halo is what reaches beyond the block itself), cut to [0, bound). This is where a
// convolution's halo and padding are worked out for the scheduler; the machine does the same from
// the descriptors (machine/program.h, "Tile coordinates"). MAPPING notes: docs/SCHEDULER.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/nest.h"
#include "scheduler/mapping.h"

namespace dla::scheduler {

// The clipped interval [begin, end) of an axis for given blocks; empty where begin == end.
struct Interval {
  int64_t begin = 0, end = 0;
  int64_t length() const { return end - begin; }
};

// `index` holds the block's number in each dimension.
Interval AxisInterval(const ir::Nest& nest, const ir::Axis& axis, const Blocks& blocks,
                      std::span<const int64_t> index);

// The same for an operand that rolls along dimension `rolling`: from its second block on, only the
// lines that the block before did not have.
Interval RolledInterval(const ir::Nest& nest, const ir::Axis& axis, const Blocks& blocks,
                        std::span<const int64_t> index, int rolling);

// The lengths that occur over all combinations of the axis' blocks, with how often each occurs.
struct AxisLengths {
  struct Entry {
    int64_t length = 0;
    int64_t count = 0;
  };
  std::vector<Entry> entries;  // increasing length; length 0 (clipped to nothing) included
  int64_t sum = 0;             // of length * count
  int64_t longest = 0;
  int64_t present = 0;  // combinations with length > 0
};
// `rolling`: dimension along which the operand rolls, or -1.
AxisLengths LengthsOf(const ir::Nest& nest, const ir::Axis& axis, const Blocks& blocks,
                      int rolling);

// How many different indices in [0, bound) the axis takes over the whole nest.
int64_t TouchedEntries(const ir::Nest& nest, const ir::Axis& axis);

}  // namespace dla::scheduler
