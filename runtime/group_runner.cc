#include "runtime/group_runner.h"

#include <algorithm>
#include <limits>

#include "machine/timing.h"
#include "runtime/access_tally.h"

namespace dla::runtime {
namespace {

using machine::Engine;
using machine::Group;
using machine::Instruction;
using machine::kEngineCount;
using machine::Opcode;
using machine::OperandDesc;

int64_t TicketOf(const Instruction& bus, const Step& step) {
  return 4 * (step.number + bus.lag) + bus.slot;
}

// Why an engine that waits for a token of `from` stands still.
StallCause CauseOf(Engine waiting, Engine from) {
  switch (from) {
    case Engine::kLoad:
    case Engine::kMove:
      return StallCause::kLoad;
    case Engine::kStore:
      return StallCause::kStore;
    default:
      return waiting == Engine::kLoad || waiting == Engine::kMove ? StallCause::kCredit
                                                                  : StallCause::kCompute;
  }
}

}  // namespace

GroupRunner::GroupRunner(const machine::Program& program, const Group& group, const GroupPlan& plan,
                         int64_t stripe, const Machine& machine, const Next& next)
    : program_(program),
      group_(group),
      plan_(plan),
      datapath_(machine.datapath),
      storage_(machine.storage),
      shadow_(machine.shadow),
      jitter_(machine.jitter),
      trace_(machine.trace),
      is_first_run_(machine.is_first_run),
      next_(next),
      steps_(CountSteps(group)),
      prefetches_(next.group != nullptr && !next.group->prefetch.empty()),
      ahead_{Cursor(group, Engine::kLoad, stripe), Cursor(group, Engine::kStore, stripe)} {
  for (int e = 0; e < kEngineCount; ++e) {
    engines_.emplace_back(group, static_cast<Engine>(e), stripe);
  }
}

Status GroupRunner::Run(Clocks* clocks, GroupRun* run) {
  run_ = run;
  run->counters.memory.resize(program_.target.memories.size());
  run->steps = steps_;
  for (size_t e = 0; e < engines_.size(); ++e) engines_[e].time = clocks->engine[e];
  State(Engine::kLoad).data_time = clocks->data;
  bus_free_ = carried_bus_ = clocks->bus;
  std::array<int, kEngineCount> order;
  for (int e = 0; e < kEngineCount; ++e) order[static_cast<size_t>(e)] = e;
  bool progressed = true;
  while (progressed) {
    progressed = false;
    if (jitter_ != nullptr) std::shuffle(order.begin(), order.end(), *jitter_);
    for (const int e : order) {
      const auto engine = static_cast<Engine>(e);
      while (!IsDone(engine)) {
        const Result<bool> stepped = TryStep(engine);
        if (!stepped.ok()) {
          return stepped.status().At(Concat("step ", State(engine).cursor.step().number));
        }
        if (!*stepped) break;
        progressed = true;
        if (jitter_ != nullptr && (*jitter_)() % 4 == 0) break;
      }
    }
  }
  return Finish(clocks);
}

bool GroupRunner::IsDone(Engine engine) const {
  return engines_[static_cast<size_t>(engine)].cursor.done() &&
         !(engine == Engine::kLoad && prefetches_);
}

Result<bool> GroupRunner::TryStep(Engine engine) {
  EngineState& state = State(engine);
  if (engine == Engine::kLoad && prefetches_ && state.cursor.behind_body()) return TryPrefetch();
  const Instruction& instruction = state.cursor.instruction();
  switch (instruction.op) {
    case Opcode::kWait:
      if (!TryWait(engine, instruction)) return false;
      break;
    case Opcode::kSignal:
      Signal(engine, instruction);
      break;
    case Opcode::kLoad:
    case Opcode::kStore:
      Open(engine, instruction);
      break;
    case Opcode::kBus: {
      DLA_ASSIGN_OR_RETURN(const bool served, TryTransfer(engine, instruction));
      if (!served) return false;
      break;
    }
    case Opcode::kMove:
    case Opcode::kArray:
    case Opcode::kVector:
      DLA_RETURN_IF_ERROR(Compute(engine, instruction));
      break;
  }
  state.cursor.Advance();
  return true;
}

bool GroupRunner::TryWait(Engine engine, const Instruction& instruction) {
  std::deque<Arrival>& queue = tokens_[instruction.token];
  if (queue.size() < instruction.count) return false;
  for (int i = 0; i < instruction.count; ++i) {
    const Arrival arrival = queue.front();
    queue.pop_front();
    // Behind the body credits are just taken back.
    if (State(engine).cursor.behind_body()) continue;
    Stall(engine, CauseOf(engine, arrival.from), arrival.time);
  }
  return true;
}

void GroupRunner::Signal(Engine engine, const Instruction& instruction) {
  const EngineState& state = State(engine);
  // The credits of a prologue are there when the group begins.
  const int64_t time = state.cursor.in_prologue() ? 0 : std::max(state.time, state.data_time);
  const Arrival arrival = {time, engine};
  for (int i = 0; i < instruction.count; ++i) tokens_[instruction.token].push_back(arrival);
}

void GroupRunner::Open(Engine engine, const Instruction& instruction) {
  EngineState& state = State(engine);
  const OperandDesc& operand = group_.operands[instruction.operand];
  if (operand.once && !is_first_run_) return;
  const Tile tile = engine == Engine::kLoad ? LoadedTileOf(group_, operand, state.cursor.step())
                                            : TileOf(group_, operand, state.cursor.step());
  if (tile.elements > 0) state.open.push_back({instruction.operand, tile});
}

int64_t GroupRunner::NextTicket(Engine engine) {
  Cursor& cursor = ahead_[engine == Engine::kLoad ? 0 : 1];
  const int64_t passed = State(engine).cursor.passed();
  while (!cursor.done() && (cursor.passed() < passed || cursor.instruction().op != Opcode::kBus)) {
    cursor.Advance();
  }
  if (cursor.done()) {
    return engine == Engine::kLoad && prefetches_ ? PrefetchTicket()
                                                  : std::numeric_limits<int64_t>::max();
  }
  return TicketOf(cursor.instruction(), cursor.step());
}

Result<bool> GroupRunner::TryTransfer(Engine engine, const Instruction& instruction) {
  const Engine other = engine == Engine::kLoad ? Engine::kStore : Engine::kLoad;
  if (NextTicket(other) < TicketOf(instruction, State(engine).cursor.step())) return false;
  DLA_RETURN_IF_ERROR(Serve(engine, group_, State(engine).cursor.step(), &run_->counters));
  return true;
}

Result<bool> GroupRunner::TryPrefetch() {
  if (NextTicket(Engine::kStore) < PrefetchTicket()) return false;
  const Step first = FirstStep(*next_.group, 0);
  std::vector<Descriptor>& open = State(Engine::kLoad).open;
  for (const uint8_t operand : next_.group->prefetch) {
    const Tile tile = LoadedTileOf(*next_.group, next_.group->operands[operand], first);
    if (tile.elements > 0) open.push_back({operand, tile});
  }
  if (shadow_ != nullptr) shadow_->BeginGroup(next_.number);
  const Status served = Serve(Engine::kLoad, *next_.group, first, next_.counters);
  if (shadow_ != nullptr) shadow_->BeginGroup(next_.number - 1);
  DLA_RETURN_IF_ERROR(served.At("what the next group prefetches"));
  prefetches_ = false;
  return true;
}

Status GroupRunner::Serve(Engine engine, const Group& group, const Step& step,
                          machine::Counters* counters) {
  EngineState& state = State(engine);
  if (state.open.empty()) return Status();
  const bool load = engine == Engine::kLoad;
  int64_t bus_bytes = 0;
  AccessTally tally(program_.target, counters);
  for (const auto& [number, tile] : state.open) {
    const OperandDesc& operand = group.operands[number];
    bus_bytes += CountDescriptor(group, operand, tile, load, counters);
    const int64_t bytes = tile.elements * ElementBytes(operand);
    if (load) {
      tally.Write(operand.memory, bytes);
    } else {
      tally.Read(operand.memory, bytes);
    }
    if (operand.gather) {
      const OperandDesc& indices = group.operands[operand.gather->indices];
      const Tile list = TileOf(group, indices, step);
      tally.Read(indices.memory, list.elements * ElementBytes(indices));
    }
    if (shadow_ != nullptr) {
      DLA_RETURN_IF_ERROR(load ? shadow_->Load(group, operand, tile, step)
                               : shadow_->Store(group, number, step));
    }
    if (storage_ == nullptr) continue;
    DLA_RETURN_IF_ERROR(Transfer(group, operand, tile, load, step));
  }
  const auto descriptors = static_cast<int64_t>(state.open.size());
  state.open.clear();
  Stall(engine, StallCause::kBus, bus_free_);
  const int64_t cycles =
      tally.Bound(machine::TransferCycles(program_.target, descriptors, bus_bytes));
  Busy(engine, cycles);
  run_->bus_busy += cycles;
  bus_free_ = state.time;
  if (load) state.data_time = state.time + program_.target.dram.latency_cycles + Delay();
  return Status();
}

Status GroupRunner::Transfer(const Group& group, const OperandDesc& operand, const Tile& tile,
                             bool load, const Step& step) {
  if (!load) return storage_->Store(operand, tile);
  if (operand.gather) return storage_->Gather(group, operand, tile, step);
  return storage_->Load(operand, tile);
}

int64_t GroupRunner::CountDescriptor(const Group& group, const OperandDesc& operand,
                                     const Tile& tile, bool load,
                                     machine::Counters* counters) const {
  auto& traffic = counters->traffic[static_cast<size_t>(operand.cls)];
  auto& memory = counters->memory[operand.memory];
  const Runs runs = RunsOf(group, operand, tile);
  const int64_t size = ElementBytes(operand);
  const int64_t bytes = tile.elements * size;
  const int64_t bus = machine::BusBytes(program_.target.dram, runs.run_elements * size, runs.count);
  ++counters->descriptors;
  if (load) {
    traffic.load_bytes += bytes;
    traffic.load_bus_bytes += bus;
    memory.load_bytes += bytes;
  } else {
    traffic.store_bytes += bytes;
    traffic.store_bus_bytes += bus;
    memory.store_bytes += bytes;
  }
  return bus;
}

Status GroupRunner::Check(const Instruction& instruction, const Step& step) {
  switch (instruction.op) {
    case Opcode::kArray:
      return shadow_->Array(group_, plan_.arrays.at(&instruction), instruction, step);
    case Opcode::kVector:
      return shadow_->Vector(group_, instruction, step);
    default:
      return shadow_->Move(group_, instruction, step);
  }
}

Status GroupRunner::Compute(Engine engine, const Instruction& instruction) {
  const Step& step = State(engine).cursor.step();
  if (shadow_ != nullptr) DLA_RETURN_IF_ERROR(Check(instruction, step));
  DLA_ASSIGN_OR_RETURN(const Work work,
                       datapath_->Execute(group_, plan_, instruction, step, &run_->counters));
  Busy(engine, work.cycles + Delay());
  run_->energy.mac_pj += work.mac_energy_pj;
  run_->peak_array_cycles += work.peak_array_cycles;
  run_->overflows += work.overflows;
  run_->read_overflows += work.read_overflows;
  return Status();
}

void GroupRunner::Stall(Engine engine, StallCause cause, int64_t until) {
  const EngineState& state = State(engine);
  if (until <= state.time) return;
  Times(engine).stall[static_cast<size_t>(cause)] += until - state.time;
  Spend(engine, until - state.time, cause);
}

void GroupRunner::Busy(Engine engine, int64_t cycles) {
  Times(engine).busy += cycles;
  Spend(engine, cycles, std::nullopt);
}

void GroupRunner::Spend(Engine engine, int64_t cycles, std::optional<StallCause> stall) {
  EngineState& state = State(engine);
  if (trace_ != nullptr && cycles > 0) {
    (*trace_)({.engine = engine,
               .begin = state.time,
               .end = state.time + cycles,
               .stall = stall,
               .step = state.cursor.done() ? run_->steps : state.cursor.step().number});
  }
  state.time += cycles;
}

int64_t GroupRunner::Delay() {
  if (jitter_ == nullptr || (*jitter_)() % 3 != 0) return 0;
  return static_cast<int64_t>((*jitter_)() % 1000);
}

std::string GroupRunner::Blocked() const {
  std::string text;
  for (size_t e = 0; e < engines_.size(); ++e) {
    const Cursor& cursor = engines_[e].cursor;
    if (IsDone(static_cast<Engine>(e))) continue;
    text += Concat(text.empty() ? "" : ", ", EngineName(static_cast<Engine>(e)), " at step ",
                   cursor.step().number);
  }
  return text;
}

Status GroupRunner::Finish(Clocks* clocks) {
  if (const std::string blocked = Blocked(); !blocked.empty()) {
    return Malformed("engines wait for each other for ever: ", blocked);
  }
  for (const auto& queue : tokens_) {
    if (!queue.empty()) return Malformed("tokens are left at the end of the group");
  }
  for (const EngineState& state : engines_) {
    if (!state.open.empty()) return Malformed("a transfer is never handed to the bus");
  }
  const bool joins = next_.group != nullptr && next_.group->joined;
  const int64_t data = State(Engine::kLoad).data_time;
  int64_t end = joins ? carried_bus_ : std::max(bus_free_, data);
  for (int e = 0; e < kEngineCount; ++e) {
    const auto engine = static_cast<Engine>(e);
    const bool goes_on = joins && (engine == Engine::kLoad || engine == Engine::kStore);
    if (!goes_on) end = std::max(end, State(engine).time);
  }
  for (int e = 0; e < kEngineCount; ++e) {
    const auto engine = static_cast<Engine>(e);
    Stall(engine, StallCause::kBarrier, end);
    clocks->engine[static_cast<size_t>(e)] = State(engine).time - end;
  }
  clocks->bus = std::max<int64_t>(bus_free_ - end, 0);
  clocks->data = std::max<int64_t>(data - end, 0);
  run_->counters.cycles = end;
  return Status();
}

}  // namespace dla::runtime
