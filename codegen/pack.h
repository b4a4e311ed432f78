// Weights in the order in which tiles are loaded and the array reads them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/nest.h"
#include "scheduler/mapping.h"

namespace dla::codegen {

// The weight operand of a contraction, tile by tile (DramLayout::kPacked), each tile in panels
// (LocalLayout::kPanels; both in machine/program.h). `source` is the dense buffer of the operand's
// root; the result has as many elements as the operand has indices.
std::vector<uint8_t> PackWeights(const ir::Nest& nest, const scheduler::Mapping& mapping,
                                 std::span<const uint8_t> source);

}  // namespace dla::codegen
