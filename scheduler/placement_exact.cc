#include "scheduler/placement_exact.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "support/checked.h"

namespace dla::scheduler {
namespace {

// Time cut at every moment at which a buffer begins or ends: buffer b lives in the sections
// [first, end).
struct Item {
  int64_t bytes = 0;
  int64_t align = 1;
  int64_t fixed = -1;
  int32_t first = 0;
  int32_t end = 0;
  int64_t lifetime = 0;
  std::vector<int32_t> neighbours;  // that live at a common moment
};

struct Timeline {
  std::vector<Item> items;
  int32_t sections = 0;
};

Timeline TimelineOf(const PlacementProblem& problem, const std::vector<size_t>& chosen) {
  std::vector<int64_t> times;
  for (const size_t i : chosen) {
    times.push_back(problem.buffers[i].first);
    times.push_back(problem.buffers[i].end);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto section = [&](int64_t time) {
    return static_cast<int32_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  Timeline line;
  line.sections = static_cast<int32_t>(times.size());
  for (const size_t i : chosen) {
    const PlacedBuffer& b = problem.buffers[i];
    line.items.push_back({.bytes = b.bytes,
                          .align = b.align_bytes,
                          .fixed = b.fixed_offset,
                          .first = section(b.first),
                          .end = section(b.end),
                          .lifetime = b.end - b.first});
  }
  std::vector<int32_t> by_start(line.items.size());
  std::iota(by_start.begin(), by_start.end(), 0);
  std::stable_sort(by_start.begin(), by_start.end(), [&](int32_t a, int32_t b) {
    return line.items[static_cast<size_t>(a)].first < line.items[static_cast<size_t>(b)].first;
  });
  std::vector<int32_t> alive;
  for (const int32_t i : by_start) {
    Item& item = line.items[static_cast<size_t>(i)];
    std::erase_if(alive,
                  [&](int32_t j) { return line.items[static_cast<size_t>(j)].end <= item.first; });
    for (const int32_t j : alive) {
      item.neighbours.push_back(j);
      line.items[static_cast<size_t>(j)].neighbours.push_back(i);
    }
    alive.push_back(i);
  }
  return line;
}

enum class Outcome : uint8_t { kSolved, kFailed, kStopped };

// Fingerprints of states that failed; a full table forgets.
class FailedStates {
 public:
  using Key = std::array<uint64_t, 2>;

  bool Contains(const Key& key) const { return table_[Slot(key)] == key; }
  void Insert(const Key& key) { table_[Slot(key)] = key; }

 private:
  static constexpr size_t kSlots = size_t{1} << 20;
  static size_t Slot(const Key& key) { return static_cast<size_t>(key[0]) & (kSlots - 1); }

  std::vector<Key> table_ = std::vector<Key>(kSlots, Key{0, 0});
};

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// One order of preference and its search state.
class Search {
 public:
  Search(const Timeline& line, int64_t capacity, std::vector<int32_t> rank, uint64_t salt,
         FailedStates* failed)
      : line_(line),
        capacity_(capacity),
        salt_(Mix(salt + 1)),
        failed_(*failed),
        rank_(std::move(rank)),
        lowest_(line.items.size(), 0),
        offset_(line.items.size(), -1),
        to_come_(static_cast<size_t>(line.sections), 0),
        spanning_(static_cast<size_t>(line.sections) + 1, 0),
        next_open_(static_cast<size_t>(line.sections) + 1, 0),
        failures_(static_cast<size_t>(line.sections), 0) {
    for (size_t i = 0; i < line.items.size(); ++i) {
      const Item& item = line.items[i];
      if (item.fixed >= 0) lowest_[i] = item.fixed;
      Count(item, 1);
    }
  }

  Outcome Run(int64_t node_limit) {
    nodes_ = 0;
    node_limit_ = node_limit;
    std::vector<Candidate> all;
    for (size_t i = 0; i < line_.items.size(); ++i) {
      all.push_back({lowest_[i], rank_[i], static_cast<int32_t>(i)});
    }
    std::sort(all.begin(), all.end(), Before);
    return Split(all, 0, line_.sections, 0, -1);
  }

  int64_t nodes() const { return nodes_; }
  const std::vector<int64_t>& offsets() const { return offset_; }
  // By section: how often the load to come did not fit there.
  const std::vector<int64_t>& failures() const { return failures_; }

 private:
  struct Candidate {
    int64_t offset;
    int32_t rank;
    int32_t item;
  };

  static size_t At(int32_t i) { return static_cast<size_t>(i); }

  void Count(const Item& item, int sign) {
    for (int32_t s = item.first; s < item.end; ++s) to_come_[At(s)] += sign * item.bytes;
    for (int32_t s = item.first + 1; s < item.end; ++s) spanning_[At(s)] += sign;
  }

  // Solves the unplaced `candidates` of the sections [first, end) in parts that no unplaced buffer
  // joins; the smaller parts first, since a part without a solution ends the matter.
  Outcome Split(const std::vector<Candidate>& candidates, int32_t first, int32_t end, int64_t floor,
                int32_t rank) {
    std::vector<std::pair<int32_t, int32_t>> parts;
    int32_t begin = first;
    for (int32_t s = first + 1; s <= end; ++s) {
      if (s < end && spanning_[At(s)] > 0) continue;
      if (to_come_[At(begin)] > 0) parts.emplace_back(begin, s);
      begin = s;
    }
    if (parts.size() == 1) return Solve(candidates, parts[0].first, parts[0].second, floor, rank);
    std::vector<std::vector<Candidate>> members(parts.size());
    for (const Candidate& c : candidates) {
      const auto it = std::upper_bound(
          parts.begin(), parts.end(), line_.items[At(c.item)].first,
          [](int32_t s, const std::pair<int32_t, int32_t>& part) { return s < part.second; });
      members[static_cast<size_t>(it - parts.begin())].push_back(c);
    }
    std::vector<size_t> order(parts.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return members[a].size() < members[b].size(); });
    const size_t mark = trail_.size();
    for (const size_t part : order) {
      const Outcome outcome =
          Solve(members[part], parts[part].first, parts[part].second, floor, rank);
      if (outcome == Outcome::kSolved) continue;
      while (trail_.size() > mark) Undo();  // the parts that were solved
      return outcome;
    }
    return Outcome::kSolved;
  }

  // Does the load to come fit above the lowest offsets at every moment?
  bool LoadFits(const std::vector<Candidate>& candidates, int32_t first, int32_t end, int64_t floor,
                int32_t rank) {
    // What lies too low to be next waits for a neighbour to raise it.
    std::vector<Candidate> waiting;
    for (const Candidate& c : candidates) {
      if (!IsTooLow(c, floor, rank)) break;
      int64_t raised = INT64_MAX;
      for (const int32_t n : line_.items[At(c.item)].neighbours) {
        if (offset_[At(n)] >= 0) continue;
        raised = std::min(raised, std::max(lowest_[At(n)], floor) + line_.items[At(n)].bytes);
      }
      if (raised == INT64_MAX || raised + line_.items[At(c.item)].bytes > capacity_) return false;
      waiting.push_back({raised, c.rank, c.item});
    }
    std::sort(waiting.begin(), waiting.end(), Before);
    // In each section the lowest candidate that lives there bounds what follows from below.
    for (int32_t s = first; s <= end; ++s) next_open_[At(s)] = s;
    auto next = candidates.begin() + static_cast<int64_t>(waiting.size());
    auto waiter = waiting.begin();
    while (next != candidates.end() || waiter != waiting.end()) {
      const bool takes_waiter =
          next == candidates.end() || (waiter != waiting.end() && Before(*waiter, *next));
      const Candidate& c = takes_waiter ? *waiter++ : *next++;
      const Item& item = line_.items[At(c.item)];
      for (int32_t s = Open(item.first); s < item.end; s = Open(s)) {
        if (c.offset + to_come_[At(s)] > capacity_) {
          ++failures_[At(s)];
          return false;
        }
        next_open_[At(s)] = s + 1;
      }
    }
    return true;
  }

  static bool Before(const Candidate& a, const Candidate& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.rank < b.rank;
  }

  // Too low to follow a buffer of that offset and rank in canonical order.
  static bool IsTooLow(const Candidate& c, int64_t floor, int32_t rank) {
    return c.offset < floor || (c.offset == floor && c.rank < rank);
  }

  int32_t Open(int32_t s) {
    while (next_open_[At(s)] != s) {
      const int32_t next = next_open_[At(s)];
      next_open_[At(s)] = next_open_[At(next)];
      s = next;
    }
    return s;
  }

  FailedStates::Key Fingerprint(const std::vector<Candidate>& candidates, int64_t floor,
                                int32_t rank) const {
    uint64_t a = Mix(static_cast<uint64_t>(floor) * 3 + 1) + salt_;
    uint64_t b = Mix(static_cast<uint64_t>(rank + 2));
    for (const Candidate& c : candidates) {
      const uint64_t x = Mix(static_cast<uint64_t>(c.offset) * 0x9e3779b97f4a7c15U +
                             static_cast<uint64_t>(c.item));
      a += x;
      b += Mix(x ^ 0xd1b54a32d192ed03U);
    }
    return {a, b};
  }

  // Places all `candidates` (in canonical order), which live in the sections [first, end), behind a
  // buffer of offset `floor` and rank `rank`.
  Outcome Solve(const std::vector<Candidate>& candidates, int32_t first, int32_t end, int64_t floor,
                int32_t rank) {
    if (++nodes_ > node_limit_) return Outcome::kStopped;
    if (!LoadFits(candidates, first, end, floor, rank)) return Outcome::kFailed;
    int64_t lowest_top = INT64_MAX;
    for (const Candidate& c : candidates) {
      lowest_top = std::min(lowest_top, c.offset + line_.items[At(c.item)].bytes);
    }
    const FailedStates::Key key = Fingerprint(candidates, floor, rank);
    if (failed_.Contains(key)) return Outcome::kFailed;
    for (const Candidate& c : candidates) {
      if (c.offset >= lowest_top) break;
      if (IsTooLow(c, floor, rank) || c.offset + line_.items[At(c.item)].bytes > capacity_)
        continue;
      if (!Put(c)) {
        Undo();
        continue;
      }
      const bool alone = trail_.back().raised.empty();
      const std::vector<Candidate> rest = Without(candidates, c.item);
      const Outcome outcome =
          rest.empty() ? Outcome::kSolved : Split(rest, first, end, c.offset, c.rank);
      if (outcome == Outcome::kSolved) return outcome;
      Undo();
      if (outcome == Outcome::kStopped) return outcome;
      if (alone) break;  // it hindered nobody: elsewhere it would not have helped
    }
    failed_.Insert(key);
    return Outcome::kFailed;
  }

  // The candidates without the one just placed, those that it raised at their new offsets.
  std::vector<Candidate> Without(const std::vector<Candidate>& candidates, int32_t placed) {
    std::vector<Candidate> raised;
    for (const auto& step : trail_.back().raised) {
      raised.push_back({lowest_[At(step.first)], rank_[At(step.first)], step.first});
    }
    std::sort(raised.begin(), raised.end(), Before);
    std::vector<Candidate> rest;
    rest.reserve(candidates.size() - 1);
    auto next = raised.begin();
    for (const Candidate& c : candidates) {
      if (c.item == placed || c.offset != lowest_[At(c.item)]) continue;
      while (next != raised.end() && Before(*next, c)) rest.push_back(*next++);
      rest.push_back(c);
    }
    rest.insert(rest.end(), next, raised.end());
    return rest;
  }

  struct Step {
    int32_t item;
    std::vector<std::pair<int32_t, int64_t>> raised;  // with their former lowest offsets
  };

  // False if a buffer of fixed offset, or the capacity, is in the way of a neighbour.
  bool Put(const Candidate& c) {
    const Item& item = line_.items[At(c.item)];
    offset_[At(c.item)] = c.offset;
    Count(item, -1);
    trail_.push_back({c.item, {}});
    const int64_t top = c.offset + item.bytes;
    // All that is still to come at one of its moments must lie above it.
    for (int32_t s = item.first; s < item.end; ++s) {
      if (top + to_come_[At(s)] > capacity_) {
        ++failures_[At(s)];
        return false;
      }
    }
    for (const int32_t n : item.neighbours) {
      if (offset_[At(n)] >= 0) continue;
      const Item& other = line_.items[At(n)];
      const int64_t raised = RoundUp(top, other.align);
      if (raised <= lowest_[At(n)]) continue;
      trail_.back().raised.emplace_back(n, lowest_[At(n)]);
      lowest_[At(n)] = raised;
      if (other.fixed >= 0 || raised + other.bytes > capacity_) return false;
    }
    return true;
  }

  void Undo() {
    Step& step = trail_.back();
    for (const auto& [n, before] : step.raised) lowest_[At(n)] = before;
    Count(line_.items[At(step.item)], 1);
    offset_[At(step.item)] = -1;
    trail_.pop_back();
  }

  const Timeline& line_;
  const int64_t capacity_;
  const uint64_t salt_;  // states that failed under another order are others
  FailedStates& failed_;
  const std::vector<int32_t> rank_;  // by item; smaller is preferred
  std::vector<int64_t> lowest_;      // by item: over what is placed so far
  std::vector<int64_t> offset_;      // -1: not placed
  std::vector<int64_t> to_come_;     // by section: bytes not placed
  std::vector<int32_t> spanning_;    // [s]: unplaced buffers that live in sections s-1 and s
  std::vector<int32_t> next_open_;
  std::vector<int64_t> failures_;
  std::vector<Step> trail_;

  int64_t nodes_ = 0;
  int64_t node_limit_ = 0;
};

// Orders of preference, as ranks: by the load of the busiest moment, lifetime, area and size in
// several combinations; then, since now and then one order gets lost where a similar one does not,
// the same with every key changed a little by a generator with a fixed seed, in turn with orders
// led by the sections at which earlier runs failed most often.
class Preferences {
 public:
  explicit Preferences(const Timeline& line)
      : line_(line), failures_(static_cast<size_t>(line.sections), 0) {
    std::vector<int64_t> load(static_cast<size_t>(line.sections), 0);
    for (const Item& item : line.items) {
      for (int32_t s = item.first; s < item.end; ++s) load[static_cast<size_t>(s)] += item.bytes;
    }
    for (const Item& item : line.items) {
      const int64_t total = *std::max_element(load.begin() + item.first, load.begin() + item.end);
      const int64_t sections = item.end - item.first;
      traits_.push_back({total, item.lifetime, sections, item.bytes, item.lifetime * item.bytes,
                         sections * item.bytes});
    }
  }

  static constexpr size_t kPlain = 9;

  // The `number`-th order, from 0 without end; from kPlain on they are disturbed or learned ones.
  std::vector<int32_t> Rank(size_t number) const {
    const bool disturbed = number >= kPlain && number % 2 != 0;
    const bool learned = number >= kPlain && number % 2 == 0;
    const auto& key = kKeys[(learned ? number / 2 : number) % kPlain];
    uint64_t noise = number;
    std::vector<std::array<double, 4>> keys(traits_.size());
    for (size_t i = 0; i < keys.size(); ++i) {
      keys[i][0] = learned ? Failures(line_.items[i]) : 0;
      for (size_t k = 0; k < 3; ++k) {
        keys[i][k + 1] = static_cast<double>(traits_[i][static_cast<size_t>(key[k])]);
        noise = Mix(noise + 0x9e3779b97f4a7c15U);
        if (disturbed) keys[i][k + 1] *= 1 + kNoise * static_cast<double>(noise % 1024) / 1024;
      }
    }
    std::vector<int32_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return keys[static_cast<size_t>(a)] > keys[static_cast<size_t>(b)];
    });
    std::vector<int32_t> rank(keys.size());
    for (size_t r = 0; r < order.size(); ++r) {
      rank[static_cast<size_t>(order[r])] = static_cast<int32_t>(r);
    }
    return rank;
  }

