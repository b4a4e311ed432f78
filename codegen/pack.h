// Weights in the order in which tiles are loaded and the array reads them.
#pragma once

#include <cstdint>
#include <span>

#include "ir/nest.h"
#include "machine/program_file.h"
#include "scheduler/mapping.h"
#include "support/status.h"

namespace dla::codegen {

// The weight operand of a contraction, tile by tile (DramLayout::kPacked), each tile in panels
// (LocalLayout::kPanels; both in machine/program.h). `source` is the dense buffer of the operand's
// root; the sink gets as many elements as the operand has indices. Fails only where the sink does.
Status PackWeights(const ir::Nest& nest, const scheduler::Mapping& mapping,
                   std::span<const uint8_t> source, const machine::ByteSink& append);

}  // namespace dla::codegen
