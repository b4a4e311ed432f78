// Tokens, transfers, tickets, and that no engine waits for ever.
//
// Why a few steps are enough. Let L = kMaxBusLag and N the number of steps. Tokens are balanced
// within a step and start with what the prologue gave, so a wait in step i needs a signal of step i
// or an earlier one, never one of an epilogue; a bus instruction of step i waits for one of step
// i + L at most. If engines wait for each other in a circle, each engine occurs in it once, so that
// the steps at which the (at most six) engines stand differ by no more than 6 L, and what they wait
// for lies at most L later. The same circle can be moved to any other steps that lie as close
// together, down to step 0, because every dependence between two steps is the same at all steps. So
// there is a circle in N steps if and only if there is one in min(N, 7 L + 2) steps, and these are
// run here, engine by engine. The order in which engines are run does not matter: each token has
// one taker, each engine one next instruction, and what can proceed stays able to. What is
// prefetched for the next group waits for the bus alone, behind the last step.
#include <algorithm>
#include <array>
#include <limits>

#include "machine/isa.h"
#include "machine/tile.h"
#include "machine/verifier.h"
#include "machine/verify_parts.h"

namespace dla::machine {
namespace {

constexpr int64_t kSimulatedSteps = (kEngineCount + 1) * kMaxBusLag + 2;
constexpr int64_t kPrefetchTicket = 5;  // counted from the last step's first one
constexpr int64_t kNoTicket = std::numeric_limits<int64_t>::max();

struct TokenUse {
  int signaller = -1, waiter = -1;
  bool several = false;
  int64_t prologue = 0, body = 0, epilogue = 0;  // net credits
};
using TokenUses = std::array<TokenUse, kMaxTokens>;

void CountTokens(const std::vector<Instruction>& code, int64_t TokenUse::*net, TokenUses* uses) {
  for (const Instruction& instruction : code) {
    if (instruction.op != Opcode::kWait && instruction.op != Opcode::kSignal) continue;
    TokenUse& use = (*uses)[instruction.token];
    const bool signal = instruction.op == Opcode::kSignal;
    int& engine = signal ? use.signaller : use.waiter;
    const int this_engine = static_cast<int>(instruction.engine);
    use.several = use.several || (engine >= 0 && engine != this_engine);
    engine = this_engine;
    use.*net += signal ? instruction.count : -instruction.count;
  }
}

void VerifyTokens(const Group& group, const std::string& where, Faults* faults) {
  TokenUses uses;
  CountTokens(group.prologue, &TokenUse::prologue, &uses);
  CountTokens(group.body, &TokenUse::body, &uses);
  CountTokens(group.epilogue, &TokenUse::epilogue, &uses);
  for (size_t t = 0; t < uses.size(); ++t) {
    const TokenUse& use = uses[t];
    if (use.signaller < 0 && use.waiter < 0) continue;
    const std::string text = Concat(where, ": token ", t);
    if (use.several || use.signaller < 0 || use.waiter < 0 || use.signaller == use.waiter) {
      faults->Add(text, "does not lead from exactly one engine to exactly one other");
    } else if (use.body != 0) {
      faults->Add(text, "a step gives ", use.body, " more credits than it takes");
    } else if (use.prologue < 0) {
      faults->Add(text, "the prologue takes more credits than it gives");
    } else if (use.prologue + use.epilogue != 0) {
      faults->Add(text, use.prologue + use.epilogue, " credits are left at the end");
    }
  }
}

int64_t TicketInStep(const Instruction& bus) { return 4 * int64_t{bus.lag} + bus.slot; }

// Each transfer is closed in its step; tickets increase and are all different.
void VerifyTransfers(const Group& group, int64_t steps, const std::string& where, Faults* faults) {
  std::array<std::vector<int64_t>, 2> tickets;  // of load and store, within a step
  std::array<int, 2> open = {-1, -1};           // descriptors not yet handed to the bus
  for (size_t i = 0; i < group.body.size(); ++i) {
    const Instruction& instruction = group.body[i];
    const auto engine = static_cast<size_t>(instruction.engine);
    if (instruction.op == Opcode::kLoad || instruction.op == Opcode::kStore) {
      open[engine] = static_cast<int>(i);
    } else if (instruction.op == Opcode::kBus) {
      open[engine] = -1;
      const int64_t ticket = TicketInStep(instruction);
      if (!tickets[engine].empty() && ticket <= tickets[engine].back()) {
        faults->Add(Concat(where, ": body ", i, " (bus)"),
                    "its ticket is not behind the one of "
                    "the transfer before it");
      }
      tickets[engine].push_back(ticket);
    }
  }
  for (const int i : open) {
    if (i >= 0) faults->Add(Concat(where, ": body ", i), "its transfer is never handed to the bus");
  }
  for (const auto& list : tickets) {
    if (!list.empty() && steps > 1 && list.back() >= list.front() + 4) {
      faults->Add(where, "tickets of a step do not stay before those of the next step");
    }
  }
  for (const int64_t load : tickets[0]) {
    for (const int64_t store : tickets[1]) {
      const int64_t distance = load > store ? load - store : store - load;
      if (distance % 4 == 0 && distance / 4 < steps) {
        faults->Add(where, "a load and a store have the same ticket");
        return;
      }
    }
  }
}

// The ticket of what is prefetched for the next group, 4 * steps + 1, is behind all loads and equal
// to no store's.
void VerifyPrefetchTicket(const Group& group, const std::string& where, Faults* faults) {
  for (const Instruction& i : group.body) {
    if (i.op != Opcode::kBus) continue;
    const int64_t ticket = TicketInStep(i);
    if (i.engine == Engine::kLoad ? ticket > kPrefetchTicket : ticket % 4 == kPrefetchTicket % 4) {
      faults->Add(where, "a transfer has the place on the bus of what the next group prefetches");
      return;
    }
  }
}

// An engine's own instructions that can make it or another one wait.
struct Event {
  const Instruction* instruction;
  int64_t step;  // -1: prologue or epilogue
  int64_t ticket = kNoTicket;
};

class Simulation {
 public:
  Simulation(const Group& group, int64_t steps, bool prefetches) {
    Append(group.prologue, -1);
    for (int64_t step = 0; step < steps; ++step) Append(group.body, step);
    if (prefetches) {
      const int64_t ticket = 4 * (steps - 1) + kPrefetchTicket;
      events_[0].push_back({.instruction = &prefetch_, .step = steps, .ticket = ticket});
    }
    Append(group.epilogue, -1);
    for (int e = 0; e < kEngineCount; ++e) FindNextTicket(static_cast<size_t>(e));
  }

