// How a contraction is multiplied: group by group on the array, with groups packed side by side, or
// on the vector engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/nest.h"
#include "scheduler/searcher.h"

namespace dla::scheduler {

// What the target lacks to do this nest; empty if nothing.
std::string Lacking(const ir::Nest& nest, const machine::Target& target);

enum class MultiplyBy : uint8_t { kBest, kArray, kPacked, kVector };

// "best", "array", "packed" or "vector".
std::optional<MultiplyBy> ParseMultiplyBy(std::string_view text);

// The nest, its form for the vector engine (ir/vector_form.h), or one with groups side by side
// (ir/packed_groups.h): what costs least by the searcher's objective when nothing is resident. A
// convolution with few channels a group leaves most of the array idle: 32 x 32 PEs, of which a
// depthwise one uses a single column at a time. Other than kBest: the named way wherever it is
// possible, the best packing for kPacked.
ir::Nest ChooseEngine(const ir::Nest& nest, MultiplyBy by, Searcher* searcher);

}  // namespace dla::scheduler
