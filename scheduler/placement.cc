#include "scheduler/placement.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "scheduler/placement_exact.h"
#include "support/checked.h"
#include "support/status.h"

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
        starting_(slots_.count),
        offsets_(problem.buffers.size(), -1) {}

  // Puts the buffer at its lowest free offset, or at its highest one; false if there is none.
  bool Put(size_t index, bool low) {
    const PlacedBuffer& buffer = problem_.buffers[index];
    std::vector<std::pair<int64_t, int64_t>> taken;  // [begin, end)
    const auto take = [&](size_t i) {
      taken.emplace_back(offsets_[i], offsets_[i] + problem_.buffers[i].bytes);
    };
    for (const size_t i : placed_[slots_.first[index]]) take(i);
    for (size_t slot = slots_.first[index] + 1; slot < slots_.end[index]; ++slot) {
      for (const size_t i : starting_[slot]) take(i);
    }
    std::sort(taken.begin(), taken.end());
    int64_t offset = low ? Lowest(buffer, taken) : Highest(buffer, taken);
    if (buffer.fixed_offset >= 0) offset = Fixed(buffer, taken);
    if (offset < 0 || offset > problem_.capacity_bytes - buffer.bytes) return false;
    offsets_[index] = offset;
    if (buffer.bytes == 0) return true;
    starting_[slots_.first[index]].push_back(index);
    for (size_t slot = slots_.first[index]; slot < slots_.end[index]; ++slot) {
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

  static int64_t Fixed(const PlacedBuffer& buffer,
                       const std::vector<std::pair<int64_t, int64_t>>& taken) {
    for (const auto& [begin, end] : taken) {
      if (buffer.fixed_offset + buffer.bytes > begin && end > buffer.fixed_offset) return -1;
    }
    return buffer.fixed_offset;
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
  std::vector<std::vector<size_t>> placed_;    // by slot: that live in it
  std::vector<std::vector<size_t>> starting_;  // by slot: whose life begins with it
  std::vector<int64_t> offsets_;
};

// What must lie where it is told first, then by decreasing size.
std::vector<size_t> BySize(const PlacementProblem& problem) {
  std::vector<size_t> order(problem.buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const bool a_fixed = problem.buffers[a].fixed_offset >= 0;
    const bool b_fixed = problem.buffers[b].fixed_offset >= 0;
    if (a_fixed != b_fixed) return a_fixed;
    return problem.buffers[a].bytes > problem.buffers[b].bytes;
  });
  return order;
}

// Each buffer in this order at its lowest free offset.
std::optional<PlacementSolution> InOrder(const PlacementProblem& problem,
                                         const std::vector<size_t>& order) {
  Greedy greedy(problem);
  for (const size_t i : order) {
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
    if (buffer.fixed_offset >= 0) {
      if (!greedy.Put(i, true)) return std::nullopt;
      continue;
    }
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

// Long-lived buffers alternately at the two ends and the others between them never fails for chains
// of residents where each meets only its neighbours; by size does well elsewhere.
std::optional<PlacementSolution> BestFit(const PlacementProblem& problem) {
  if (auto solution = InOrder(problem, BySize(problem))) return solution;
  return EndsFirst(problem);
}

// Clusters of buffers whose lifetimes do not meet, the largest buffers first; a cluster is a
// partition as large as its largest member.
std::optional<PlacementSolution> Color(const PlacementProblem& problem) {
  struct Cluster {
    int64_t offset;
    std::vector<size_t> members;
  };
  std::vector<Cluster> clusters;
  PlacementSolution solution;
  solution.offsets.resize(problem.buffers.size(), 0);
  int64_t height = 0;
  for (const size_t i : BySize(problem)) {
    const PlacedBuffer& buffer = problem.buffers[i];
    if (buffer.fixed_offset >= 0) return std::nullopt;  // partitions lie where colouring puts them
    const auto meets = [&](size_t j) {
      return problem.buffers[j].first < buffer.end && buffer.first < problem.buffers[j].end;
    };
    auto cluster = std::find_if(clusters.begin(), clusters.end(), [&](const Cluster& c) {
      return c.offset % buffer.align_bytes == 0 &&
             std::none_of(c.members.begin(), c.members.end(), meets);
    });
    if (cluster == clusters.end()) {
      const int64_t offset = RoundUp(height, buffer.align_bytes);
      if (offset > problem.capacity_bytes - buffer.bytes) return std::nullopt;
      height = offset + buffer.bytes;
      cluster = clusters.insert(clusters.end(), Cluster{.offset = offset, .members = {}});
    }
    cluster->members.push_back(i);
    solution.offsets[i] = cluster->offset;
  }
  return solution;
}

// Hill climbing over the order in which buffers are placed, in the manner of Vela (Arm's compiler
// for Ethos-U): the most urgent first (largest load during its life, then longest), each at its
// lowest free offset; then, again and again, two of the buffers that hold up the topmost one change
// places, and the new order stays if it is not worse.
class Climber {
 public:
  explicit Climber(const PlacementProblem& problem) : problem_(problem) {
    unlimited_.buffers = problem.buffers;
    const Slots slots = SlotsOf(problem);
    std::vector<int64_t> load(slots.count, 0);
    const size_t n = problem.buffers.size();
    for (size_t i = 0; i < n; ++i) {
      for (size_t s = slots.first[i]; s < slots.end[i]; ++s) load[s] += problem.buffers[i].bytes;
    }
    std::vector<int64_t> urgency(n, 0);
    for (size_t i = 0; i < n; ++i) {
      for (size_t s = slots.first[i]; s < slots.end[i]; ++s) {
        urgency[i] = std::max(urgency[i], load[s]);
      }
    }
    const auto key = [&](size_t i) {
      const PlacedBuffer& b = problem.buffers[i];
      return std::tuple(b.fixed_offset >= 0 ? 0 : 1, -urgency[i], b.first - b.end);
    };
    order_ = BySize(problem);
    std::stable_sort(order_.begin(), order_.end(),
                     [&](size_t a, size_t b) { return key(a) < key(b); });
  }

  PlacementResult Run(int rounds) {
    std::optional<PlacementSolution> now = InOrder(unlimited_, order_);
    PlacementResult result = {.nodes = 1};
    if (!now) return result;
    const int64_t bound = LoadBound(problem_);
    const int64_t wanted = problem_.capacity_bytes == INT64_MAX ? bound : problem_.capacity_bytes;
    int64_t height = Height(problem_, *now);
    for (; height > wanted && result.nodes <= rounds; ++result.nodes) {
      const std::vector<size_t> order = order_;
      Swap(*now, height);
      const std::optional<PlacementSolution> next = InOrder(unlimited_, order_);
      const int64_t next_height = next ? Height(problem_, *next) : INT64_MAX;
      if (next_height > height) {
        order_ = order;
        continue;
      }
      now = next;
      height = next_height;
    }
    if (height <= problem_.capacity_bytes) result.solution = std::move(now);
    return result;
  }

 private:
  bool Touch(const PlacementSolution& at, size_t below, size_t above) const {
    const PlacedBuffer& a = problem_.buffers[below];
    const PlacedBuffer& b = problem_.buffers[above];
    return a.first < b.end && b.first < a.end && at.offsets[below] < at.offsets[above];
  }

  // Swaps two of the buffers that lie, directly or not, under a topmost one (itself among them).
  void Swap(const PlacementSolution& at, int64_t height) {
    const size_t n = problem_.buffers.size();
    std::vector<size_t> holders;
    std::vector<bool> seen(n, false);
    for (size_t i = 0; i < n && holders.empty(); ++i) {
      if (at.offsets[i] + problem_.buffers[i].bytes == height) holders.push_back(i), seen[i] = true;
    }
    for (size_t h = 0; h < holders.size(); ++h) {
      for (size_t i = 0; i < n; ++i) {
        if (seen[i] || problem_.buffers[i].fixed_offset >= 0) continue;
        if (!Touch(at, i, holders[h])) continue;
        seen[i] = true;
        holders.push_back(i);
      }
    }
    if (holders.size() < 2) return;
    const size_t a = holders[Random(holders.size())];
    size_t b = holders[Random(holders.size())];
    if (a == b) b = holders[(Random(holders.size() - 1) + 1) % holders.size()];
    const auto at_a = std::find(order_.begin(), order_.end(), a);
    const auto at_b = std::find(order_.begin(), order_.end(), b);
    std::iter_swap(at_a, at_b);
  }

  size_t Random(size_t below) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<size_t>((state_ >> 33) % below);
  }

  const PlacementProblem& problem_;
  PlacementProblem unlimited_;
  std::vector<size_t> order_;
  uint64_t state_ = 1;
};

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
    if (buffers[i].fixed_offset >= 0 && offset != buffers[i].fixed_offset) {
      return PlacementFault::kMoved;
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

PlacementResult Place(const PlacementProblem& problem, const PlacementOptions& options) {
  PlacementResult result = {.nodes = 1};
  switch (options.method) {
    case PlaceMethod::kColor:
      result.solution = Color(problem);
      return result;
    case PlaceMethod::kBestFit:
      result.solution = BestFit(problem);
      return result;
    case PlaceMethod::kHillClimb:
      return Climber(problem).Run(options.climb_rounds);
    case PlaceMethod::kExact:
      break;
  }
  result.solution = BestFit(problem);
  if (result.solution) return result;
  if (LoadBound(problem) > problem.capacity_bytes) {
    result.complete = true;
    return result;
  }
  return PlaceExact(problem, options.node_budget);
}

PlacementSolution PlaceLow(const PlacementProblem& problem, const PlacementOptions& options) {
  PlacementProblem question = problem;
  question.capacity_bytes = INT64_MAX;
  PlacementOptions greedy = options;
  if (options.method == PlaceMethod::kExact) greedy.method = PlaceMethod::kBestFit;
  PlacementResult result = Place(question, greedy);
  DLA_CHECK(result.solution.has_value(), "no placement without a limit");
  PlacementSolution best = *std::move(result.solution);
  if (options.method != PlaceMethod::kExact) return best;
  // What is asked for: the bound at first, then halfway between what failed and what succeeded.
  int64_t failed = LoadBound(problem) - 1;
  int64_t ask = failed + 1;
  while (failed + 1 < Height(problem, best)) {
    question.capacity_bytes = ask;
    result = PlaceExact(question, options.node_budget);
    if (result.solution) {
      best = *std::move(result.solution);
    } else {
      failed = ask;
    }
    ask = failed + (Height(problem, best) - failed) / 2;
  }
  return best;
}

std::optional<PlaceMethod> ParsePlaceMethod(std::string_view name) {
  for (const PlaceMethod method :
       {PlaceMethod::kColor, PlaceMethod::kBestFit, PlaceMethod::kHillClimb, PlaceMethod::kExact}) {
    if (PlaceMethodName(method) == name) return method;
  }
  return std::nullopt;
}

std::string_view PlaceMethodName(PlaceMethod method) {
  switch (method) {
    case PlaceMethod::kColor:
      return "color";
    case PlaceMethod::kBestFit:
      return "best-fit";
    case PlaceMethod::kHillClimb:
      return "hill-climb";
    case PlaceMethod::kExact:
      break;
  }
  return "exact";
}

}  // namespace dla::scheduler
