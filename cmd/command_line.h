// What every command does the same way: parsing, messages, exit codes, writing results.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "support/status.h"

namespace dla {

// Prints each line of a failure as "TOOL: error: LINE" to stderr; returns the exit code.
int Fail(const std::string& tool, const Status& status);

// Parses the arguments into `app`'s options, then calls `run`, whose result is the exit code.
// Wrong arguments end with exit code 2 and the nearest option's name; anything thrown is an
// internal error (70), running out of memory a failure (6), and so is a stdout that takes nothing.
int RunTool(const std::string& tool, CLI::App* app, int argc, char** argv,
            const std::function<int()>& run);

// Writes a result to the file, or to stdout where `path` is empty or "-".
Status WriteResult(const std::string& path, std::string_view text);

}  // namespace dla
