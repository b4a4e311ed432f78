#include "codegen/group_code.h"

#include <algorithm>

#include "scheduler/transfers.h"
#include "scheduler/work.h"

namespace dla::codegen {
namespace {

using machine::Engine;
using machine::Instruction;
using machine::Opcode;

enum Token : uint8_t {
  kFreeD,
  kFreeS,
  kLoaded,
  kStoredD,
  kStoredS,
  kDone,
  kReady,
  kArrayFree,
  kFreeMove,
  kMoved,
};

machine::Predicate PredicateOf(const scheduler::Transfer& t) {
  return {.first = static_cast<uint16_t>(t.first),
          .last = static_cast<uint16_t>(t.last),
          .not_first = static_cast<uint16_t>(t.not_first),
          .not_last = static_cast<uint16_t>(t.not_last)};
}

class GroupEmitter {
 public:
  GroupEmitter(const scheduler::Schedule& schedule, const scheduler::ScheduledGroup& scheduled,
               machine::Group* group)
      : nest_(scheduled.nest),
        mapping_(scheduled.mapping),
        prefetched_(scheduled.prefetched),
        group_(*group) {
    transfers_ = scheduler::TransfersOf(nest_, mapping_);
    work_ = scheduler::SplitWork(nest_, schedule.target.output_stage);
    contracts_ = nest_.anchor == ir::Anchor::kContraction;
    two_engines_ = contracts_ && !work_.vector.empty();
    first_ = contracts_ ? Engine::kArray : Engine::kVector;
    last_ = two_engines_ ? Engine::kVector : first_;
  }

  void Run() {
    for (const int d : mapping_.order) group_.loops.push_back(static_cast<uint8_t>(d));
    if (contracts_) group_.programs.push_back(work_.drain);
    for (const scheduler::VectorWork& work : work_.vector) group_.programs.push_back(work.program);
    for (int o = 0; o < nest_.output(); ++o) {
      if (IsPrefetched(o)) group_.prefetch.push_back(OperandIndex(o));
    }
    EmitCredits();
    EmitLoads();
    EmitMoves();
    EmitCompute();
    EmitStores();
    EmitReturns();
  }

 private:
  bool Any(bool is_store, bool overlaps) const {
    return std::any_of(transfers_.begin(), transfers_.end(), [&](const scheduler::Transfer& t) {
      return !t.is_move && t.is_store == is_store && t.overlaps == overlaps;
    });
  }
  bool AnyMove() const {
    return std::any_of(transfers_.begin(), transfers_.end(),
                       [](const scheduler::Transfer& t) { return t.is_move; });
  }
  bool AnyLoad() const { return Any(false, true) || Any(false, false); }
  bool AnyStore() const { return Any(true, true) || Any(true, false); }

  bool IsPrefetched(int operand) const {
    return operand >= 0 && (prefetched_ >> operand & 1U) != 0;
  }

  static Instruction TokenOp(Opcode op, Engine engine, Token token, int count = 1) {
    return {.op = op,
            .engine = engine,
            .token = static_cast<uint8_t>(token),
            .count = static_cast<uint8_t>(count)};
  }
  void Wait(Engine engine, Token token) {
    group_.body.push_back(TokenOp(Opcode::kWait, engine, token));
  }
  void Signal(Engine engine, Token token) {
    group_.body.push_back(TokenOp(Opcode::kSignal, engine, token));
  }

  void EmitCredits() {
    const auto give = [&](bool used, Engine engine, Token token, int count) {
      if (used) group_.prologue.push_back(TokenOp(Opcode::kSignal, engine, token, count));
    };
    give(Any(false, true), last_, kFreeD, 2);
    give(Any(false, false), last_, kFreeS, 1);
    give(Any(true, true), Engine::kStore, kStoredD, 2);
    give(Any(true, false), Engine::kStore, kStoredS, 1);
    give(two_engines_, Engine::kVector, kArrayFree, 1);
    give(AnyMove(), last_, kFreeMove, 2);
  }

  void EmitReturns() {
    const auto take = [&](bool used, Engine engine, Token token, int count) {
      if (used) group_.epilogue.push_back(TokenOp(Opcode::kWait, engine, token, count));
    };
    take(Any(false, true), Engine::kLoad, kFreeD, 2);
    take(Any(false, false), Engine::kLoad, kFreeS, 1);
    take(Any(true, true), first_, kStoredD, 2);
    take(Any(true, false), first_, kStoredS, 1);
    take(two_engines_, Engine::kArray, kArrayFree, 1);
    take(AnyMove(), Engine::kMove, kFreeMove, 2);
  }

  uint8_t OperandIndex(int operand) const {
    return static_cast<uint8_t>(
        operand == scheduler::kAccumulator ? static_cast<int>(nest_.operands.size()) : operand);
  }

  // What a load of the operand names: where the whole value is loaded, an operand behind the
  // others.
  uint8_t LoadedIndex(int operand) const {
    const auto fills = [&](int o) {
      return o >= 0 && mapping_.operands[static_cast<size_t>(o)].fill_bytes > 0;
    };
    if (!fills(operand)) return OperandIndex(operand);
    size_t index = group_.operands.size();
    for (int o = operand; o < nest_.output(); ++o) index -= fills(o) ? size_t{1} : 0;
    return static_cast<uint8_t>(index);
  }

