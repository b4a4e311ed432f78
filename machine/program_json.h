// A program as JSON, without its constants' bytes: what `dladump json` prints.
#pragma once

#include <string>

#include "machine/program.h"

namespace dla::machine {

// Keys are the names of program_layout.h with '_' for blanks; what a structure has several times in
// a row (traffic by operand class, arguments) is a list.
std::string ProgramJson(const Program& program);

}  // namespace dla::machine
