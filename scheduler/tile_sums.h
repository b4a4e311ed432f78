// Sums over all tiles of some dimensions. Internal to the cost model.
#pragma once

#include <cstdint>
#include <span>

#include "ir/nest.h"

namespace dla::scheduler {

// Sum over all tiles of `dims` of per_tile(product of the tile's lengths): every dimension has
// blocks of the full size and perhaps one remainder, so at most 2^(dimensions) cases. Begins at
// dimension d with `points` the product so far.
template <typename PerTile>
int64_t SumOverTiles(const ir::Nest& nest, std::span<const int64_t> block, uint32_t dims, size_t d,
                     int64_t points, const PerTile& per_tile) {
  while (d < block.size() && !(dims & (uint32_t{1} << d))) ++d;
  if (d == block.size()) return per_tile(points);
  const int64_t extent = nest.dimensions[d].extent;
  const int64_t whole = extent / block[d];
  const int64_t rest = extent % block[d];
  int64_t sum = 0;
  if (whole > 0) {
    sum += whole * SumOverTiles(nest, block, dims, d + 1, points * block[d], per_tile);
  }
  if (rest > 0) sum += SumOverTiles(nest, block, dims, d + 1, points * rest, per_tile);
  return sum;
}

}  // namespace dla::scheduler