  // The descriptors of one transfer and the bus instruction that closes it.
  void EmitTransfer(bool is_store, bool overlaps) {
    const Engine engine = is_store ? Engine::kStore : Engine::kLoad;
    for (const scheduler::Transfer& t : transfers_) {
      if (t.is_move || t.is_store != is_store || t.overlaps != overlaps) continue;
      machine::Predicate predicate = PredicateOf(t);
      if (!is_store && IsPrefetched(t.operand)) {  // in all steps but the first
        if (mapping_.order.empty()) continue;
        predicate.not_first = static_cast<uint16_t>(scheduler::CutMask(nest_, mapping_));
      }
      group_.body.push_back(
          {.op = is_store ? Opcode::kStore : Opcode::kLoad,
           .engine = engine,
           .predicate = predicate,
           .operand = is_store ? OperandIndex(t.operand) : LoadedIndex(t.operand)});
    }
    // Order of the bus: the D stores of step i-2, the D loads of step i, the S stores of step i-1,
    // the S loads of step i.
    const uint8_t lag = is_store ? (overlaps ? 2 : 1) : 0;
    const uint8_t slot = is_store ? (overlaps ? 0 : 2) : (overlaps ? 1 : 3);
    group_.body.push_back({.op = Opcode::kBus, .engine = engine, .lag = lag, .slot = slot});
  }

  void EmitLoads() {
    if (!AnyLoad()) return;
    for (const bool overlaps : {true, false}) {
      if (!Any(false, overlaps)) continue;
      Wait(Engine::kLoad, overlaps ? kFreeD : kFreeS);
      EmitTransfer(false, overlaps);
    }
    Signal(Engine::kLoad, kLoaded);
  }

  // Sources stand behind the accumulators, in the order of their operands.
  void EmitMoves() {
    if (!AnyMove()) return;
    Wait(Engine::kMove, kFreeMove);
    size_t source = nest_.operands.size() + (contracts_ ? 1 : 0);
    for (const scheduler::Transfer& t : transfers_) {
      if (!t.is_move) continue;
      group_.body.push_back({.op = Opcode::kMove,
                             .engine = Engine::kMove,
                             .predicate = PredicateOf(t),
                             .operand = static_cast<uint8_t>(source++),
                             .operand2 = OperandIndex(t.operand)});
    }
    Signal(Engine::kMove, kMoved);
  }

  void EmitCompute() {
    if (AnyLoad()) Wait(first_, kLoaded);
    if (AnyMove()) Wait(first_, kMoved);
    if (Any(true, false)) Wait(first_, kStoredS);
    if (Any(true, true)) Wait(first_, kStoredD);
    if (two_engines_) Wait(Engine::kArray, kArrayFree);
    if (contracts_) EmitArray();
    if (two_engines_) {
      Signal(Engine::kArray, kReady);
      Wait(Engine::kVector, kReady);
    }
    for (size_t i = 0; i < work_.vector.size(); ++i) EmitVector(i);
    if (two_engines_) Signal(Engine::kVector, kArrayFree);
    if (Any(false, true)) Signal(last_, kFreeD);
    if (Any(false, false)) Signal(last_, kFreeS);
    if (AnyMove()) Signal(last_, kFreeMove);
    if (AnyStore()) Signal(last_, kDone);
  }

  void EmitArray() {
    group_.body.push_back(
        {.op = Opcode::kArray,
         .engine = Engine::kArray,
         .operand = ir::Nest::kInput,
         .operand2 = ir::Nest::kWeight,
         .operand3 = OperandIndex(scheduler::kAccumulator),
         .operand4 = nest_.bias < 0 ? machine::kNone : static_cast<uint8_t>(nest_.bias),
         .operand5 = OperandIndex(two_engines_ ? scheduler::kAccumulator : nest_.output()),
         .program = 0});
  }

  void EmitVector(size_t number) {
    const scheduler::VectorWork& work = work_.vector[number];
    // Only dimensions that are cut have loops; the others are at their first and last block.
    const uint32_t cut = scheduler::CutMask(nest_, mapping_);
    Instruction vector = {.op = Opcode::kVector,
                          .engine = Engine::kVector,
                          .predicate = {.first = static_cast<uint16_t>(work.first & cut),
                                        .last = static_cast<uint16_t>(work.last & cut),
                                        .not_first = static_cast<uint16_t>(work.not_first & cut),
                                        .not_last = static_cast<uint16_t>(work.not_last & cut)},
                          .operand = OperandIndex(work.output),
                          .program = static_cast<uint8_t>(number + (contracts_ ? 1 : 0))};
    vector.reduce_dims = static_cast<uint16_t>(nest_.reduce_mask);
    group_.body.push_back(vector);
  }

  void EmitStores() {
    if (!AnyStore()) return;
    Wait(Engine::kStore, kDone);
    for (const bool overlaps : {false, true}) {
      if (!Any(true, overlaps)) continue;
      EmitTransfer(true, overlaps);
      Signal(Engine::kStore, overlaps ? kStoredD : kStoredS);
    }
  }

  const ir::Nest& nest_;
  const scheduler::Mapping& mapping_;
  const uint32_t prefetched_;  // operands whose first tiles the group before loads
  machine::Group& group_;
  std::vector<scheduler::Transfer> transfers_;
  scheduler::EngineWork work_;
  bool contracts_ = false;
  bool two_engines_ = false;  // the vector engine works behind the array
  Engine first_ = Engine::kVector, last_ = Engine::kVector;  // of a step's compute
};

}  // namespace

void EmitCode(const scheduler::Schedule& schedule, const scheduler::ScheduledGroup& scheduled,
              machine::Group* group) {
  GroupEmitter(schedule, scheduled, group).Run();
}

}  // namespace dla::codegen
