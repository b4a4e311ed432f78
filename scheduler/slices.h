// Chains of groups cut into slices: each slice computes some lines of the last group's output and,
// of every value before it, what these need.
//
// A slice of a value is a value of its own, so that it stays on chip or goes through DRAM by
// itself: a part of what is too large to stay whole may stay. Where windows reach beyond the lines
// of a slice, neighbouring slices overlap: both compute the lines at the halo. The slices of all
// groups run depth first: slice 0 of every group, then slice 1, and so on. The result is a graph of
// groups like any other, which can be sliced again along another dimension.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "support/status.h"

namespace dla::scheduler {

// What is cut, by name: groups in the order in which a slice runs, the last of which makes the
// result; a dimension of that one's nest; into how many slices.
struct Slicing {
  std::vector<std::string> groups;
  std::string dimension;
  int64_t count = 0;

  bool operator==(const Slicing&) const = default;
};

// Groups as nodes of a graph, and a nest of each.
struct GroupGraph {
  ir::Graph graph;
  std::vector<ir::Nest> nests;
};

// The groups with the chain of `slicing` in slices, which stand where its last group stood. kUsage:
// why the chain cannot be cut so: an unknown name, a value that something else reads as well, an
// operand that is not lines along the dimension, more slices than lines.
Result<GroupGraph> Slice(const GroupGraph& groups, const Slicing& slicing);

}  // namespace dla::scheduler
