// The schedule verifier: from first principles, sharing no code with the search or the placer.
#include <algorithm>
#include <sstream>

#include "scheduler/schedule.h"
#include "scheduler/transfers.h"

namespace dla::scheduler {
namespace {

struct Live {
  std::string what;
  int memory;
  int64_t begin, end;
  int first_group, end_group;
  ir::ValueId root = ir::kNoValue;  // of a resident
  ir::ValueId over = ir::kNoValue;  // Resident::over
};

// Does b take the place of a, in the group that ends a and begins b, at one address?
bool TakesPlace(const Live& b, const Live& a) {
  return b.over != ir::kNoValue && b.over == a.root && b.first_group + 1 == a.end_group &&
         a.begin == b.begin && a.end == b.end;
}

std::vector<Live> LiveBuffers(const Schedule& schedule) {
  std::vector<Live> live;
  for (const Resident& r : schedule.residents) {
    live.push_back({"resident value " + std::to_string(r.root), r.memory, r.address,
                    r.address + r.bytes, r.first_group, r.end_group, r.root, r.over});
  }
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    for (const TileBuffer& b : schedule.groups[g].buffers) {
      const GroupSpan life = LifeOf(schedule, static_cast<int>(g), b);
      live.push_back({schedule.groups[g].name + " operand " + std::to_string(b.operand), b.memory,
                      b.address, b.address + b.slot_bytes * b.slots, life.first, life.end});
    }
  }
  return live;
}

void CheckMapping(const ScheduledGroup& group, std::ostringstream* faults) {
  uint32_t seen = 0;
  for (size_t d = 0; d < group.nest.dimensions.size(); ++d) {
    const int64_t block = group.mapping.block[d];
    if (block < 1 || block > group.nest.dimensions[d].extent) {
      *faults << group.name << ": block of " << group.nest.dimensions[d].name << " is " << block
              << "\n";
    }
  }
  for (const int d : group.mapping.order) seen |= uint32_t{1} << d;
  if (seen != CutMask(group.nest, group.mapping) ||
      group.mapping.order.size() != static_cast<size_t>(__builtin_popcount(seen))) {
    *faults << group.name << ": the order does not list each cut dimension once\n";
  }
}

void CheckClasses(const Schedule& schedule, const ScheduledGroup& group,
                  std::ostringstream* faults) {
  const auto check = [&](int memory, OperandClass cls) {
    const machine::Memory& m = schedule.target.memories[static_cast<size_t>(memory)];
    if (!m.Holds(cls)) {
      *faults << group.name << ": '" << m.name << "' does not hold " << ClassName(cls) << "\n";
    }
  };
  for (size_t o = 0; o < group.nest.operands.size(); ++o) {
    check(group.mapping.operands[o].memory, group.nest.operands[o].cls);
  }
  if (group.nest.anchor == ir::Anchor::kContraction) {
    check(group.mapping.accumulator.memory, OperandClass::kPartial);
  }
}

}  // namespace

std::string VerifySchedule(const Schedule& schedule) {
  std::ostringstream faults;
  for (const ScheduledGroup& group : schedule.groups) {
    CheckMapping(group, &faults);
    CheckClasses(schedule, group, &faults);
    const std::string gather = GatherFault(group.nest, group.mapping);
    if (!gather.empty()) faults << group.name << ": " << gather << "\n";
  }
  std::vector<Live> live = LiveBuffers(schedule);
  std::stable_sort(live.begin(), live.end(),
                   [](const Live& a, const Live& b) { return a.first_group < b.first_group; });
  std::vector<Live> alive;  // while time passes: what has begun and not ended
  for (const Live& a : live) {
    if (a.begin < 0 || a.end > schedule.target.memories[static_cast<size_t>(a.memory)].bytes) {
      faults << a.what << " leaves its scratchpad\n";
    }
    std::erase_if(alive, [&](const Live& b) { return b.end_group <= a.first_group; });
    for (const Live& b : alive) {
      if (TakesPlace(a, b) || TakesPlace(b, a)) continue;
      if (a.memory == b.memory && a.begin < b.end && b.begin < a.end) {
        faults << a.what << " overlaps " << b.what << "\n";
      }
    }
    alive.push_back(a);
  }
  return faults.str();
}

}  // namespace dla::scheduler