  // Learns from a run that did not come to an end; what lies back counts less and less.
  void Learn(const Search& search) {
    for (size_t s = 0; s < failures_.size(); ++s) {
      failures_[s] = kMemory * failures_[s] + static_cast<double>(search.failures()[s]) /
                                                  static_cast<double>(search.nodes());
    }
  }

 private:
  enum Trait { kLoad, kLifetime, kSections, kBytes, kArea, kSectionArea };
  static constexpr int kKeys[kPlain][3] = {
      {kLoad, kArea, kLifetime},        {kLoad, kLifetime, kArea},  {kSections, kBytes, kLoad},
      {kLoad, kSectionArea, kSections}, {kLifetime, kBytes, kLoad}, {kLoad, kSections, kBytes},
      {kBytes, kLifetime, kLoad},       {kArea, kLoad, kBytes},     {kSectionArea, kLoad, kBytes}};
  static constexpr double kNoise = 0.05;
  static constexpr double kMemory = 0.9;

  double Failures(const Item& item) const {
    return *std::max_element(failures_.begin() + item.first, failures_.begin() + item.end);
  }

  const Timeline& line_;
  std::vector<std::array<int64_t, 6>> traits_;  // by item
  std::vector<double> failures_;                // by section
};

// Nodes of one run over an order, at first.
constexpr int64_t kShare = 1 << 12;

}  // namespace

