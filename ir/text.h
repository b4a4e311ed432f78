// The text form of a graph: printed for people (--dump-dir), parsed back to the same graph.
//
// Constants of up to 64 bytes stand in the text; larger ones are named by size and digest, and
// parsing takes their bytes from a table that the caller gives. docs/IR.md has the grammar.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "ir/graph.h"
#include "support/status.h"

namespace dla::ir {

using ConstantTable = std::map<std::string, std::shared_ptr<const Constant>>;

std::string PrintGraph(const Graph& graph);

// The graph of that text; `constants` (by digest) supplies what the text only names. Errors give
// the line (kMalformed).
Result<Graph> ParseGraph(std::string_view text, const ConstantTable& constants = {});

// The large constants of a graph by digest, to parse its text with.
ConstantTable LargeConstants(const Graph& graph);

// Same structure, names, types, attributes, storage and constant bytes.
bool SameGraph(const Graph& a, const Graph& b);

}  // namespace dla::ir
