#include "scheduler/capacity.h"

#include <optional>
#include <sstream>

#include "scheduler/search.h"
#include "scheduler/searcher.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

constexpr int64_t kLargest = int64_t{1} << 40;

// The least x in (low, high] for which `fits` holds, given that it does at `high`.
template <typename Fits>
int64_t Least(int64_t low, int64_t high, const Fits& fits) {
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

std::optional<int64_t> LeastSizeOf(const std::vector<ir::Nest>& nests,
                                   const machine::Target& target, size_t memory) {
  const auto fits = [&](int64_t bytes) {
    machine::Target changed = target;
    changed.memories[memory].bytes = bytes;
    return AllFit(nests, changed);
  };
  if (!fits(kLargest)) return std::nullopt;
  return Least(target.memories[memory].bytes, kLargest, fits);
}

// All scratchpads times numerator / 64, rounded up to their alignments.
machine::Target Scaled(const machine::Target& target, int64_t numerator) {
  machine::Target scaled = target;
  for (machine::Memory& memory : scaled.memories) {
    memory.bytes = RoundUp(CeilDiv(memory.bytes * numerator, 64), memory.align_bytes);
  }
  return scaled;
}

std::string ScaleText(int64_t numerator) {
  std::ostringstream out;
  out << static_cast<double>(numerator) / 64;
  return out.str();
}

}  // namespace

bool AllFit(const std::vector<ir::Nest>& nests, const machine::Target& target) {
  for (const ir::Nest& nest : nests) {
    SearchProblem problem = {.nest = &nest, .target = &target};
    problem.resident_in.assign(nest.operands.size(), -1);
    for (const machine::Memory& memory : target.memories) {
      problem.free_bytes.push_back(UsableBytes(memory));
    }
    if (!AnyMappingFits(problem)) return false;
  }
  return true;
}

std::string WhatWouldFit(const std::vector<ir::Nest>& nests, const machine::Target& target) {
  std::ostringstream out;
  bool any_alone = false;
  for (size_t m = 0; m < target.memories.size(); ++m) {
    const std::optional<int64_t> bytes = LeastSizeOf(nests, target, m);
    if (!bytes) continue;
    out << (any_alone ? " or " : "") << "--mem " << target.memories[m].name << "=" << *bytes;
    any_alone = true;
  }
  out << (any_alone ? " alone would do" : "no scratchpad alone, however large, would do");
  const int64_t most = int64_t{1} << 20;
  const auto fits = [&](int64_t numerator) { return AllFit(nests, Scaled(target, numerator)); };
  if (fits(most)) {
    const int64_t numerator = Least(64, most, fits);
    out << "; all scratchpads times " << ScaleText(numerator) << " would do (";
    const machine::Target scaled = Scaled(target, numerator);
    for (size_t m = 0; m < scaled.memories.size(); ++m) {
      out << (m == 0 ? "" : " ") << "--mem " << scaled.memories[m].name << "="
          << scaled.memories[m].bytes;
    }
    out << ")";
  }
  return out.str();
}

}  // namespace dla::scheduler
