#include "machine/tile.h"

#include <algorithm>
#include <array>

#include "support/checked.h"

namespace dla::machine {
namespace {

// A term whose dimension has more than one block.
struct LoopedTerm {
  int64_t coefficient;
  const DimDesc* dim;
  int64_t count;

  int64_t FirstOf(int64_t index) const { return coefficient * dim->start(index); }
  int64_t SpanOf(int64_t index) const { return coefficient * (dim->length(index) - 1); }
};

// Indices first..first + span, clipped to [0, bound).
int64_t Clipped(int64_t first, int64_t span, int64_t bound) {
  return std::max<int64_t>(std::min(first + span, bound - 1) - std::max<int64_t>(first, 0) + 1, 0);
}

// The longest extent over the blocks of one term. Over full blocks the clipped extent is a concave
// function of the block's start (a minimum of lines minus a maximum of lines), so its largest value
// is next to where clipping below ends or clipping above begins; the last block may be short.
int64_t LongestOverBlocks(const LoopedTerm& term, int64_t first, int64_t span, int64_t bound) {
  const int64_t unit = term.coefficient * term.dim->block;
  const int64_t full_span = span + term.coefficient * (term.dim->block - 1);
  const int64_t origin = first + term.coefficient * term.dim->lead;  // of blocks 1, 2, ...
  const int64_t below = -origin / unit;
  const int64_t above = (bound - 1 - full_span - origin) / unit;
  const std::array<int64_t, 10> candidates = {
      0,         1,     below - 1, below,          below + 1,
      above - 1, above, above + 1, term.count - 2, term.count - 1};
  int64_t longest = 0;
  for (const int64_t candidate : candidates) {
    const int64_t index = std::clamp<int64_t>(candidate, 0, term.count - 1);
    longest =
        std::max(longest, Clipped(first + term.FirstOf(index), span + term.SpanOf(index), bound));
  }
  return longest;
}

// All combinations of the terms from `next` on; the last term is done in closed form.
int64_t LongestOver(const std::vector<LoopedTerm>& terms, size_t next, int64_t first, int64_t span,
                    int64_t bound) {
  if (terms.empty()) return Clipped(first, span, bound);
  if (next + 1 == terms.size()) return LongestOverBlocks(terms[next], first, span, bound);
  int64_t longest = 0;
  for (int64_t index = 0; index < terms[next].count; ++index) {
    longest = std::max(longest, LongestOver(terms, next + 1, first + terms[next].FirstOf(index),
                                            span + terms[next].SpanOf(index), bound));
  }
  return longest;
}

}  // namespace

int64_t LongestExtent(const Group& group, const AxisDesc& axis) {
  std::vector<LoopedTerm> looped;
  int64_t span = 0, unclipped = 1;
  for (const TermDesc& term : axis.terms) {
    const DimDesc& dim = group.dims[term.dim];
    unclipped += term.coefficient * (dim.block + dim.lead - 1);
    if (dim.count() > 1) {
      looped.push_back({term.coefficient, &dim, dim.count()});
    } else {
      span += term.coefficient * (dim.extent - 1);
    }
  }
  std::sort(looped.begin(), looped.end(),
            [](const LoopedTerm& a, const LoopedTerm& b) { return a.count < b.count; });
  int64_t combinations = 1;
  for (size_t t = 0; t + 1 < looped.size(); ++t) {
    if (looped[t].count > kMaxBlockCombinations / combinations) {
      return std::min(unclipped, axis.bound);
    }
    combinations *= looped[t].count;
  }
  return LongestOver(looped, 0, axis.offset, span, axis.bound);
}

std::optional<int64_t> TileElements(const Group& group, const OperandDesc& operand) {
  const bool panels = operand.local_layout == LocalLayout::kPanels;
  int64_t elements = 1;
  bool empty = false;
  for (const AxisDesc& axis : operand.axes) {
    int64_t extent = operand.resident ? LinesOnChip(axis) : LongestExtent(group, axis);
    empty = empty || extent == 0;
    extent = std::max<int64_t>(extent, 1);
    std::optional<int64_t> next;
    if (panels) {
      next = CheckedMul(elements, extent);
    } else if (const auto reach = CheckedMul(extent - 1, axis.local_stride)) {
      next = CheckedAdd(elements, *reach);
    }
    if (!next) return std::nullopt;
    elements = *next;
  }
  return empty ? 0 : elements;
}

uint16_t DimsOf(const OperandDesc& operand) {
  unsigned mask = 0;
  for (const AxisDesc& axis : operand.axes) {
    for (const TermDesc& term : axis.terms) mask |= 1u << term.dim;
  }
  return static_cast<uint16_t>(mask);
}

std::optional<int64_t> StepCount(const Group& group) {
  int64_t steps = 1;
  for (const uint8_t dim : group.loops) {
    const int64_t count = group.dims[dim].count();
    if (count > kMaxSteps / steps) return std::nullopt;
    steps *= count;
  }
  return steps;
}

}  // namespace dla::machine
