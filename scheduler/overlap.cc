#include "scheduler/overlap.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "scheduler/cycle_model.h"
#include "scheduler/searcher.h"
#include "scheduler/transfers.h"
#include "scheduler/value_flow.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// Operands whose first tile can be loaded while the group before runs: it is loaded in the first
// step, and no indices or results of that group are needed for it.
uint32_t MayBePrefetched(const ir::Graph& graph, const ScheduledGroup& before,
                         const ScheduledGroup& group) {
  const uint32_t cut = CutMask(group.nest, group.mapping);
  const ir::ValueId made = RootOf(graph, before.nest.operands.back());
  uint32_t operands = 0;
  for (const Transfer& t : TransfersOf(group.nest, group.mapping)) {
    if (t.is_store || t.is_move || t.operand == kAccumulator || (t.last & cut) != 0) continue;
    const ir::Operand& operand = group.nest.operands[At(t.operand)];
    const bool has_buffer = FindBuffer(group, t.operand) != nullptr;
    if (operand.gather || RootOf(graph, operand) == made || !has_buffer) continue;
    operands |= uint32_t{1} << t.operand;
  }
  return operands;
}

class Overlapper {
 public:
  // `slack`: 64ths of each scratchpad that are left free.
  Overlapper(int slack, Schedule* schedule) : graph_(schedule->graph), schedule_(*schedule) {
    for (const machine::Memory& memory : schedule->target.memories) {
      const int64_t usable = UsableBytes(memory);
      free_.emplace_back(schedule->groups.size(), usable - usable * slack / 64);
    }
    for (const Resident& r : schedule->residents)
      Take(r.memory, r.first_group, r.end_group, r.bytes);
    for (size_t g = 0; g < schedule->groups.size(); ++g) {
      for (const TileBuffer& b : schedule->groups[g].buffers) {
        const GroupSpan life = LifeOf(*schedule, static_cast<int>(g), b);
        Take(b.memory, life.first, life.end, b.slot_bytes * b.slots);
      }
    }
  }

  // True if anything overlaps.
  bool Run() {
    bool any = false;
    std::vector<ScheduledGroup>& groups = schedule_.groups;
    std::unique_ptr<CycleModel> before, model;
    for (size_t g = 0; g < groups.size(); ++g) {
      before = std::move(model);
      model = nullptr;
      if (groups[g].cascade >= 0) {
        carried_ = {};
        continue;
      }
      model = std::make_unique<CycleModel>(groups[g].nest, schedule_.target);
      if (before != nullptr) any = Overlap(g, before.get(), model.get()) || any;
    }
    return any;
  }

 private:
  struct Choice {
    bool joined = false;
    uint32_t prefetched = 0;
    GroupTime first, second;  // of the two groups
    int64_t cycles() const { return first.cycles + second.cycles; }
  };

  void Take(int memory, int first, int end, int64_t bytes) {
    const int64_t align = schedule_.target.memories[At(memory)].align_bytes;
    for (int g = first; g < end; ++g) free_[At(memory)][At(g)] -= RoundUp(bytes, align);
  }

  // The border before group g.
  bool Overlap(size_t g, CycleModel* before, CycleModel* model) {
    ScheduledGroup& a = schedule_.groups[g - 1];
    ScheduledGroup& b = schedule_.groups[g];
    const Choice apart = TimesOf({}, a, b, before, model);
    Choice best = apart;
    const uint32_t prefetched = WhatFits(g, MayBePrefetched(graph_, a, b));
    for (const bool joined : {false, true}) {
      if (joined && !CanJoin(g)) continue;
      for (const uint32_t operands : {uint32_t{0}, prefetched}) {
        const Choice choice =
            TimesOf({.joined = joined, .prefetched = operands}, a, b, before, model);
        if (choice.cycles() < best.cycles()) best = choice;
      }
    }
    a.steady.cycles = best.first.cycles;
    b.steady.cycles = best.second.cycles;
    b.joined = best.joined;
    b.prefetched = best.prefetched;
    carried_ = best.first.after;
    const int group = static_cast<int>(g);
    ForEachPrefetched(b, [&](const TileBuffer& buffer) {
      Take(buffer.memory, group - 1, group, buffer.slot_bytes * buffer.slots);
    });
    if (!b.joined) return b.prefetched != 0;
    for (const TileBuffer& buffer : a.buffers) {
      if (!StoresFrom(a, buffer.operand)) continue;
      Take(buffer.memory, group, group + 1, buffer.slot_bytes * buffer.slots);
    }
    return true;
  }

