// The scratchpad bytes that one instruction reads and writes, and the time they need at least.
#pragma once

#include <algorithm>
#include <cstdint>

#include "machine/counters.h"
#include "machine/target.h"

namespace dla::runtime {

class AccessTally {
 public:
  // Counts go to `counters->memory`, which has an entry for each memory of the target.
  AccessTally(const machine::Target& target, machine::Counters* counters)
      : target_(target), counters_(counters), bytes_(target.memories.size()) {}

  void Read(int memory, int64_t bytes) {
    counters_->memory[static_cast<size_t>(memory)].read_bytes += bytes;
    bytes_[static_cast<size_t>(memory)] += bytes;
  }
  void Write(int memory, int64_t bytes) {
    counters_->memory[static_cast<size_t>(memory)].write_bytes += bytes;
    bytes_[static_cast<size_t>(memory)] += bytes;
  }

  // `cycles`, or more where a memory with a limited rate needs more.
  int64_t Bound(int64_t cycles) const {
    for (size_t m = 0; m < bytes_.size(); ++m) {
      const auto& rate = target_.memories[m].bytes_per_cycle;
      if (rate) cycles = std::max(cycles, machine::CyclesAtRate(bytes_[m], *rate));
    }
    return cycles;
  }

 private:
  const machine::Target& target_;
  machine::Counters* counters_;
  std::vector<int64_t> bytes_;
};

}  // namespace dla::runtime
