// Groups that overlap: what is prefetched, and where the group before still reads.
#include <algorithm>

#include "machine/tile.h"
#include "machine/verifier.h"
#include "machine/verify_parts.h"

namespace dla::machine {
namespace {

// Bytes of the scratchpad that the operand's tiles, or the whole value, take.
int64_t BytesOf(const Group& group, const OperandDesc& operand) {
  const bool is_empty = TileElements(group, operand).value_or(1) == 0;
  return is_empty ? 0 : operand.ring_slots * operand.slot_bytes;
}

bool ShareBytes(const Group& group_a, const OperandDesc& a, const Group& group_b,
                const OperandDesc& b) {
  const int64_t bytes_a = BytesOf(group_a, a), bytes_b = BytesOf(group_b, b);
  if (a.memory != b.memory || bytes_a == 0 || bytes_b == 0) return false;
  return a.address < b.address + bytes_b && b.address < a.address + bytes_a;
}

bool Stores(const Group& group, size_t operand) {
  return std::any_of(group.body.begin(), group.body.end(), [&](const Instruction& i) {
    return i.op == Opcode::kStore && i.operand == operand;
  });
}

void VerifyPrefetched(const Group& before, const Group& group, uint8_t number,
                      const std::string& where, Faults* faults) {
  const OperandDesc& operand = group.operands[number];
  const std::string text = Concat(where, ": ", OperandText(group, number));
  if (operand.dram_layout == DramLayout::kNone || operand.resident || operand.gather) {
    faults->Add(text, "cannot be prefetched: it is no plain tile of DRAM");
  }
  for (size_t o = 0; o < before.operands.size(); ++o) {
    const OperandDesc& other = before.operands[o];
    if (ShareBytes(group, operand, before, other)) {
      faults->Add(text, "is prefetched to where the group before has its ",
                  OperandText(before, static_cast<int>(o)));
    } else if (Stores(before, o) && other.region == operand.region) {
      faults->Add(text, "is prefetched from where the group before stores its ",
                  OperandText(before, static_cast<int>(o)));
    }
  }
}

void VerifyJoined(const Group& before, const Group& group, const std::string& where,
                  Faults* faults) {
  for (size_t o = 0; o < before.operands.size(); ++o) {
    if (!Stores(before, o)) continue;
    for (size_t mine = 0; mine < group.operands.size(); ++mine) {
      // What is still stored may be read: a value that stays on chip.
      const bool prefetched =
          std::find(group.prefetch.begin(), group.prefetch.end(), mine) != group.prefetch.end();
      if (!prefetched && !IsWritten(group, mine)) continue;
      if (!ShareBytes(before, before.operands[o], group, group.operands[mine])) continue;
      faults->Add(Concat(where, ": ", OperandText(group, static_cast<int>(mine))),
                  "lies where the group before may still store its ",
                  OperandText(before, static_cast<int>(o)));
    }
  }
}

}  // namespace

void VerifyOverlap(const Program& program, size_t g, const std::string& where, Faults* faults) {
  const Group& group = program.groups[g];
  if ((!group.joined && group.prefetch.empty()) || faults->count() != 0) return;
  if (g == 0 || group.cascade >= 0 || program.groups[g - 1].cascade >= 0) {
    faults->Add(where, "cannot overlap with the group before: it is the first one, or one of them ",
                "belongs to a cascade");
    return;
  }
  const Group& before = program.groups[g - 1];
  unsigned seen = 0;
  for (const uint8_t operand : group.prefetch) {
    if (operand >= group.operands.size() || (seen >> operand & 1U) != 0) {
      faults->Add(where, "prefetches operand ", static_cast<int>(operand), " of ",
                  group.operands.size(), ", or twice");
      return;
    }
    seen |= 1U << operand;
    VerifyPrefetched(before, group, operand, where, faults);
  }
  if (group.joined) VerifyJoined(before, group, where, faults);
}

}  // namespace dla::machine
