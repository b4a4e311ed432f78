// Values that the user wants on chip (`--pins`), from any policy.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "support/status.h"

namespace dla::scheduler {

struct Pins {
  std::map<std::string, std::string> hold;  // value, scratchpad
};

// {"hold": [{"value": NAME, "memory": NAME}, ...]}; kMalformed with the place in the file.
Result<Pins> ParsePins(std::string_view json);

}  // namespace dla::scheduler
