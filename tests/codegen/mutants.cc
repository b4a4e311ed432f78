#include "tests/codegen/mutants.h"

#include <algorithm>

#include "support/status.h"

namespace dla::testing {
namespace {

using machine::AxisDesc;
using machine::Group;
using machine::Instruction;
using machine::Opcode;
using machine::OperandDesc;

// Collects all mutants of a group.
class Maker {
 public:
  explicit Maker(const machine::Program& program)
      : group_(program.groups[0]), memories_(program.target.memories) {}

  std::vector<Mutant> Run() {
    for (size_t i = 0; i < group_.body.size(); ++i) MutateInstruction(i);
    for (size_t d = 0; d < group_.dims.size(); ++d) MutateDimension(d);
    for (size_t o = 0; o < group_.operands.size(); ++o) MutateOperand(o);
    MutateTokens();
    return std::move(mutants_);
  }

 private:
  template <typename Change>
  void Add(const std::string& kind, const std::string& text, const Change& change) {
    Mutant mutant = {kind, text, group_};
    change(&mutant.group);
    if (!(mutant.group == group_)) mutants_.push_back(std::move(mutant));
  }
  // One more and one less of a number that `pick` finds in a group.
  template <typename Pick>
  void AddOffByOne(const std::string& kind, const std::string& text, int64_t by, const Pick& pick) {
    for (const int64_t change : {-by, by}) {
      Add(kind, Concat(text, change < 0 ? " " : " +", change),
          [&](Group* g) { *pick(g) += static_cast<std::decay_t<decltype(*pick(g))>>(change); });
    }
  }

  static bool Moves(const Instruction& i) {
    return i.op == Opcode::kLoad || i.op == Opcode::kStore;
  }
  static bool Syncs(const Instruction& i) {
    return i.op == Opcode::kWait || i.op == Opcode::kSignal;
  }

  void MutateInstruction(size_t at) {
    const Instruction& i = group_.body[at];
    const std::string where = Concat("body ", at);
    const auto drop = [at](Group* g) {
      g->body.erase(g->body.begin() + static_cast<std::ptrdiff_t>(at));
    };
    if (i.op == Opcode::kLoad) Add("load dropped", where, drop);
    if (i.op == Opcode::kStore) Add("store dropped", where, drop);
    if (i.op == Opcode::kArray || i.op == Opcode::kVector) Add("computation dropped", where, drop);
    if (Moves(i) || i.op == Opcode::kVector) MutatePredicate(at, where);
    if (Moves(i)) SwapWithOthers(at, where);
    if (Syncs(i)) Add("token removed", where, drop);
    if (Syncs(i)) MoveToken(at, where);
    if (i.op == Opcode::kBus) MutateBus(at, where);
    if (i.op == Opcode::kArray) MutateArray(at, where);
  }

  void MutatePredicate(size_t at, const std::string& where) {
    for (size_t d = 0; d < group_.dims.size(); ++d) {
      const auto bit = static_cast<uint16_t>(1u << d);
      const auto flip = [&](const char* name, uint16_t machine::Predicate::*mask) {
        Add("predicate bit", Concat(where, " ", name, " ", group_.dims[d].name), [&](Group* g) {
          uint16_t& bits = g->body[at].predicate.*mask;
          bits = static_cast<uint16_t>(bits ^ bit);
        });
      };
      flip("first", &machine::Predicate::first);
      flip("last", &machine::Predicate::last);
      flip("not_first", &machine::Predicate::not_first);
      flip("not_last", &machine::Predicate::not_last);
    }
  }

  // Two transfers of one direction change places: as they are, or each under the other's predicate.
  void SwapWithOthers(size_t at, const std::string& where) {
    for (size_t b = at + 1; b < group_.body.size(); ++b) {
      if (group_.body[b].op != group_.body[at].op) continue;
      const std::string kind =
          group_.body[b].op == Opcode::kLoad ? "loads swapped" : "stores swapped";
      const std::string text = Concat(where, " and ", b);
      Add(kind, text, [&](Group* g) { std::swap(g->body[at], g->body[b]); });
      Add(kind, text + ", operands",
          [&](Group* g) { std::swap(g->body[at].operand, g->body[b].operand); });
    }
  }

  // Past the next instruction of the same engine.
  void MoveToken(size_t at, const std::string& where) {
    const auto same = [&](size_t b) { return group_.body[b].engine == group_.body[at].engine; };
    for (size_t b = at + 1; b < group_.body.size(); ++b) {
      if (!same(b)) continue;
      Add("token moved", where + " down", [&](Group* g) { std::swap(g->body[at], g->body[b]); });
      break;
    }
    for (size_t b = at; b-- > 0;) {
      if (!same(b)) continue;
      Add("token moved", where + " up", [&](Group* g) { std::swap(g->body[at], g->body[b]); });
      break;
    }
  }

