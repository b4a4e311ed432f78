// Manual pages, made of what --help is made of.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace dla {

// The page of a command in section 1, as troff (man macros): name, synopsis, options, subcommands
// with their options, exit status. `tool` may have a space ("dlac map").
std::string ManPage(const std::string& tool, const CLI::App& app);

}  // namespace dla
