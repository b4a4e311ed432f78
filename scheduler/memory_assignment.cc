#include "scheduler/memory_assignment.h"

#include <algorithm>

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

auto ClassesHeld(const machine::Memory& memory) {
  return std::count(memory.holds.begin(), memory.holds.end(), true);
}

// The scratchpads that hold the class, the most specialised first; from `source` (if any) a link
// must lead to them.
std::vector<int> Holding(const machine::Target& target, OperandClass cls, int source) {
  std::vector<int> memories;
  for (int m = 0; m < static_cast<int>(target.memories.size()); ++m) {
    if (!target.memories[At(m)].Holds(cls)) continue;
    if (source >= 0 && target.FindLink(source, m) == nullptr) continue;
    memories.push_back(m);
  }
  if (source < 0) {
    std::stable_sort(memories.begin(), memories.end(), [&](int a, int b) {
      return ClassesHeld(target.memories[At(a)]) < ClassesHeld(target.memories[At(b)]);
    });
  }
  return memories;
}

}  // namespace

MemoryChoices::MemoryChoices(const ir::Nest& nest, const machine::Target& target,
                             std::vector<int64_t> free_bytes, std::span<const int> resident_in)
    : free_(std::move(free_bytes)) {
  const bool contracts = nest.anchor == ir::Anchor::kContraction;
  drains_ = contracts && resident_in[At(nest.output())] < 0;
  shares_ = nest.anchor == ir::Anchor::kMove;
  for (const machine::Memory& memory : target.memories) {
    align_.push_back(memory.align_bytes);
    in_place_.push_back(memory.Holds(nest.operands.back().cls));
  }
  for (int o = 0; o <= nest.output(); ++o) {
    const OperandClass cls = nest.operands[At(o)].cls;
    const int stays_in = resident_in[At(o)];
    const bool is_resident = stays_in >= 0 && target.memories[At(stays_in)].Holds(cls);
    memory_of_resident_.push_back(is_resident ? stays_in : -1);
    source_.push_back(is_resident ? -1 : stays_in);
    const bool has_none = is_resident || (shares_ && o == nest.output());
    allowed_.push_back(has_none ? std::vector<int>() : Holding(target, cls, source_.back()));
    memory_.push_back(is_resident ? stays_in : -1);
    // One that must have a buffer and may be nowhere.
    if (!has_none && allowed_.back().empty()) free_.assign(free_.size(), -1);
  }
  memory_of_resident_.push_back(-1);
  source_.push_back(-1);
  memory_.push_back(-1);
  allowed_.emplace_back();
  if (contracts) allowed_.back() = Holding(target, OperandClass::kPartial, -1);
  if (contracts && allowed_.back().empty()) free_.assign(free_.size(), -1);
}

bool MemoryChoices::HasChoice() const {
  return std::any_of(allowed_.begin(), allowed_.end(),
                     [](const std::vector<int>& memories) { return memories.size() > 1; });
}

void MemoryChoices::Write(Mapping* mapping) const {
  const size_t operands = memory_.size() - 1;
  mapping->operands.resize(operands);
  for (size_t o = 0; o < operands; ++o) {
    OperandPlace& place = mapping->operands[o];
    place.resident = memory_of_resident_[o] >= 0;
    place.source = source_[o];
    place.memory = memory_[o];
    if (source_[o] >= 0) place.is_double = true;
  }
  if (shares_) mapping->operands.back() = mapping->operands.front();
  mapping->accumulator.memory = std::max(memory_.back(), 0);
}

bool AssignMemories(const ir::Nest& nest, const machine::Target& target,
                    std::span<const int64_t> free_bytes, std::span<const int> resident_in,
                    std::span<const BufferNeed> needs, Mapping* mapping) {
  MemoryChoices choices(nest, target, {free_bytes.begin(), free_bytes.end()}, resident_in);
  return choices.ForEach(needs, [&] {
    choices.Write(mapping);
    return true;
  });
}

}  // namespace dla::scheduler
