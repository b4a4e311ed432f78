// Runs one group: engines that walk its code, tokens between them, and the DRAM bus.
//
// All resources are in order with an order that the program fixes, so times follow from data flow:
// whichever engine can go on goes on, and every token, transfer and result carries its time. The
// order in which engines are tried changes neither values nor times.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "machine/program.h"
#include "runtime/cursor.h"
#include "runtime/datapath.h"
#include "runtime/group_plan.h"
#include "runtime/run_result.h"
#include "runtime/shadow.h"
#include "runtime/storage.h"
#include "support/status.h"

namespace dla::runtime {

// When engines are free, counted from a group's start; 0 for all that stand still.
struct Clocks {
  std::array<int64_t, machine::kEngineCount> engine{};  // indexed by Engine
  int64_t bus = 0;
  int64_t data = 0;  // when what was prefetched is usable
};

class GroupRunner {
 public:
  // What runs share. All may be null but `datapath`: no values, no checks, no random delays, no
  // trace.
  struct Machine {
    Datapath* datapath = nullptr;
    Storage* storage = nullptr;
    Shadow* shadow = nullptr;
    std::mt19937_64* jitter = nullptr;
    const TraceSink* trace = nullptr;  // with times that count from the group's start
    bool is_first_run = true;          // what is loaded once is loaded now
  };
  // The group that runs next: what it prefetches is loaded, and counted for it.
  struct Next {
    const machine::Group* group = nullptr;  // null: there is none, or a stripe comes first
    int32_t number = 0;
    machine::Counters* counters = nullptr;
  };
  GroupRunner(const machine::Program& program, const machine::Group& group, const GroupPlan& plan,
              int64_t stripe, const Machine& machine, const Next& next);

  // Executes the group, or its part of one stripe of a cascade; times count from 0, when engines
  // are free as `clocks` says. Sets counters, engine times, the group's cycles, and `clocks` for
  // the next group.
  Status Run(Clocks* clocks, GroupRun* run);

 private:
  struct Descriptor {
    uint8_t operand;
    Tile tile;
  };
  struct EngineState {
    EngineState(const machine::Group& group, machine::Engine engine, int64_t stripe)
        : cursor(group, engine, stripe) {}
    Cursor cursor;
    int64_t time = 0;
    int64_t data_time = 0;         // when everything that it loaded is usable
    std::vector<Descriptor> open;  // of the open transfer
  };
  struct Arrival {
    int64_t time;
    machine::Engine from;
  };

  // Executes the engine's next instruction; false if it has to wait.
  Result<bool> TryStep(machine::Engine engine);
  bool TryWait(machine::Engine engine, const machine::Instruction& instruction);
  void Signal(machine::Engine engine, const machine::Instruction& instruction);
  void Open(machine::Engine engine, const machine::Instruction& instruction);
  Result<bool> TryTransfer(machine::Engine engine, const machine::Instruction& instruction);
  // Loads what the next group prefetches, if the bus has nothing to do before.
  Result<bool> TryPrefetch();
  // The open transfer, of tiles of `group` in `step`, which `counters` count.
  Status Serve(machine::Engine engine, const machine::Group& group, const Step& step,
               machine::Counters* counters);
  // Moves the bytes of one descriptor.
  Status Transfer(const machine::Group& group, const machine::OperandDesc& operand,
                  const Tile& tile, bool load, const Step& step);
  // Adds a descriptor to the counters; its bytes on the bus.
  int64_t CountDescriptor(const machine::Group& group, const machine::OperandDesc& operand,
                          const Tile& tile, bool load, machine::Counters* counters) const;
  Status Check(const machine::Instruction& instruction, const Step& step);
  Status Compute(machine::Engine engine, const machine::Instruction& instruction);

  // The least ticket that the DMA engine has left in this group; INT64_MAX if none.
  int64_t NextTicket(machine::Engine engine);
  void Stall(machine::Engine engine, StallCause cause, int64_t until);
  void Busy(machine::Engine engine, int64_t cycles);
  // The engine spends this time, working or (with a cause) waiting.
  void Spend(machine::Engine engine, int64_t cycles, std::optional<StallCause> stall);
  int64_t Delay();
  bool IsDone(machine::Engine engine) const;
  Status Finish(Clocks* clocks);
  std::string Blocked() const;

  // Of what the next group prefetches: behind all loads of this one.
  int64_t PrefetchTicket() const { return 4 * steps_ + 1; }
  EngineState& State(machine::Engine e) { return engines_[static_cast<size_t>(e)]; }
  EngineTimes& Times(machine::Engine e) { return run_->engines[static_cast<size_t>(e)]; }

  const machine::Program& program_;
  const machine::Group& group_;
  const GroupPlan& plan_;
  Datapath* datapath_;
  Storage* storage_;
  Shadow* shadow_;
  std::mt19937_64* jitter_;
  const TraceSink* trace_;
  const bool is_first_run_;
  const Next next_;
  const int64_t steps_;
  bool prefetches_;          // has still to load what the next group prefetches
  int64_t carried_bus_ = 0;  // when the transfers of groups before end
  GroupRun* run_ = nullptr;
  std::vector<EngineState> engines_;  // indexed by Engine
  std::array<Cursor, 2> ahead_;       // load, store: at their next kBus
  std::array<std::deque<Arrival>, machine::kMaxTokens> tokens_;
  int64_t bus_free_ = 0;
};

}  // namespace dla::runtime
