#include "scheduler/search/uneven_choices.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "scheduler/block_candidates.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

// More pairs of blocks than this are not all looked at.
constexpr int64_t kMostPairs = 200'000;
// Of axes with more outputs times taps the kernel is whole or cut into single taps.
constexpr int64_t kMostWindows = int64_t{1} << 14;

// The two operands that have a dimension, the outer one first.
struct Owners {
  int outer = 0, inner = 0;
};

Owners OwnersOf(int irrelevant, const UnevenOrder& order) {
  const int a = irrelevant == 0 ? 1 : 0, b = irrelevant == 2 ? 1 : 2;
  return order[static_cast<size_t>(a)] < order[static_cast<size_t>(b)] ? Owners{a, b}
                                                                       : Owners{b, a};
}

int64_t CountOf(int64_t extent, int64_t outer, int64_t inner) {
  const int64_t whole = CeilDiv(extent, outer) - 1;
  return whole * CeilDiv(outer, inner) + CeilDiv(extent - whole * outer, inner);
}

// Room, visits and cuts that blocks of a dimension cause; input lines are the caller's.
void Apply(int64_t extent, int irrelevant, const UnevenOrder& order, const NestedBlocks& b,
           UnevenChoice* choice) {
  const Owners owners = OwnersOf(irrelevant, order);
  const auto outer = static_cast<size_t>(owners.outer), inner = static_cast<size_t>(owners.inner);
  const auto other = static_cast<size_t>(irrelevant);
  choice->room[outer] *= b.outer;
  choice->room[inner] *= b.inner;
  choice->cut[outer] = choice->cut[outer] || b.outer < extent;
  choice->cut[inner] = choice->cut[inner] || b.inner < extent;
  if (order[other] > order[outer]) {
    choice->times[other] *=
        order[other] > order[inner] ? CountOf(extent, b.outer, b.inner) : CeilDiv(extent, b.outer);
  }
}

// Enough where tiles share no lines: an argument for each place of the operand that the dimension
// is irrelevant to is in docs/MAPPING.md.
std::vector<NestedBlocks> CriticalPairs(int64_t extent) {
  std::vector<NestedBlocks> pairs;
  for (const int64_t size : CriticalSizes(extent)) {
    pairs.push_back({size, size});
    if (size > 1) pairs.push_back({size, 1});
    if (size < extent && size > 1) pairs.push_back({extent, size});
  }
  return pairs;
}

std::vector<NestedBlocks> AllPairs(int64_t extent) {
  std::vector<NestedBlocks> pairs;
  for (int64_t outer = 1; outer <= extent; ++outer) {
    for (int64_t inner = 1; inner <= outer; ++inner) pairs.push_back({outer, inner});
  }
  return pairs;
}

// Any outer block with the inner one like it or least, and the critical pairs.
std::vector<NestedBlocks> SomePairs(int64_t extent) {
  std::vector<NestedBlocks> pairs = CriticalPairs(extent);
  for (const int64_t size : AllSizes(extent)) {
    pairs.push_back({size, size});
    if (size > 1) pairs.push_back({size, 1});
  }
  return pairs;
}

std::array<int64_t, 11> TermsOf(const UnevenChoice& c) {
  return {c.times[0], c.times[1], c.times[2], c.rolled, c.sum,   c.room[0],
          c.room[1],  c.room[2],  c.cut[0],   c.cut[1], c.cut[2]};
}

// Drops what another choice matches in every term.
std::vector<UnevenChoice> Undominated(std::vector<UnevenChoice> choices) {
  std::stable_sort(
      choices.begin(), choices.end(),
      [](const UnevenChoice& a, const UnevenChoice& b) { return TermsOf(a) < TermsOf(b); });
  std::vector<UnevenChoice> kept;
  std::vector<std::array<int64_t, 11>> terms;
  for (const UnevenChoice& choice : choices) {
    const std::array<int64_t, 11> mine = TermsOf(choice);
    const bool dominated = std::any_of(terms.begin(), terms.end(), [&](const auto& other) {
      for (size_t i = 0; i < mine.size(); ++i) {
        if (other[i] > mine[i]) return false;
      }
      return true;
    });
    if (dominated) continue;
    kept.push_back(choice);
    terms.push_back(mine);
  }
  return kept;
}

// The blocks at which the input is cut: its own, within the output's or weight's if those are
// further out.
std::vector<int64_t> InputBlocks(const NestedBlocks& b, bool input_is_outer) {
  return input_is_outer ? std::vector<int64_t>{b.outer} : std::vector<int64_t>{b.outer, b.inner};
}

}  // namespace

int IrrelevantOperand(int dim) {
  switch (dim) {
    case kDimG:
      return -1;
    case kDimM:
      return kUnevenInput;
    case kDimN:
    case kDimE:
    case kDimF:
      return kUnevenWeight;
    default:
      return kUnevenOutput;
  }
}

