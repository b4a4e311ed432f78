// Which engine multiplies: the array, or the vector engine.
#pragma once

#include <string>

#include "ir/nest.h"
#include "scheduler/searcher.h"

namespace dla::scheduler {

// What the target lacks to do this nest; empty if nothing.
std::string Lacking(const ir::Nest& nest, const machine::Target& target);

// The nest, or its form for the vector engine (ir/vector_form.h) where that costs less by the
// searcher's objective when nothing is resident. A convolution with few channels a group leaves
// most of the array idle: 32 x 32 PEs, of which a depthwise one uses a single column at a time.
ir::Nest ChooseEngine(const ir::Nest& nest, Searcher* searcher);

}  // namespace dla::scheduler
