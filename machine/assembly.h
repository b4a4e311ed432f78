// The text form of a program: everything but the bytes of its constants.
//
// For every program that the verifier accepts, Assemble(Disassemble(p)) is p without its constants.
// The text is line by line; "//" begins a comment; names are in double quotes. docs/MACHINE.md has
// the grammar by example.
#pragma once

#include <string>
#include <string_view>

#include "machine/program.h"
#include "support/status.h"

namespace dla::machine {

std::string Disassemble(const Program& program);

// kMalformed with the line's number if the text breaks the grammar. The result has no constants
// and is not verified.
Result<Program> Assemble(std::string_view text);

}  // namespace dla::machine
