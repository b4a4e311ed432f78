#include "scheduler/scratchpads.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "scheduler/predict.h"
#include "scheduler/searcher.h"
#include "scheduler/transfers.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// Elements lie at multiples of their size, whatever the memory's alignment is; a buffer's bytes are
// such a multiple.
int64_t AlignmentOf(const machine::Memory& memory, int64_t bytes) {
  constexpr int64_t kLargestElement = 8;
  return std::max(memory.align_bytes, std::gcd(bytes, kLargestElement));
}

// Addresses in one scratchpad for all residents and tile buffers; false if no placement was found.
bool PlaceMemory(int memory, const PlacementOptions& options, Schedule* schedule) {
  const machine::Memory& m = schedule->target.memories[At(memory)];
  PlacementProblem problem = {.capacity_bytes = UsableBytes(m)};
  std::vector<std::pair<int64_t*, size_t>> addresses;  // and whose offsets they are
  std::vector<Resident*> residents;
  for (Resident& resident : schedule->residents) {
    if (resident.memory == memory) residents.push_back(&resident);
  }
  std::stable_sort(residents.begin(), residents.end(), [](const Resident* a, const Resident* b) {
    return a->first_group < b->first_group;
  });
  std::map<ir::ValueId, size_t> buffer_of;
  for (Resident* resident : residents) {
    if (resident->over != ir::kNoValue) {  // values that take each other's places are one buffer
      const size_t buffer = buffer_of.at(resident->over);
      problem.buffers[buffer].end = resident->end_group;
      buffer_of[resident->root] = buffer;
    } else {
      buffer_of[resident->root] = problem.buffers.size();
      problem.buffers.push_back({resident->first_group, resident->end_group, resident->bytes,
                                 AlignmentOf(m, resident->bytes)});
    }
    addresses.emplace_back(&resident->address, buffer_of[resident->root]);
  }
  for (size_t g = 0; g < schedule->groups.size(); ++g) {
    for (TileBuffer& buffer : schedule->groups[g].buffers) {
      if (buffer.memory != memory) continue;
      const GroupSpan life = LifeOf(*schedule, static_cast<int>(g), buffer);
      addresses.emplace_back(&buffer.address, problem.buffers.size());
      problem.buffers.push_back({life.first, life.end, buffer.slot_bytes * buffer.slots,
                                 AlignmentOf(m, buffer.slot_bytes)});
    }
  }
  const std::optional<PlacementSolution> solution = Place(problem, options).solution;
  if (!solution) return false;
  DLA_CHECK(Validate(problem, *solution) == PlacementFault::kNone, "placement in ", m.name);
  for (const auto& [address, buffer] : addresses) *address = solution->offsets[buffer];
  return true;
}

}  // namespace

void ListBuffers(const machine::Target& target, ScheduledGroup* group) {
  const int accumulators = group->nest.anchor == ir::Anchor::kContraction ? 1 : 0;
  for (int o = -accumulators; o <= group->nest.output(); ++o) {
    const int64_t bytes = BufferBytes(group->nest, group->mapping, target, o);
    if (bytes == 0) continue;
    const int slots = RingSlots(group->nest, group->mapping, o);
    const int memory = o == kAccumulator ? group->mapping.accumulator.memory
                                         : group->mapping.operands[At(o)].memory;
    group->buffers.push_back(
        {.operand = o, .memory = memory, .slot_bytes = bytes / slots, .slots = slots});
  }
}

int LayOutScratchpads(const PlacementOptions& options, Schedule* schedule) {
  for (int m = 0; m < static_cast<int>(schedule->target.memories.size()); ++m) {
    if (!PlaceMemory(m, options, schedule)) return m;
  }
  return -1;
}

int LeastWorthwhile(const Schedule& schedule, int memory) {
  std::vector<int64_t> load(schedule.groups.size(), 0);
  for (const Resident& r : schedule.residents) {
    if (r.memory != memory) continue;
    for (int g = r.first_group; g < r.end_group; ++g) load[At(g)] += r.bytes;
  }
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    for (const TileBuffer& b : schedule.groups[g].buffers) {
      if (b.memory != memory) continue;
      const GroupSpan life = LifeOf(schedule, static_cast<int>(g), b);
      for (int at = life.first; at < life.end; ++at) load[At(at)] += b.slot_bytes * b.slots;
    }
  }
  int worst = -1;
  std::pair<int64_t, int> worst_key;
  for (size_t i = 0; i < schedule.residents.size(); ++i) {
    const Resident& r = schedule.residents[i];
    if (r.memory != memory) continue;
    const int64_t peak =
        *std::max_element(load.begin() + r.first_group, load.begin() + r.end_group);
    const std::pair<int64_t, int> key = {peak, r.end_group - r.first_group};
    if (worst < 0 || key > worst_key) worst = static_cast<int>(i), worst_key = key;
  }
  return worst;
}

}  // namespace dla::scheduler
