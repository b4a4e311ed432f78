// Is a mapping one of the search's space? For mappings that come from elsewhere.
#pragma once

#include <string>

#include "scheduler/mapping.h"
#include "scheduler/search.h"

namespace dla::scheduler {

// What is wrong with the mapping as an answer to the problem (block sizes, order, scratchpads,
// residents, room), or "". Indices may be anything.
std::string MappingFault(const SearchProblem& problem, const Mapping& mapping);

// Does every operand with more than one tile have the buffers that the rule asks for?
bool KeepsTo(BufferRule rule, const ir::Nest& nest, const Mapping& mapping);

// The dimension's block may be smaller than its extent: what a vector program reduces over in one
// pass stays whole, and a pass is always one block.
bool MayCut(const ir::Nest& nest, int dimension);

}  // namespace dla::scheduler
