// Whether views of one buffer have an element in common, without looking at every element.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace dla::ir {

// True where no element of the root belongs to two of the views (values whose storage has this
// dense root): each is a product of arithmetic progressions along the root's axes, as slices, parts
// of a concatenation and phases of an interleaving are, and any two have an axis on which theirs
// do not meet. False says nothing.
bool AreDisjointBoxes(const Value& root, const std::vector<const Value*>& views);

}  // namespace dla::ir
