// How the constant weight of a contraction lies in DRAM: in the order in which its tiles are
// loaded.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/nest.h"
#include "scheduler/mapping.h"
#include "support/element_type.h"

namespace dla::scheduler {

// Weights that are packed in tile order: the constant second operand of a contraction.
bool IsPackedWeight(const ir::Nest& nest, int operand);

// All that the packed bytes of a weight depend on, besides those of its root: groups for which
// these are equal share one copy. Tiles follow one another, the first axis outermost; within a tile
// lie the groups, of each the panels of channels, of each panel its depths (machine/program.h,
// kPanels).
struct PackedWeight {
  // What the axis counts: both input and output depend on a group, only the output on a channel.
  enum class Role { kGroup, kChannel, kDepth };

  struct Axis {
    Role role = Role::kDepth;
    int64_t bound = 1;   // elements
    int64_t stride = 0;  // elements of the root's buffer
    int64_t block = 1;   // elements of a tile; the last one may be shorter
    // Indices in one block of the block diagonal (ir::Diagonal); 0: the axis does not run along it.
    int64_t in_diagonal_block = 0;
    // Every block of the diagonal starts at the same elements: it is stored once.
    bool restarts = false;

    bool operator==(const Axis&) const = default;
  };

  ElementType type = ElementType::kF32;
  int64_t base = 0;  // elements
  std::vector<Axis> axes;

  bool operator==(const PackedWeight&) const = default;
};

// Of a nest for which IsPackedWeight(nest, ir::Nest::kWeight).
PackedWeight PackedWeightOf(const ir::Nest& nest, const Mapping& mapping);

}  // namespace dla::scheduler
