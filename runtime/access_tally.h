// The scratchpad bytes that one instruction reads and writes, and the time they need at least.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/counters.h"
#include "machine/target.h"
#include "machine/timing.h"

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
  int64_t Bound(int64_t cycles) const { return machine::BoundByMemories(target_, bytes_, cycles); }

 private:
  const machine::Target& target_;
  machine::Counters* counters_;
  std::vector<int64_t> bytes_;
};

}  // namespace dla::runtime
