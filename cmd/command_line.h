// What the three commands share: parsing with exit code 2, messages, exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "support/status.h"

namespace dla {

// Parses the arguments into `app`'s options, then calls `run`. Prints failures on stderr, a line
// each, as "TOOL: error: ..."; anything thrown is an internal error. Returns the exit code.
int RunTool(const std::string& tool, CLI::App* app, int argc, char** argv,
            const std::function<Status()>& run);

// Prints the lines of a failure as RunTool does.
void PrintStatus(const std::string& tool, const Status& status);

}  // namespace dla
