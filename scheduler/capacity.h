// How much memory a model needs: the figures of a "does not fit" message.
#pragma once

#include <string>
#include <vector>

#include "ir/nest.h"
#include "machine/target.h"

namespace dla::scheduler {

// Does every nest have a mapping on the target?
bool AllFit(const std::vector<ir::Nest>& nests, const machine::Target& target);

// For nests that do not all fit: for each scratchpad the smallest size that would do with the
// others as they are (or that none would), and the least scale of all sizes that would. One line.
std::string WhatWouldFit(const std::vector<ir::Nest>& nests, const machine::Target& target);

}  // namespace dla::scheduler
