// What the user fixes about the scratchpads (`--pins`): values that stay, from any policy, and
// regions that are not to be used.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "machine/target.h"
#include "support/status.h"

namespace dla::scheduler {

// Bytes of a scratchpad that are not to be used.
struct ReservedRegion {
  std::string memory;
  int64_t address = 0;
  int64_t bytes = 0;
};

struct Pins {
  std::map<std::string, std::string> hold;  // value, scratchpad
  std::vector<ReservedRegion> reserve;
};

// {"hold": [{"value": NAME, "memory": NAME}, ...],
//  "reserve": [{"memory": NAME, "address": N, "bytes": N}, ...]}, each of them if there are such,
// or a plan of `dlac plan`, whose stays are held. kMalformed with the place in the file.
Result<Pins> ParsePins(std::string_view json);

// What reserved regions leave of a scratchpad: the largest piece of it.
struct FreePiece {
  int64_t begin = 0, bytes = 0;
};

// One a memory of the target, aligned as it is. kUsage: a region of no scratchpad, or one that
// leaves nothing.
Result<std::vector<FreePiece>> FreePieces(const machine::Target& target, const Pins& pins);

}  // namespace dla::scheduler
