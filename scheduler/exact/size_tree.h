// The block sizes of one dimension as a binary tree: each node is an interval of sizes.
//
// A box of the exact search is one node of each dimension's tree, so that whatever is least over an
// interval is worked out once, from the leaves up, and looked up afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/nest.h"
#include "machine/target.h"
#include "scheduler/search_options.h"

namespace dla::scheduler {

struct SizeNode {
  int64_t lo = 1, hi = 1;   // sizes in it; some between may be missing
  int64_t least_count = 1;  // blocks with the largest size
  int left = -1, right = -1;

  bool IsPoint() const { return left < 0; }
};

class SizeTree {
 public:
  static constexpr int kRoot = 0;

  // `sizes`: increasing, the last one is the extent. The whole dimension is a node of its own right
  // below the root; below that the sizes part where the number of blocks changes, near the middle
  // of their logarithms.
  SizeTree(int64_t extent, std::vector<int64_t> sizes);

  int64_t extent() const { return extent_; }
  int size() const { return static_cast<int>(nodes_.size()); }
  // Children have larger numbers than their parents.
  const SizeNode& node(int i) const { return nodes_[static_cast<size_t>(i)]; }
  // The node of one of the sizes alone.
  int Find(int64_t size) const;

 private:
  void Build(int at, size_t begin, size_t end);
  size_t Middle(size_t begin, size_t end) const;

  int64_t extent_;
  std::vector<int64_t> sizes_;
  std::vector<SizeNode> nodes_;
};

// The sizes that the exact search looks at.
struct SearchSizes {
  std::vector<std::vector<int64_t>> of;  // by dimension, increasing
  bool all = true;                       // of the space; false: long dimensions are thinned out
};
// The sizes of the space for every dimension that may be cut: what a vector program reduces over
// stays whole, a pass is one block. Dimensions of more than some thousand sizes, and axes on which
// two long dimensions meet, have fewer.
SearchSizes SizesOf(const ir::Nest& nest, const machine::Target& target, SizeSpace space);

// Least values of one axis of an operand over a box; see AxisLengths.
struct AxisLeast {
  int64_t sum = 0, present = 0, longest = 0;
  int64_t first = 0, last = 0;  // lengths of the first and of the last tile
  int64_t rounded = 0;          // bytes of all its tiles, each rounded up to bursts
};

// AxisLeast for all boxes of the dimensions of one axis.
class AxisTable {
 public:
  AxisTable(const ir::Nest& nest, const ir::Axis& axis, const std::vector<SizeTree>& trees,
            int64_t element_bytes, int64_t burst_bytes);

  // `node`: by dimension, the box.
  const AxisLeast& At(const int* node) const {
    size_t at = 0;
    for (const Term& term : terms_) at += static_cast<size_t>(node[term.dimension]) * term.stride;
    return entries_[at];
  }

 private:
  struct Term {
    int dimension = 0;
    size_t stride = 0;
  };
  std::vector<Term> terms_;
  std::vector<AxisLeast> entries_;
};

}  // namespace dla::scheduler
