#include "runtime/tile.h"

#include <algorithm>

#include "machine/tile.h"

namespace dla::runtime {

using machine::AxisDesc;
using machine::DramLayout;
using machine::Group;
using machine::OperandDesc;

bool Tile::clipped() const {
  for (int a = 0; a < axes; ++a) {
    const auto i = static_cast<size_t>(a);
    if (length[i] != hull[i]) return true;
  }
  return false;
}

Tile TileOf(const Group& group, const OperandDesc& operand, const Step& step) {
  Tile tile;
  tile.axes = static_cast<int>(operand.axes.size());
  tile.elements = 1;
  for (size_t a = 0; a < operand.axes.size(); ++a) {
    const AxisDesc& axis = operand.axes[a];
    int64_t first = axis.offset;
    int64_t last = axis.offset;
    for (const machine::TermDesc& term : axis.terms) {
      first += term.coefficient * step.start[term.dim];
      last += term.coefficient * (step.start[term.dim] + step.length[term.dim] - 1);
    }
    tile.first[a] = first;
    tile.hull[a] = last - first + 1;
    tile.begin[a] = std::max<int64_t>(first, 0);
    tile.length[a] = std::max<int64_t>(std::min(last, axis.bound - 1) - tile.begin[a] + 1, 0);
    tile.local_begin[a] = operand.resident ? 0 : tile.begin[a];
    tile.elements *= tile.length[a];
  }
  for (const uint8_t d : group.loops) {
    if ((operand.generation_dims >> d & 1) == 0) continue;
    tile.generation = tile.generation * group.dims[d].count() + step.block[d];
  }
  const int64_t slot = tile.generation % operand.ring_slots;
  tile.address = operand.address + slot * operand.slot_bytes;
  return tile;
}

Tile LoadedTileOf(const Group& group, const OperandDesc& operand, const Step& step) {
  Tile tile = TileOf(group, operand, step);
  if (operand.rolling_dims == 0) return tile;
  tile.elements = 1;
  for (size_t a = 0; a < operand.axes.size(); ++a) {
    const AxisDesc& axis = operand.axes[a];
    // The end of the axis' interval with each rolling dimension one block back.
    int64_t last = tile.first[a] + tile.hull[a] - 1;
    bool rolls = false;
    for (const machine::TermDesc& term : axis.terms) {
      const int64_t block = step.block[term.dim];
      if ((operand.rolling_dims >> term.dim & 1) == 0 || block == 0) continue;
      rolls = true;
      last -= term.coefficient * step.length[term.dim];
    }
    if (rolls) {
      const int64_t end = tile.begin[a] + tile.length[a];
      const int64_t before = std::max<int64_t>(std::min(last + 1, axis.bound), 0);
      tile.begin[a] = std::min(std::max(tile.begin[a], before), end);
      tile.length[a] = end - tile.begin[a];
    }
    tile.elements *= tile.length[a];
  }
  return tile;
}

std::vector<Tile> PiecesOf(const OperandDesc& operand, const Tile& tile) {
  for (size_t a = 0; a < operand.axes.size(); ++a) {
    const int64_t ring = operand.axes[a].ring;
    if (ring == 0 || tile.elements == 0) continue;
    const int64_t before_end = ring - tile.begin[a] % ring;
    if (tile.length[a] <= before_end) break;
    Tile low = tile;
    Tile high = tile;
    low.length[a] = before_end;
    high.begin[a] += before_end;
    high.length[a] -= before_end;
    low.elements = tile.elements / tile.length[a] * low.length[a];
    high.elements = tile.elements - low.elements;
    return {low, high};
  }
  return {tile};
}

int64_t LocalOffset(const OperandDesc& operand, const Tile& tile) {
  int64_t offset = 0;
  for (size_t a = 0; a < operand.axes.size(); ++a) {
    const int64_t ring = operand.axes[a].ring;
    const int64_t line = ring > 0 ? tile.begin[a] % ring : tile.begin[a] - tile.local_begin[a];
    offset += line * operand.axes[a].local_stride;
  }
  return offset;
}

int64_t DramOffset(const OperandDesc& operand, const Tile& tile) {
  int64_t offset = operand.dram_base;
  if (operand.dram_layout == DramLayout::kStrided) {
    for (size_t a = 0; a < operand.axes.size(); ++a) {
      offset += tile.begin[a] * operand.axes[a].dram_stride;
    }
    return offset;
  }
  // Tiles of earlier blocks lie before this one, axis by axis: see machine/program.h, kPacked.
  int64_t inner = 1;
  for (const AxisDesc& axis : operand.axes) inner *= axis.bound;
  int64_t outer = 1;
  for (size_t a = 0; a < operand.axes.size(); ++a) {
    inner /= operand.axes[a].bound;
    offset += outer * tile.begin[a] * inner;
    outer *= tile.length[a];
  }
  return offset;
}

uint32_t GatheredAxes(const Group& group, const OperandDesc& operand) {
  if (!operand.gather) return 0;
  const uint32_t dims = machine::DimsOf(group.operands[operand.gather->indices]);
  uint32_t mask = 0;
  for (size_t a = 0; a < operand.axes.size(); ++a) {
    for (const machine::TermDesc& term : operand.axes[a].terms) {
      if ((dims >> term.dim & 1) != 0) mask |= uint32_t{1} << a;
    }
  }
  return mask;
}

Runs RunsOf(const Group& group, const OperandDesc& operand, const Tile& tile) {
  if (tile.elements == 0) return {};
  if (operand.dram_layout == DramLayout::kPacked) return {tile.elements, 1};
  // Axes by ascending stride; the run grows while the next axis continues exactly where it ends.
  std::array<std::pair<int64_t, int64_t>, machine::kMaxAxes> axes{};
  size_t count = 0;
  const uint32_t gathered = GatheredAxes(group, operand);
  for (size_t a = 0; a < operand.axes.size(); ++a) {
    if (tile.length[a] <= 1 || (gathered >> a & 1U) != 0) continue;
    const std::pair<int64_t, int64_t> axis = {operand.axes[a].dram_stride, tile.length[a]};
    size_t place = count++;
    for (; place > 0 && axes[place - 1] > axis; --place) axes[place] = axes[place - 1];
    axes[place] = axis;
  }
  int64_t run = 1;
  for (size_t a = 0; a < count && axes[a].first == run; ++a) run *= axes[a].second;
  return {run, tile.elements / run};
}

}  // namespace dla::runtime
