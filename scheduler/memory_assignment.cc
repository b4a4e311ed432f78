#include "scheduler/memory_assignment.h"

#include <algorithm>

#include "support/checked.h"

namespace dla::scheduler {
namespace {

int ClassesHeld(const machine::Memory& memory) {
  return static_cast<int>(std::count(memory.holds.begin(), memory.holds.end(), true));
}

class Assignment {
 public:
  Assignment(const ir::Nest& nest, const machine::Target& target,
             std::span<const int64_t> free_bytes, std::span<const BufferNeed> needs,
             Mapping* mapping)
      : nest_(nest),
        target_(target),
        free_(free_bytes.begin(), free_bytes.end()),
        needs_(needs),
        mapping_(*mapping) {}

  // Places item `item` and all behind it: first the accumulators (item 0), then the operands.
  bool From(size_t item) {
    const bool contracts = nest_.anchor == ir::Anchor::kContraction;
    if (item == 0) return contracts ? Accumulators() : From(1);
    const size_t o = item - 1;
    if (o == nest_.operands.size()) return true;
    OperandPlace& place = mapping_.operands[o];
    const bool is_output = o + 1 == nest_.operands.size();
    if (place.resident) return From(item + 1);
    if (place.source >= 0) return TryLinked(nest_.operands[o].cls, needs_[o], &place, item);
    if (is_output && nest_.anchor == ir::Anchor::kMove) {
      place = mapping_.operands[0];
      return From(item + 1);
    }
    if (is_output && contracts &&
        target_.memories[Index(mapping_.accumulator)].Holds(nest_.operands[o].cls)) {
      place.memory = mapping_.accumulator.memory;  // drained in place
      if (From(item + 1)) return true;
    }
    return Try(nest_.operands[o].cls, needs_[o], is_output && contracts, &place, item);
  }

 private:
  static size_t Index(const OperandPlace& place) { return static_cast<size_t>(place.memory); }

  bool Accumulators() {
    return Try(OperandClass::kPartial, needs_.back(), false, &mapping_.accumulator, 0);
  }

  bool Try(OperandClass cls, const BufferNeed& need, bool not_with_accumulators,
           OperandPlace* place, size_t item) {
    for (int classes = 1; classes <= kOperandClassCount; ++classes) {
      for (size_t m = 0; m < target_.memories.size(); ++m) {
        const machine::Memory& memory = target_.memories[m];
        if (!memory.Holds(cls) || ClassesHeld(memory) != classes) continue;
        if (not_with_accumulators && m == Index(mapping_.accumulator)) continue;
        const int64_t bytes = RoundUp(need.tile_bytes, memory.align_bytes) * need.slots;
        if (bytes > free_[m]) continue;
        free_[m] -= bytes;
        place->memory = static_cast<int>(m);
        if (From(item + 1)) return true;
        free_[m] += bytes;
      }
    }
    return false;
  }

  // A scratchpad to which a link leads from where the value stays.
  bool TryLinked(OperandClass cls, const BufferNeed& need, OperandPlace* place, size_t item) {
    for (size_t m = 0; m < target_.memories.size(); ++m) {
      const machine::Memory& memory = target_.memories[m];
      const int to = static_cast<int>(m);
      if (!memory.Holds(cls) || target_.FindLink(place->source, to) == nullptr) continue;
      const int64_t bytes = RoundUp(need.tile_bytes, memory.align_bytes) * need.slots;
      if (bytes > free_[m]) continue;
      free_[m] -= bytes;
      place->memory = to;
      if (From(item + 1)) return true;
      free_[m] += bytes;
    }
    return false;
  }

  const ir::Nest& nest_;
  const machine::Target& target_;
  std::vector<int64_t> free_;
  std::span<const BufferNeed> needs_;
  Mapping& mapping_;
};

}  // namespace

bool AssignMemories(const ir::Nest& nest, const machine::Target& target,
                    std::span<const int64_t> free_bytes, std::span<const BufferNeed> needs,
                    Mapping* mapping) {
  return Assignment(nest, target, free_bytes, needs, mapping).From(0);
}

}  // namespace dla::scheduler
