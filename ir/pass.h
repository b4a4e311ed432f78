// The passes from an imported graph to one whose nodes are groups, in one table.
//
//   canonicalise  many spellings to few operators
//   fold          constants; scales and biases into contractions
//   simplify      no-ops, pairs that cancel, dead code
//   fuse          element-wise work behind its anchor: every node becomes one group
//   layout        every value gets its storage; views vanish, copies appear where they must
//   precision     the types in which f32 values are stored and multiplied, where not f32
//
// The verifier runs before the first pass and after each; a fault it finds is ours (exit 70).
// After the last, `graph.nodes` are the groups in an order in which they can run, and BuildNest
// (ir/op.h) gives the nest of each.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "support/status.h"

namespace dla::ir {

struct Pass {
  std::string_view name;
  std::string_view what;  // one line for --help and dumps
  Status (*run)(Graph* graph, const struct PassOptions& options) = nullptr;
};

struct PassOptions {
  bool fuse = true;  // false: every operator is a group of its own
  // Multiply and store f32 values in this type (f16 or bf16); kF32: as they are. Accumulation,
  // vector arithmetic and its constants stay f32, graph inputs and outputs keep their types.
  ElementType precision = ElementType::kF32;
  // Stop after the pass of this name ("": run all).
  std::string stop_after;
  // Called with "import" before the first pass and with each pass's name after it.
  std::function<void(std::string_view, const Graph&)> dump;
};

std::span<const Pass> PassTable();

// What --precision loses: a line for each constant of which elements are finite, but infinities in
// the type that they are stored in.
std::vector<std::string> OverflowingConstants(const Graph& graph);

// Runs the table on the graph.
Status RunPasses(Graph* graph, const PassOptions& options = {});

}  // namespace dla::ir
