// Other people's ways to search for the least bytes of one layer, to compare with.
//
// All of them cost mappings as LeastBytes does in S0 (best order of each block vector, buffers
// double where an operand is transferred more than once) and differ only in which block vectors
// they look at. None of them is used to compile.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "scheduler/search/layer_optimum.h"
#include "support/status.h"

namespace dla::scheduler {

enum class Grid {
  kEven,          // ceil(D / n)
  kEveryInteger,  // of G, M, C, E, F
  kArray,         // multiples of the array's sides in M and C, or whole; even blocks elsewhere
};

enum class Exit {
  kNever,
  kNotFewer,           // a larger block that does not need fewer bytes ends its loop
  kOnlyWhenMore,       // one that needs more bytes does
  kNotFewerInnermost,  // kNotFewer in the innermost loop only
};

// All block vectors of the grid, R, S and N whole. `nest`: the loops over sizes from the outermost,
// such as "GMCEF".
std::optional<LayerOptimum> SearchGrid(const Layer& layer, const IdealMachine& machine, Grid grid,
                                       std::string_view nest, Exit exit);

// All block vectors of S0, R, S and N included.
std::optional<LayerOptimum> SearchExhaustively(const Layer& layer, const IdealMachine& machine);

// `samples` block vectors of S0, drawn uniformly and independently (the same ones for the same
// seed).
std::optional<LayerOptimum> SearchRandomly(const Layer& layer, const IdealMachine& machine,
                                           int64_t samples, uint32_t seed);

}  // namespace dla::scheduler