PlacementResult PlaceExact(const PlacementProblem& problem, int64_t node_budget) {
  std::vector<size_t> chosen;  // the others take no room
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const PlacedBuffer& b = problem.buffers[i];
    if (b.bytes > 0 && b.first < b.end) chosen.push_back(i);
  }
  const Timeline line = TimelineOf(problem, chosen);
  Preferences preferences(line);
  FailedStates failed;
  PlacementResult result;
  for (size_t number = 0; result.nodes < node_budget; ++number) {
    const int64_t share = kShare << std::min<size_t>(number / (4 * Preferences::kPlain), 20);
    Search search(line, problem.capacity_bytes, preferences.Rank(number), number, &failed);
    const Outcome outcome = search.Run(std::min(share, node_budget - result.nodes));
    result.nodes += search.nodes();
    if (outcome == Outcome::kStopped) {
      preferences.Learn(search);
      continue;
    }
    result.complete = true;
    if (outcome == Outcome::kFailed) return result;
    PlacementSolution solution;
    for (const PlacedBuffer& buffer : problem.buffers) {
      solution.offsets.push_back(std::max<int64_t>(buffer.fixed_offset, 0));
    }
    for (size_t i = 0; i < chosen.size(); ++i) solution.offsets[chosen[i]] = search.offsets()[i];
    result.solution = std::move(solution);
    return result;
  }
  return result;
}

}  // namespace dla::scheduler
