// Lists of layer shapes as text: what `dlac map` reads.
//
// One layer a line, fields separated by blanks; a line that begins with # is a comment:
//
//   name set kind N G M C E F R S stride dilation pad count [H W]
//
// kind: conv, dwconv or matmul; M and C are channels of one group; count says how often the layer
// occurs. H and W are the real input lines and columns; without them (E-1)s + d(R-1) + s - 2 pad
// and likewise, the largest input that gives E rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scheduler/layer.h"
#include "support/status.h"

namespace dla::scheduler {

struct NamedLayer {
  std::string name, set, kind;
  Layer layer;
  int64_t count = 1;
};

// Fails (kMalformed) with the line's number, what is wrong with it and what is expected.
Result<std::vector<NamedLayer>> ParseLayerList(std::string_view text);

}  // namespace dla::scheduler