  // Runs every engine as far as it comes; true if all come to their end.
  bool Run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (size_t e = 0; e < events_.size(); ++e) {
        while (next_[e] < events_[e].size() && CanRun(e)) {
          Execute(e);
          moved = true;
        }
      }
    }
    for (size_t e = 0; e < events_.size(); ++e) {
      if (next_[e] < events_[e].size()) return false;
    }
    return true;
  }

  std::string WhoWaits() const {
    std::string text;
    for (size_t e = 0; e < events_.size(); ++e) {
      if (next_[e] >= events_[e].size()) continue;
      const Event& event = events_[e][next_[e]];
      text += Concat(text.empty() ? "" : "; ", EngineName(static_cast<Engine>(e)), " waits for ");
      text += event.instruction->op == Opcode::kWait
                  ? Concat("token ", static_cast<int>(event.instruction->token))
                  : std::string("the bus");
      if (event.step >= 0) text += Concat(" in step ", event.step);
    }
    return text;
  }

 private:
  void Append(const std::vector<Instruction>& code, int64_t step) {
    for (const Instruction& i : code) {
      if (i.op != Opcode::kWait && i.op != Opcode::kSignal && i.op != Opcode::kBus) continue;
      Event event{&i, step};
      if (i.op == Opcode::kBus) event.ticket = 4 * step + TicketInStep(i);
      events_[static_cast<size_t>(i.engine)].push_back(event);
    }
  }
  void FindNextTicket(size_t engine) {
    size_t at = next_[engine];
    while (at < events_[engine].size() && events_[engine][at].ticket == kNoTicket) ++at;
    next_ticket_[engine] = at < events_[engine].size() ? events_[engine][at].ticket : kNoTicket;
  }
  bool CanRun(size_t engine) const {
    const Event& event = events_[engine][next_[engine]];
    if (event.instruction->op == Opcode::kWait) {
      return tokens_[event.instruction->token] >= event.instruction->count;
    }
    // Load is engine 0, store engine 1.
    return event.ticket == kNoTicket || next_ticket_[1 - engine] > event.ticket;
  }
  void Execute(size_t engine) {
    const Event& event = events_[engine][next_[engine]++];
    int64_t& token = tokens_[event.instruction->token];
    if (event.instruction->op == Opcode::kWait) token -= event.instruction->count;
    if (event.instruction->op == Opcode::kSignal) token += event.instruction->count;
    if (event.instruction->op == Opcode::kBus) FindNextTicket(engine);
  }

  const Instruction prefetch_ = {.op = Opcode::kBus, .engine = Engine::kLoad};
  std::array<std::vector<Event>, kEngineCount> events_;
  std::array<size_t, kEngineCount> next_{};
  std::array<int64_t, kEngineCount> next_ticket_{};
  std::array<int64_t, kMaxTokens> tokens_{};
};

}  // namespace

void VerifySync(const Group& group, const Group* next, const std::string& where, Faults* faults) {
  const size_t before = faults->count();
  const int64_t steps = StepCount(group).value_or(kMaxSteps);
  VerifyTokens(group, where, faults);
  VerifyTransfers(group, steps, where, faults);
  const bool prefetches = next != nullptr && !next->prefetch.empty();
  if (prefetches) VerifyPrefetchTicket(group, where, faults);
  if (faults->count() != before) return;
  Simulation simulation(group, std::min(steps, kSimulatedSteps), prefetches);
  if (!simulation.Run()) faults->Add(where, "deadlock: ", simulation.WhoWaits());
}

}  // namespace dla::machine
