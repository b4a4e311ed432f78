// Which scratchpad each buffer of a group goes to.
//
// A small exact search: every operand in turn tries the scratchpads that hold its class, the most
// specialised first, and steps back where the rest does not fit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/nest.h"
#include "machine/target.h"
#include "scheduler/mapping.h"

namespace dla::scheduler {

// The bytes of one tile of each operand (dense), and how many slots it has; the accumulators last.
struct BufferNeed {
  int64_t tile_bytes = 0;
  int slots = 1;
};

// Fills in the memories of mapping->operands and mapping->accumulator so that in every memory the
// buffers' sum is at most free_bytes; false if that cannot be. Residents keep their place. `needs`
// has one entry an operand of the nest and one for the accumulators; the output's own need counts
// only where it is not drained in place.
bool AssignMemories(const ir::Nest& nest, const machine::Target& target,
                    std::span<const int64_t> free_bytes, std::span<const BufferNeed> needs,
                    Mapping* mapping);

}  // namespace dla::scheduler