  // With group b followed by a barrier.
  Choice TimesOf(Choice choice, const ScheduledGroup& a, const ScheduledGroup& b,
                 CycleModel* before, CycleModel* model) const {
    Neighbours of_a = {.before = carried_, .prefetched = a.prefetched};
    of_a.next_is_joined = choice.joined;
    if (choice.prefetched != 0) {
      of_a.next_prefetch = model->PrefetchCycles(b.mapping, choice.prefetched);
    }
    choice.first = before->CyclesBetween(SteadyMapping(a.mapping), of_a);
    choice.second = model->CyclesBetween(
        SteadyMapping(b.mapping), {.before = choice.first.after, .prefetched = choice.prefetched});
    return choice;
  }

  template <typename Visit>
  static void ForEachPrefetched(const ScheduledGroup& group, const Visit& visit) {
    for (const TileBuffer& buffer : group.buffers) {
      if (buffer.operand >= 0 && (group.prefetched >> buffer.operand & 1U) != 0) visit(buffer);
    }
  }

  // Of the operands of group g, those that find room beside the group before.
  uint32_t WhatFits(size_t g, uint32_t operands) const {
    std::vector<int64_t> room;
    for (const std::vector<int64_t>& free : free_) room.push_back(free[g - 1]);
    uint32_t fitting = 0;
    for (const TileBuffer& buffer : schedule_.groups[g].buffers) {
      if (buffer.operand < 0 || (operands >> buffer.operand & 1U) == 0) continue;
      const int64_t bytes = buffer.slot_bytes * buffer.slots;
      if (bytes > room[At(buffer.memory)]) continue;
      room[At(buffer.memory)] -= bytes;
      fitting |= uint32_t{1} << buffer.operand;
    }
    return fitting;
  }

  // Is there room in group g for what the group before still stores?
  bool CanJoin(size_t g) const {
    std::vector<int64_t> room;
    for (const std::vector<int64_t>& free : free_) room.push_back(free[g]);
    const ScheduledGroup& before = schedule_.groups[g - 1];
    // What stays and is stored as well may be gone or overwritten in group g.
    const OperandPlace& output = before.mapping.operands[At(before.nest.output())];
    if (output.resident && output.through_dram) return false;
    for (const TileBuffer& buffer : before.buffers) {
      if (!StoresFrom(before, buffer.operand)) continue;
      room[At(buffer.memory)] -= buffer.slot_bytes * buffer.slots;
    }
    return std::all_of(room.begin(), room.end(), [](int64_t bytes) { return bytes >= 0; });
  }

  const ir::Graph& graph_;
  Schedule& schedule_;
  std::vector<std::vector<int64_t>> free_;  // by memory and group
  Carried carried_;                         // to the group before the border
};

}  // namespace

namespace {

// The cycles of the first inference, which loads more than those for which the overlap was chosen.
void TimeFirst(Schedule* schedule) {
  std::vector<ScheduledGroup>& groups = schedule->groups;
  if (!LoadsOnce(*schedule)) {
    for (ScheduledGroup& group : groups) group.predicted.cycles = group.steady.cycles;
    return;
  }
  Carried carried;
  for (size_t g = 0; g < groups.size(); ++g) {
    ScheduledGroup& group = groups[g];
    if (group.cascade >= 0) {
      carried = {};
      continue;
    }
    CycleModel model(group.nest, schedule->target);
    Neighbours neighbours = {.before = carried, .prefetched = group.prefetched};
    if (g + 1 < groups.size()) {
      const ScheduledGroup& next = groups[g + 1];
      neighbours.next_is_joined = next.joined;
      if (next.prefetched != 0) {
        neighbours.next_prefetch =
            CycleModel(next.nest, schedule->target).PrefetchCycles(next.mapping, next.prefetched);
      }
    }
    const GroupTime time = model.CyclesBetween(group.mapping, neighbours);
    group.predicted.cycles = time.cycles;
    carried = time.after;
  }
}

}  // namespace

void OverlapGroups(const std::function<bool(Schedule*)>& place, Schedule* schedule) {
  const Schedule apart = *schedule;
  // What fits by its sum may have no addresses: then a part of each scratchpad is left free.
  for (const int slack : {0, 4, 16}) {
    if (!Overlapper(slack, schedule).Run()) break;
    if (place(schedule)) return TimeFirst(schedule);
    *schedule = apart;
  }
}

}  // namespace dla::scheduler
