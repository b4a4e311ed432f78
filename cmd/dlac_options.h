// The options of dlac and of dlac sweep, and what they mean.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "frontend/import.h"
#include "ir/pass.h"
#include "scheduler/scheduler.h"
#include "support/status.h"

namespace dla {

struct Options {
  std::string model, output;
  std::string target = "edge32";
  std::vector<std::string> memories, dims, shapes, consts;
  std::string optimize = "balanced", residency = "best", fuse = "on", place = "exact",
              cascades = "on", slices = "on", prefetch = "on", order = "best";
  std::string precision = "f32";
  std::string pins, plan_problem, schedule, use_schedule, report, dump_dir, stop_after,
      print_target, explain;
  std::string search = "exact", space = "all", buffers = "best", multiply = "best";
  std::string cache;
  std::vector<std::string> disabled_rules, start_from;
  int64_t search_budget = scheduler::SearchOptions().budget;
  int64_t inferences = 1;
  size_t top = 5;
  bool check = false, list_targets = false, list_ops = false, no_host = false;
  bool quiet = false, verbose = false;
};

// All options of dlac.
void Describe(CLI::App* app, Options* o);
// Those that dlac sweep has, too.
void DescribeBuffers(CLI::App* app, Options* o);
void DescribePrefetch(CLI::App* app, Options* o);

// NAME=VALUE; the name may hold further '=' signs.
Result<std::pair<std::string, std::string>> SplitPair(const std::string& option,
                                                      const std::string& text);

// kUsage: an option's text that means nothing.
Result<frontend::ImportOptions> ImportOptionsOf(const Options& o);
Result<ir::PassOptions> PassOptionsOf(const Options& o);
Result<scheduler::ScheduleOptions> ScheduleOptionsOf(const Options& o);

// The options that shape the program, as its file records them; no paths.
std::string CommandLineOf(const Options& o);

}  // namespace dla
