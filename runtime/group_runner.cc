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
                         const Machine& machine)
    : program_(program),
      group_(group),
      plan_(plan),
      datapath_(machine.datapath),
      storage_(machine.storage),
      shadow_(machine.shadow),
      jitter_(machine.jitter),
      trace_(machine.trace),
      ahead_{Cursor(group, Engine::kLoad), Cursor(group, Engine::kStore)} {
  for (int e = 0; e < kEngineCount; ++e) engines_.emplace_back(group, static_cast<Engine>(e));
}

Status GroupRunner::Run(GroupRun* run) {
  run_ = run;
  run->counters.memory.resize(program_.target.memories.size());
  run->steps = CountSteps(group_);
  std::array<int, kEngineCount> order;
  for (int e = 0; e < kEngineCount; ++e) order[static_cast<size_t>(e)] = e;
  bool progressed = true;
  while (progressed) {
    progressed = false;
    if (jitter_ != nullptr) std::shuffle(order.begin(), order.end(), *jitter_);
    for (const int e : order) {
      const auto engine = static_cast<Engine>(e);
      while (!State(engine).cursor.done()) {
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
  return Finish();
}

Result<bool> GroupRunner::TryStep(Engine engine) {
  EngineState& state = State(engine);
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
    Stall(engine, CauseOf(engine, arrival.from), arrival.time);
  }
  return true;
}

void GroupRunner::Signal(Engine engine, const Instruction& instruction) {
  const EngineState& state = State(engine);
  const Arrival arrival = {std::max(state.time, state.data_time), engine};
  for (int i = 0; i < instruction.count; ++i) tokens_[instruction.token].push_back(arrival);
}

void GroupRunner::Open(Engine engine, const Instruction& instruction) {
  EngineState& state = State(engine);
  const Tile tile = TileOf(group_, group_.operands[instruction.operand], state.cursor.step());
  if (tile.elements > 0) state.open.push_back({instruction.operand, tile});
}

int64_t GroupRunner::NextTicket(Engine engine) {
  Cursor& cursor = ahead_[engine == Engine::kLoad ? 0 : 1];
  const int64_t passed = State(engine).cursor.passed();
  while (!cursor.done() && (cursor.passed() < passed || cursor.instruction().op != Opcode::kBus)) {
    cursor.Advance();
  }
  if (cursor.done()) return std::numeric_limits<int64_t>::max();
  return TicketOf(cursor.instruction(), cursor.step());
}

Result<bool> GroupRunner::TryTransfer(Engine engine, const Instruction& instruction) {
  const Engine other = engine == Engine::kLoad ? Engine::kStore : Engine::kLoad;
  if (NextTicket(other) < TicketOf(instruction, State(engine).cursor.step())) return false;
  DLA_RETURN_IF_ERROR(Serve(engine));
  return true;
}

Status GroupRunner::Serve(Engine engine) {
  EngineState& state = State(engine);
  if (state.open.empty()) return Status();
  const bool load = engine == Engine::kLoad;
  int64_t bus_bytes = 0;
  AccessTally tally(program_.target, &run_->counters);
  for (const auto& [number, tile] : state.open) {
    const OperandDesc& operand = group_.operands[number];
    CountDescriptor(operand, tile, load, &bus_bytes);
    const int64_t bytes = tile.elements * ElementBytes(operand);
    if (load) {
      tally.Write(operand.memory, bytes);
    } else {
      tally.Read(operand.memory, bytes);
    }
    if (operand.gather) {
      const OperandDesc& indices = group_.operands[operand.gather->indices];
      const Tile list = TileOf(group_, indices, state.cursor.step());
      tally.Read(indices.memory, list.elements * ElementBytes(indices));
    }
    if (shadow_ != nullptr) {
      DLA_RETURN_IF_ERROR(load ? shadow_->Load(group_, operand, tile, state.cursor.step())
                               : shadow_->Store(group_, number, state.cursor.step()));
    }
    if (storage_ == nullptr) continue;
    DLA_RETURN_IF_ERROR(Transfer(operand, tile, load, state.cursor.step()));
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

Status GroupRunner::Transfer(const OperandDesc& operand, const Tile& tile, bool load,
                             const Step& step) {
  if (!load) return storage_->Store(operand, tile);
  if (operand.gather) return storage_->Gather(group_, operand, tile, step);
  return storage_->Load(operand, tile);
}

void GroupRunner::CountDescriptor(const OperandDesc& operand, const Tile& tile, bool load,
                                  int64_t* bus_bytes) {
  machine::Counters& counters = run_->counters;
  auto& traffic = counters.traffic[static_cast<size_t>(operand.cls)];
  auto& memory = counters.memory[operand.memory];
  const Runs runs = RunsOf(group_, operand, tile);
  const int64_t size = ElementBytes(operand);
  const int64_t bytes = tile.elements * size;
  const int64_t bus = machine::BusBytes(program_.target.dram, runs.run_elements * size, runs.count);
  *bus_bytes += bus;
  ++counters.descriptors;
  if (load) {
    traffic.load_bytes += bytes;
    traffic.load_bus_bytes += bus;
    memory.load_bytes += bytes;
  } else {
    traffic.store_bytes += bytes;
    traffic.store_bus_bytes += bus;
    memory.store_bytes += bytes;
  }
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
    if (cursor.done()) continue;
    text += Concat(text.empty() ? "" : ", ", EngineName(static_cast<Engine>(e)), " at step ",
                   cursor.step().number);
  }
  return text;
}

Status GroupRunner::Finish() {
  if (const std::string blocked = Blocked(); !blocked.empty()) {
    return Malformed("engines wait for each other for ever: ", blocked);
  }
  for (const auto& queue : tokens_) {
    if (!queue.empty()) return Malformed("tokens are left at the end of the group");
  }
  int64_t end = bus_free_;
  for (const EngineState& state : engines_) {
    if (!state.open.empty()) return Malformed("a transfer is never handed to the bus");
    end = std::max(end, state.time);
  }
  for (int e = 0; e < kEngineCount; ++e) {
    Stall(static_cast<Engine>(e), StallCause::kBarrier, end);
  }
  run_->counters.cycles = end;
  return Status();
}

}  // namespace dla::runtime
