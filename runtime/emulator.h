// The emulator: runs a program on the machine that it was compiled for.
//
// One pass gives output values and counters. Values are real: DMA moves tiles between DRAM and
// scratchpads, engines compute from scratchpads alone. Times follow docs/MACHINE.md, "Time".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "machine/program.h"
#include "runtime/run_result.h"
#include "support/status.h"
#include "support/tensor.h"

namespace dla::runtime {

enum class Mode {
  kFunctional,  // values and counts; cycles are 0
  kTimed,       // counts and cycles; needs no inputs, gives no outputs
  kBoth,
};

struct RunOptions {
  Mode mode = Mode::kBoth;
  bool check = false;              // shadow every scratchpad byte (runtime/shadow.h)
  std::optional<uint64_t> jitter;  // seed of random delays; cycles are then not the machine's
  // Runs in a row on the same inputs. What the program loads once stays on chip; everything else in
  // scratchpads, and what was stored to DRAM, is lost between runs.
  int64_t repeat = 1;
  // Positions in Program::values that lie somewhere: read right after their groups. Not in timed
  // mode.
  std::vector<size_t> dump;
  // Called with every stretch of time that an engine works or stands still; may be empty.
  TraceSink trace;
  // Called after each group with how many are done; may be empty.
  std::function<void(int64_t done, int64_t groups)> progress;
};

// Runs a program that machine/verifier.h has accepted. `inputs` are in the order of
// Program::inputs, with exactly their types and shapes; empty in timed mode. Failures: kUsage for
// wrong inputs, kUnsupported for types that no kernel has, kMalformed where --check finds a fault
// or the program cannot go on, and where a later run gives other outputs than the first or counts
// otherwise than the second.
Result<RunResult> Run(const machine::Program& program, const RunOptions& options,
                      const std::vector<Tensor>& inputs);

}  // namespace dla::runtime