std::vector<Piece> PiecesOf(int64_t extent, const std::vector<int64_t>& blocks) {
  std::vector<Piece> pieces = {{0, extent, true}};
  for (const int64_t block : blocks) {
    std::vector<Piece> parts;
    for (const Piece& piece : pieces) {
      for (int64_t at = 0; at < piece.size; at += block) {
        parts.push_back({piece.begin + at, std::min(block, piece.size - at), at == 0});
      }
    }
    pieces = std::move(parts);
  }
  return pieces;
}

PieceLines LinesOf(const WindowAxis& axis, const std::vector<Piece>& outputs,
                   const std::vector<Piece>& taps) {
  PieceLines lines;
  for (const Piece& tap : taps) {
    LineRange before{};
    for (const Piece& out : outputs) {
      const LineRange range = TileLines(axis, out.begin, out.size, tap.begin, tap.size);
      const int64_t length = range.end - range.begin;
      lines.longest = std::max(lines.longest, length);
      lines.sum += length;
      lines.rolled += out.restarts
                          ? length
                          : std::max<int64_t>(0, range.end - std::max(range.begin, before.end));
      before = range;
    }
  }
  return lines;
}

std::vector<UnevenChoice> DimensionChoices(int64_t extent, int dim, const UnevenOrder& order) {
  std::vector<UnevenChoice> choices;
  for (const NestedBlocks& pair : CriticalPairs(extent)) {
    UnevenChoice choice;
    choice.blocks[0] = pair;
    Apply(extent, IrrelevantOperand(dim), order, pair, &choice);
    choices.push_back(choice);
  }
  return Undominated(std::move(choices));
}

// blocks[0].outer: the position from which on single groups are kept; 3: nowhere.
std::vector<UnevenChoice> GroupChoices(int64_t extent, const UnevenOrder& order) {
  std::vector<UnevenChoice> choices;
  for (int from = extent > 1 ? 0 : 3; from <= 3; ++from) {
    UnevenChoice choice;
    choice.blocks[0] = {from, from};
    for (size_t x = 0; x < order.size(); ++x) {
      choice.cut[x] = order[x] >= from;
      choice.room[x] = choice.cut[x] ? 1 : extent;
    }
    choices.push_back(choice);
  }
  return Undominated(std::move(choices));
}

std::vector<UnevenChoice> AxisChoices(const WindowAxis& axis, const UnevenOrder& order,
                                      bool* complete) {
  const bool has_halo = axis.taps > 1 || axis.stride > 1 || axis.pad > 0;
  const int64_t pairs = axis.extent * (axis.extent + 1) / 2 * (axis.taps * (axis.taps + 1) / 2);
  const bool all = pairs <= kMostPairs;
  if (has_halo && !all) *complete = false;
  const bool is_long = axis.extent * axis.taps > kMostWindows;
  const std::vector<NestedBlocks> outputs = !has_halo || (!all && is_long)
                                                ? CriticalPairs(axis.extent)
                                            : all ? AllPairs(axis.extent)
                                                  : SomePairs(axis.extent);
  const std::vector<NestedBlocks> taps =
      all       ? AllPairs(axis.taps)
      : is_long ? std::vector<NestedBlocks>{{axis.taps, axis.taps}, {axis.taps, 1}, {1, 1}}
                : SomePairs(axis.taps);
  const bool before_output = order[kUnevenInput] < order[kUnevenOutput];
  const bool before_weight = order[kUnevenInput] < order[kUnevenWeight];
  std::map<std::pair<std::vector<int64_t>, std::vector<int64_t>>, PieceLines> known;
  std::vector<UnevenChoice> choices;
  for (const NestedBlocks& out : outputs) {
    for (const NestedBlocks& tap : taps) {
      const std::vector<int64_t> out_blocks = InputBlocks(out, before_output);
      const std::vector<int64_t> tap_blocks = InputBlocks(tap, before_weight);
      const auto [at, is_new] = known.try_emplace({out_blocks, tap_blocks});
      if (is_new) {
        at->second =
            LinesOf(axis, PiecesOf(axis.extent, out_blocks), PiecesOf(axis.taps, tap_blocks));
      }
      UnevenChoice choice;
      choice.blocks = {out, tap};
      Apply(axis.extent, kUnevenWeight, order, out, &choice);
      Apply(axis.taps, kUnevenOutput, order, tap, &choice);
      choice.room[kUnevenInput] = at->second.longest;
      choice.sum = at->second.sum;
      choice.rolled = at->second.rolled;
      choices.push_back(choice);
    }
  }
  return Undominated(std::move(choices));
}

}  // namespace dla::scheduler
