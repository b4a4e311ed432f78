// What stays on chip from run to run, and that what engines find there was loaded.
#include <algorithm>
#include <set>
#include <tuple>

#include "machine/isa.h"
#include "machine/tile.h"
#include "machine/verifier.h"
#include "machine/verify_parts.h"

namespace dla::machine {
namespace {

// Bytes of a scratchpad that what was loaded once takes.
struct Kept {
  uint8_t memory = 0;
  int64_t begin = 0, end = 0;
  size_t group = 0, operand = 0;
};

bool Writes(const Instruction& instruction, size_t operand) {
  switch (instruction.op) {
    case Opcode::kLoad:
    case Opcode::kVector:
      return instruction.operand == operand;
    case Opcode::kMove:
      return instruction.operand2 == operand;
    case Opcode::kArray:
      return instruction.operand3 == operand || instruction.operand5 == operand;
    default:
      return false;
  }
}

bool IsLoaded(const Group& group, size_t operand) {
  return std::any_of(group.body.begin(), group.body.end(), [&](const Instruction& i) {
    return i.op == Opcode::kLoad && i.operand == operand;
  });
}

class KeptVerifier {
 public:
  KeptVerifier(const Program& program, Faults* faults) : program_(program), faults_(*faults) {}

  void Run() {
    ForEachOperand([&](size_t g, size_t o) { CheckOnce(g, o); });
    if (!kept_.empty()) ForEachOperand([&](size_t g, size_t o) { CheckWritten(g, o); });
    ForEachOperand([&](size_t g, size_t o) { CheckLoaded(g, o); });
  }

 private:
  template <typename Visit>
  void ForEachOperand(const Visit& visit) {
    for (size_t g = 0; g < program_.groups.size(); ++g) {
      for (size_t o = 0; o < program_.groups[g].operands.size() && !faults_.full(); ++o) {
        visit(g, o);
      }
    }
  }

  const OperandDesc& At(size_t g, size_t o) const { return program_.groups[g].operands[o]; }

  std::string Text(size_t g, size_t o) const {
    return Concat("group ", g, " '", program_.groups[g].name,
                  "': ", OperandText(program_.groups[g], static_cast<int>(o)));
  }

  bool ComesFrom(const OperandDesc& operand, std::initializer_list<RegionKind> kinds) const {
    if (operand.dram_layout != DramLayout::kStrided) return false;
    const RegionKind kind = program_.regions[operand.region].kind;
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  }

  void CheckOnce(size_t g, size_t o) {
    const OperandDesc& operand = At(g, o);
    if (!operand.once) return;
    if (!operand.resident || operand.gather || !ComesFrom(operand, {RegionKind::kConstant})) {
      faults_.Add(Text(g, o), "is loaded once for all runs, but is no resident constant");
    }
    if (program_.groups[g].cascade >= 0 || !IsLoaded(program_.groups[g], o)) {
      faults_.Add(Text(g, o), "is loaded once for all runs, but in stripes or not at all");
    }
    kept_.push_back({operand.memory, operand.address, operand.address + operand.slot_bytes, g, o});
  }

  void CheckWritten(size_t g, size_t o) {
    const OperandDesc& operand = At(g, o);
    const int64_t end = operand.address + operand.ring_slots * operand.slot_bytes;
    for (const Kept& kept : kept_) {
      const bool shares =
          kept.memory == operand.memory && kept.begin < end && operand.address < kept.end;
      if (!shares) continue;
      const bool is_itself = kept.group == g && kept.operand == o;
      if (is_itself || !IsWritten(program_.groups[g], o)) continue;
      faults_.Add(Text(g, o), "is written where ",
                  OperandText(program_.groups[kept.group], static_cast<int>(kept.operand)),
                  " stays for later runs");
    }
  }

  // A resident constant or input is where some load of this group or an earlier one put it.
  void CheckLoaded(size_t g, size_t o) {
    const OperandDesc& operand = At(g, o);
    if (!operand.resident || !ComesFrom(operand, {RegionKind::kConstant, RegionKind::kInput})) {
      return;
    }
    const int64_t origin = operand.address - TypeBytes(operand.type, operand.dram_base);
    const std::tuple key(operand.memory, operand.region, origin);
    if (g != group_) {
      group_ = g;
      for (size_t i = 0; i < program_.groups[g].operands.size(); ++i) {
        const OperandDesc& other = At(g, i);
        if (!other.resident || !IsLoaded(program_.groups[g], i)) continue;
        loaded_.emplace(other.memory, other.region,
                        other.address - TypeBytes(other.type, other.dram_base));
      }
    }
    if (loaded_.count(key) == 0) {
      faults_.Add(Text(g, o), "is resident, but no group up to this one loads it there");
    }
  }

  const Program& program_;
  Faults& faults_;
  std::vector<Kept> kept_;
  // Memory, region, and where the region's first byte would lie: what groups up to group_ loaded.
  std::set<std::tuple<uint8_t, uint32_t, int64_t>> loaded_;
  size_t group_ = static_cast<size_t>(-1);
};

}  // namespace

bool IsWritten(const Group& group, size_t operand) {
  return std::any_of(group.body.begin(), group.body.end(),
                     [&](const Instruction& i) { return Writes(i, operand); });
}

void VerifyKept(const Program& program, Faults* faults) { KeptVerifier(program, faults).Run(); }

}  // namespace dla::machine
