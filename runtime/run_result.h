// What a run gives: tensors, and everything that was counted while the program executed.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "machine/counters.h"
#include "machine/program.h"
#include "support/tensor.h"

namespace dla::runtime {

// Why an engine stood still.
enum class StallCause : uint8_t {
  kLoad,     // data that the load or the move engine had not brought
  kStore,    // room that the store engine had not freed
  kCompute,  // a result of the array or vector engine
  kCredit,   // load and move: the step whose buffers they need has not ended
  kBus,      // the bus served another transfer
  kBarrier,  // done, while other engines finish the group
};
inline constexpr int kStallCauseCount = 6;
std::string_view StallName(StallCause cause);  // "load", "store", ...

// Cycles of one engine in one group (or of all): busy + all stalls = the group's cycles.
struct EngineTimes {
  int64_t busy = 0;
  std::array<int64_t, kStallCauseCount> stall{};  // indexed by StallCause
};

struct Energy {
  double dram_pj = 0, scratchpad_pj = 0, mac_pj = 0, vector_pj = 0;
  double total_pj() const { return dram_pj + scratchpad_pj + mac_pj + vector_pj; }
};

struct GroupRun {
  machine::Counters counters;
  std::array<EngineTimes, machine::kEngineCount> engines{};  // indexed by Engine
  int64_t bus_busy = 0;
  int64_t steps = 0;
  double peak_array_cycles = 0;  // MACs issued / (PEs * rate): what the array would need at best
  Energy energy;
  // Finite numbers that became infinities in f16 or bf16: results as they were stored, and operands
  // as the array read them (again in each step that reads them).
  int64_t overflows = 0, read_overflows = 0;

  // Share of the array's peak: peak_array_cycles over cycles; 0 without cycles.
  double utilisation() const;
  // The resource that was busy longest: "array", "vector", "move", "bus", or "none".
  std::string_view bound_by() const;
};

// A stretch of time of one engine.
struct TraceEvent {
  machine::Engine engine = machine::Engine::kLoad;
  int64_t begin = 0, end = 0;       // cycles from the program's start
  std::optional<StallCause> stall;  // none: it works
  int64_t group = 0, step = 0;
};
using TraceSink = std::function<void(const TraceEvent&)>;

// What one run of the program counted.
struct Counts {
  std::vector<GroupRun> groups;  // in program order
  GroupRun total;
};

struct RunResult : Counts {      // of the first run
  std::vector<Tensor> outputs;   // in the order of Program::outputs; none in timed mode
  std::vector<Tensor> dumped;    // in the order of RunOptions::dump
  std::optional<Counts> steady;  // of the second run, and of every later one alike
};

}  // namespace dla::runtime