  void MutateBus(size_t at, const std::string& where) {
    AddOffByOne("bus lag", where, 1, [at](Group* g) { return &g->body[at].lag; });
    for (uint8_t slot = 0; slot < 4; ++slot) {
      Add("bus slot", Concat(where, " to ", int{slot}), [&](Group* g) { g->body[at].slot = slot; });
    }
  }

  void MutateArray(size_t at, const std::string& where) {
    Add("operand of the array", where + " without bias",
        [&](Group* g) { g->body[at].operand4 = machine::kNone; });
    Add("operand of the array", where + " output is accumulators",
        [&](Group* g) { g->body[at].operand5 = g->body[at].operand3; });
    Add("operand of the array", where + " accumulators are output",
        [&](Group* g) { g->body[at].operand3 = g->body[at].operand5; });
  }

  void MutateDimension(size_t d) {
    const std::string& name = group_.dims[d].name;
    AddOffByOne("extent", name, 1, [d](Group* g) { return &g->dims[d].extent; });
    AddOffByOne("block", name, 1, [d](Group* g) { return &g->dims[d].block; });
  }

  void MutateOperand(size_t o) {
    const OperandDesc& operand = group_.operands[o];
    const std::string where = Concat("operand ", o, " '", operand.value, "'");
    const int64_t align = memories_[operand.memory].align_bytes;
    for (const int64_t by : {align, operand.slot_bytes}) {
      AddOffByOne("address", where, by, [o](Group* g) { return &g->operands[o].address; });
    }
    AddOffByOne("slot bytes", where, align, [o](Group* g) { return &g->operands[o].slot_bytes; });
    AddOffByOne("ring slots", where, 1, [o](Group* g) { return &g->operands[o].ring_slots; });
    AddOffByOne("DRAM base", where, 1, [o](Group* g) { return &g->operands[o].dram_base; });
    AddOffByOne("pad value", where, 1, [o](Group* g) { return &g->operands[o].pad_value; });
    for (size_t d = 0; d < group_.dims.size(); ++d) {
      Add("generation bit", where + " " + group_.dims[d].name, [&](Group* g) {
        uint16_t& mask = g->operands[o].generation_dims;
        mask = static_cast<uint16_t>(mask ^ 1u << d);
      });
    }
    for (size_t m = 0; m < memories_.size(); ++m) {
      Add("memory", Concat(where, " to ", m),
          [&](Group* g) { g->operands[o].memory = static_cast<uint8_t>(m); });
    }
    for (size_t a = 0; a < operand.axes.size(); ++a) MutateAxis(o, a, Concat(where, " axis ", a));
  }

  void MutateAxis(size_t o, size_t a, const std::string& where) {
    const auto axis = [o, a](Group* g) -> AxisDesc& { return g->operands[o].axes[a]; };
    AddOffByOne("axis offset", where, 1, [&](Group* g) { return &axis(g).offset; });
    AddOffByOne("axis bound", where, 1, [&](Group* g) { return &axis(g).bound; });
    AddOffByOne("DRAM stride", where, 1, [&](Group* g) { return &axis(g).dram_stride; });
    AddOffByOne("local stride", where, 1, [&](Group* g) { return &axis(g).local_stride; });
    for (size_t t = 0; t < group_.operands[o].axes[a].terms.size(); ++t) {
      AddOffByOne("axis coefficient", where, 1,
                  [&](Group* g) { return &axis(g).terms[t].coefficient; });
    }
  }

  // Every token: gone altogether, and with one credit more or less.
  void MutateTokens() {
    for (uint8_t token = 0; token < machine::kMaxTokens; ++token) {
      const auto mine = [token](const Instruction& i) { return Syncs(i) && i.token == token; };
      Add("token pair removed", Concat("token ", int{token}), [&](Group* g) {
        for (auto* code : {&g->prologue, &g->body, &g->epilogue}) {
          code->erase(std::remove_if(code->begin(), code->end(), mine), code->end());
        }
      });
      for (const int change : {-1, 1}) {
        Add("credits", Concat("token ", int{token}, " ", change), [&](Group* g) {
          for (auto* code : {&g->prologue, &g->epilogue}) {
            for (Instruction& i : *code) {
              if (mine(i)) i.count = static_cast<uint8_t>(i.count + change);
            }
          }
        });
      }
    }
  }

  const Group& group_;
  const std::vector<machine::Memory>& memories_;
  std::vector<Mutant> mutants_;
};

}  // namespace

std::vector<Mutant> MutantsOf(const machine::Program& program, size_t per_kind,
                              std::mt19937* random) {
  std::vector<Mutant> all = Maker(program).Run();
  std::shuffle(all.begin(), all.end(), *random);
  std::map<std::string, size_t> taken;
  std::vector<Mutant> chosen;
  for (Mutant& mutant : all) {
    if (taken[mutant.kind]++ < per_kind) chosen.push_back(std::move(mutant));
  }
  return chosen;
}

}  // namespace dla::testing
