// What a run says about itself: a table for people, JSON for programs.
//
// Keys of the JSON: totals at the top level, groups in `groups` with the same keys, each with its
// `predicted` counters and whether execution counted exactly these (`as_predicted`).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "machine/program.h"
#include "runtime/emulator.h"
#include "runtime/run_result.h"

namespace dla::runtime {

// Did group `g` count exactly what the compiler predicted? Cycles are left out where the mode or
// jitter makes them meaningless. False if the program carries no predictions.
bool AsPredicted(const machine::Program& program, const RunOptions& options,
                 const RunResult& result, size_t g);

nlohmann::ordered_json StatsJson(const machine::Program& program, const RunOptions& options,
                                 const RunResult& result);

// One line for each group in which numbers became infinities because their type is too narrow, the
// first ten, and one for how many more there are.
std::vector<std::string> OverflowWarnings(const machine::Program& program, const RunResult& result);

std::string StatsText(const machine::Program& program, const RunOptions& options,
                      const RunResult& result);

}  // namespace dla::runtime
