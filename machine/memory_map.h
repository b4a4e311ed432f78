// Pictures of what lies where in each scratchpad, over time: `dladump map`.
#pragma once

#include <string>

#include "machine/program.h"

namespace dla::machine {

// For each memory its peak use, a picture (address upwards, groups to the right; a letter a buffer,
// capital where it lives in several groups) and the list of its buffers.
std::string MemoryMapText(const Program& program);

// The same as an SVG drawing. A group is as wide as its share of the predicted cycles (all are
// equally wide where there are no predictions); each buffer has its name, size and groups as a
// title.
std::string MemoryMapSvg(const Program& program);

}  // namespace dla::machine
