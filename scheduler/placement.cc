#include "scheduler/placement.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "support/checked.h"

namespace dla::scheduler {
namespace {

// The buffers' lifetimes over the distinct times at which one begins or ends: buffer i lives in the
// slots [first[i], end[i]). Short lifetimes then meet few others, however long the program is.
struct Slots {
  std::vector<size_t> first, end;
  size_t count = 0;
};

Slots SlotsOf(const PlacementProblem& problem) {
  std::vector<int64_t> times;
  for (const PlacedBuffer& buffer : problem.buffers) {
    times.push_back(buffer.first);
    times.push_back(buffer.end);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto slot = [&](int64_t time) {
    return static_cast<size_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  Slots slots = {.count = times.size()};
  for (const PlacedBuffer& buffer : problem.buffers) {
    slots.first.push_back(slot(buffer.first));
    slots.end.push_back(slot(buffer.end));
  }
  return slots;
}

// The state of a greedy run: offsets so far, -1 where a buffer has none yet.
class Greedy {
 public:
  explicit Greedy(const PlacementProblem& problem)
      : problem_(problem),
        slots_(SlotsOf(problem)),
        placed_(slots_.count),
        offsets_(problem.buffers.size(), -1) {}

  // Puts the buffer at its lowest free offset, or at its highest one; false if there is none.
  bool Put(size_t index, bool low) {
    const PlacedBuffer& buffer = problem_.buffers[index];
    std::vector<std::pair<int64_t, int64_t>> taken;  // [begin, end)
    for (size_t slot = slots_.first[index]; slot < slots_.end[index]; ++slot) {
      for (const size_t i : placed_[slot]) {
        taken.emplace_back(offsets_[i], offsets_[i] + problem_.buffers[i].bytes);
      }
    }
    std::sort(taken.begin(), taken.end());
    taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
    const int64_t offset = low ? Lowest(buffer, taken) : Highest(buffer, taken);
    if (offset < 0 || offset > problem_.capacity_bytes - buffer.bytes) return false;
    offsets_[index] = offset;
    for (size_t slot = slots_.first[index]; slot < slots_.end[index] && buffer.bytes > 0; ++slot) {
      placed_[slot].push_back(index);
    }
    return true;
  }

  PlacementSolution Take() { return {std::move(offsets_)}; }

 private:
  int64_t Lowest(const PlacedBuffer& buffer,
                 const std::vector<std::pair<int64_t, int64_t>>& taken) const {
    int64_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (offset + buffer.bytes <= begin) break;
      offset = std::max(offset, RoundUp(end, buffer.align_bytes));
    }
    return offset;
  }

  int64_t Highest(const PlacedBuffer& buffer,
                  const std::vector<std::pair<int64_t, int64_t>>& taken) const {
    const auto fit_below = [&](int64_t limit) {
      return (limit - buffer.bytes) / buffer.align_bytes * buffer.align_bytes;
    };
    if (buffer.bytes > problem_.capacity_bytes) return -1;
    int64_t offset = fit_below(problem_.capacity_bytes);
    for (size_t i = taken.size(); i-- > 0;) {
      bool free = true;
      for (const auto& [begin, end] : taken) {
        free = free && (offset + buffer.bytes <= begin || end <= offset);
      }
      if (free) return offset;
      if (taken[i].first < buffer.bytes) return -1;
      offset = std::min(offset, fit_below(taken[i].first));
    }
    for (const auto& [begin, end] : taken) {
      if (offset + buffer.bytes > begin && end > offset) return -1;
    }
    return offset;
  }

  const PlacementProblem& problem_;
  const Slots slots_;
  std::vector<std::vector<size_t>> placed_;  // by slot
  std::vector<int64_t> offsets_;
};

std::vector<size_t> BySize(const PlacementProblem& problem) {
  std::vector<size_t> order(problem.buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return problem.buffers[a].bytes > problem.buffers[b].bytes;
  });
  return order;
}

std::optional<PlacementSolution> LargestFirst(const PlacementProblem& problem) {
  Greedy greedy(problem);
  for (const size_t i : BySize(problem)) {
    if (!greedy.Put(i, true)) return std::nullopt;
  }
  return greedy.Take();
}

std::optional<PlacementSolution> EndsFirst(const PlacementProblem& problem) {
  Greedy greedy(problem);
  std::vector<size_t> lasting;
  std::vector<size_t> brief;
  for (const size_t i : BySize(problem)) {
    const PlacedBuffer& buffer = problem.buffers[i];
    (buffer.end - buffer.first > 1 ? lasting : brief).push_back(i);
  }
  std::stable_sort(lasting.begin(), lasting.end(), [&](size_t a, size_t b) {
    return problem.buffers[a].first < problem.buffers[b].first;
  });
  bool low = true;
  for (const size_t i : lasting) {
    if (!greedy.Put(i, low) && !greedy.Put(i, !low)) return std::nullopt;
    low = !low;
  }
  for (const size_t i : brief) {
    if (!greedy.Put(i, true)) return std::nullopt;
  }
  return greedy.Take();
}

}  // namespace

PlacementFault Validate(const PlacementProblem& problem, const PlacementSolution& solution) {
  const auto& buffers = problem.buffers;
  if (solution.offsets.size() != buffers.size()) return PlacementFault::kOutside;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const int64_t offset = solution.offsets[i];
    if (offset < 0 || buffers[i].bytes > problem.capacity_bytes ||
        offset > problem.capacity_bytes - buffers[i].bytes) {
      return PlacementFault::kOutside;
    }
    if (offset % buffers[i].align_bytes != 0) return PlacementFault::kMisaligned;
  }
  // A sweep over time: each buffer that begins is compared with those that live.
  std::vector<size_t> by_start(buffers.size());
  std::iota(by_start.begin(), by_start.end(), size_t{0});
  std::sort(by_start.begin(), by_start.end(),
            [&](size_t a, size_t b) { return buffers[a].first < buffers[b].first; });
  std::vector<size_t> alive;
  for (const size_t i : by_start) {
    if (buffers[i].first >= buffers[i].end) continue;
    std::erase_if(alive, [&](size_t j) { return buffers[j].end <= buffers[i].first; });
    for (const size_t j : alive) {
      const bool overlap = solution.offsets[i] < solution.offsets[j] + buffers[j].bytes &&
                           solution.offsets[j] < solution.offsets[i] + buffers[i].bytes;
      if (overlap) return PlacementFault::kOverlap;
    }
    alive.push_back(i);
  }
  return PlacementFault::kNone;
}

int64_t Height(const PlacementProblem& problem, const PlacementSolution& solution) {
  int64_t height = 0;
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    height = std::max(height, solution.offsets[i] + problem.buffers[i].bytes);
  }
  return height;
}

int64_t LoadBound(const PlacementProblem& problem) {
  std::map<int64_t, int64_t> change;
  for (const PlacedBuffer& buffer : problem.buffers) {
    change[buffer.first] += buffer.bytes;
    change[buffer.end] -= buffer.bytes;
  }
  int64_t live = 0;
  int64_t most = 0;
  for (const auto& [time, delta] : change) most = std::max(most, live += delta);
  return most;
}

std::optional<PlacementSolution> Place(const PlacementProblem& problem) {
  if (auto solution = LargestFirst(problem)) return solution;
  return EndsFirst(problem);
}

}  // namespace dla::scheduler
