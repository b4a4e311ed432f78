// What a run says about itself: a table for people, JSON for programs.
//
// Keys of the JSON: totals at the top level, groups in `groups` with the same keys, each with its
// `predicted` counters and whether execution counted exactly these (`as_predicted`). Of several
// runs `first` and `steady` (the second and all later ones) have these keys, each with its own
// prediction.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "machine/program.h"
#include "runtime/emulator.h"
#include "runtime/run_result.h"

namespace dla::runtime {

// What the compiler predicted for the groups of the first run, or of later ones.
const std::vector<machine::Counters>& PredictedOf(const machine::Program& program, bool is_first);

// Did group `g` count exactly what is predicted? Cycles are left out where the mode or jitter makes
// them meaningless. False if there is no prediction.
bool AsPredicted(const std::vector<machine::Counters>& predicted, const RunOptions& options,
                 const Counts& counts, size_t g);

nlohmann::ordered_json StatsJson(const machine::Program& program, const RunOptions& options,
                                 const RunResult& result);

// One line for each group in which numbers became infinities because their type is too narrow, the
// first ten, and one for how many more there are.
std::vector<std::string> OverflowWarnings(const machine::Program& program, const RunResult& result);

std::string StatsText(const machine::Program& program, const RunOptions& options,
                      const RunResult& result);

}  // namespace dla::runtime
