#include "scheduler/schedule.h"

#include "scheduler/predict.h"
#include "scheduler/transfers.h"

namespace dla::scheduler {

std::vector<ir::Nest> NestsOf(const Schedule& schedule) {
  std::vector<ir::Nest> nests;
  nests.reserve(schedule.groups.size());
  for (const ScheduledGroup& group : schedule.groups) nests.push_back(group.nest);
  return nests;
}

GroupSpan CascadeOf(const Schedule& schedule, int group) {
  const int cascade = schedule.groups[static_cast<size_t>(group)].cascade;
  if (cascade < 0) return {group, group + 1};
  const Cascade& c = schedule.cascades[static_cast<size_t>(cascade)];
  return {c.first_group, c.end_group};
}

GroupSpan LifeOf(const Schedule& schedule, int group, const TileBuffer& buffer) {
  const ScheduledGroup& g = schedule.groups[static_cast<size_t>(group)];
  if (CarriesOver(g.nest, g.mapping, buffer.operand)) return CascadeOf(schedule, group);
  GroupSpan life = {group, group + 1};
  if (buffer.operand >= 0 && (g.prefetched >> buffer.operand & 1U) != 0) --life.first;
  const size_t next = static_cast<size_t>(group) + 1;
  const bool next_is_joined = next < schedule.groups.size() && schedule.groups[next].joined;
  if (next_is_joined && StoresFrom(g, buffer.operand)) ++life.end;
  return life;
}

bool StoresFrom(const ScheduledGroup& group, int operand) {
  for (const Transfer& t : TransfersOf(group.nest, group.mapping)) {
    if (!t.is_store) continue;
    int source = t.operand;
    if (source == group.nest.output()) {
      if (DrainsInPlace(group.nest, group.mapping)) source = kAccumulator;
      if (group.nest.anchor == ir::Anchor::kMove) source = 0;
    }
    if (source == operand) return true;
  }
  return false;
}

const TileBuffer* FindBuffer(const ScheduledGroup& group, int operand) {
  for (const TileBuffer& buffer : group.buffers) {
    if (buffer.operand == operand) return &buffer;
  }
  return nullptr;
}

int FindRegion(const Schedule& schedule, DramKind kind, ir::ValueId root, int group) {
  for (size_t i = 0; i < schedule.regions.size(); ++i) {
    const DramRegion& region = schedule.regions[i];
    if (region.kind == kind && region.root == root && region.group == group) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

int FindValueRegion(const Schedule& schedule, ir::ValueId root) {
  for (size_t i = 0; i < schedule.regions.size(); ++i) {
    if (schedule.regions[i].root == root && schedule.regions[i].group < 0) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

double ValueOf(const ScheduledGroup& group, const Schedule& schedule) {
  const Cost cost = {static_cast<double>(group.predicted.dram_bus_bytes()),
                     static_cast<double>(group.alone_cycles),
                     EnergyPj(group.predicted, schedule.target, group.nest.operands[0].ReadType())};
  return MinimisedValue(schedule.objective, cost);
}

machine::Counters Totals(const Schedule& schedule) {
  machine::Counters totals;
  totals.memory.resize(schedule.target.memories.size());
  for (const ScheduledGroup& group : schedule.groups) totals.Add(group.predicted);
  return totals;
}

machine::Counters SteadyTotals(const Schedule& schedule) {
  machine::Counters totals;
  totals.memory.resize(schedule.target.memories.size());
  for (const ScheduledGroup& group : schedule.groups) totals.Add(group.steady);
  return totals;
}

bool LoadsOnce(const Schedule& schedule) {
  return std::any_of(schedule.groups.begin(), schedule.groups.end(),
                     [](const ScheduledGroup& group) { return LoadsOnce(group.mapping); });
}

int64_t CyclesApart(const Schedule& schedule) {
  int64_t cycles = 0;
  for (const ScheduledGroup& group : schedule.groups) cycles += group.alone_cycles;
  return cycles;
}

}  // namespace dla::scheduler
