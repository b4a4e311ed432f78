// Which scratchpad each buffer of a group goes to.
//
// A small exact search: every buffer in turn tries the scratchpads that hold its class, the most
// specialised first, and steps back where the rest does not fit.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ir/nest.h"
#include "machine/target.h"
#include "scheduler/mapping.h"

namespace dla::scheduler {

// The bytes of one tile of each operand (dense), and how many slots it has; the accumulators last.
struct BufferNeed {
  int64_t tile_bytes = 0;
  int slots = 1;
};

// The choices of one group, beside what is resident. An operand whose whole value stays in a memory
// that holds its class has no buffer; where the memory does not, tiles come over a link to one that
// does. The output of a contraction may be drained into the accumulators' buffer; the output of a
// move shares its source's.
class MemoryChoices {
 public:
  // `resident_in`: one an operand, a memory or -1. Keeps a reference to the target.
  MemoryChoices(const ir::Nest& nest, const machine::Target& target,
                std::vector<int64_t> free_bytes, std::span<const int> resident_in);

  // Visits the assignments that fit until visit() returns true; false if it never does. Within
  // visit(), memory() has the scratchpad of each operand, the accumulators' last (-1: none).
  template <typename Visit>
  bool ForEach(std::span<const BufferNeed> needs, const Visit& visit) {
    return From(0, needs, visit);
  }
  bool Fits(std::span<const BufferNeed> needs) {
    return ForEach(needs, [] { return true; });
  }
  std::span<const int> memory() const { return memory_; }

  // Writes the current assignment down; buffers stay as they are, but those of linked operands are
  // double: moves overlap with the step before.
  void Write(Mapping* mapping) const;

  // Memories that operand o (or, behind the operands, the accumulators) may be in.
  std::span<const int> AllowedFor(size_t o) const { return allowed_[o]; }
  // More than one assignment may be possible.
  bool HasChoice() const;

 private:
  // Buffers are placed accumulators first, then the operands.
  template <typename Visit>
  bool From(size_t item, std::span<const BufferNeed> needs, const Visit& visit) {
    if (item == memory_.size()) return visit();
    const size_t o = item == 0 ? memory_.size() - 1 : item - 1;
    if (memory_of_resident_[o] >= 0 || allowed_[o].empty()) return From(item + 1, needs, visit);
    const bool is_output = o + 2 == memory_.size();
    if (is_output && drains_ && in_place_[static_cast<size_t>(memory_.back())]) {
      memory_[o] = memory_.back();  // drained in place
      if (From(item + 1, needs, visit)) return true;
    }
    for (const int m : allowed_[o]) {
      if (is_output && drains_ && m == memory_.back()) continue;
      const int64_t align = align_[static_cast<size_t>(m)];
      const int64_t bytes = (needs[o].tile_bytes + align - 1) / align * align * needs[o].slots;
      int64_t& free = free_[static_cast<size_t>(m)];
      if (bytes > free) continue;
      free -= bytes;
      memory_[o] = m;
      const bool done = From(item + 1, needs, visit);
      free += bytes;
      if (done) return true;
    }
    return false;
  }

  bool drains_ = false;  // a contraction whose output is not resident
  bool shares_ = false;  // a move
  std::vector<int64_t> free_, align_;
  std::vector<std::vector<int>> allowed_;  // by operand, the accumulators last; empty: no buffer
  std::vector<bool> in_place_;             // by memory: it holds the output's class
  std::vector<int> memory_of_resident_;    // -1: not resident
  std::vector<int> source_;                // of linked operands; -1: none
  std::vector<int> memory_;
};

// Fills in the memories of mapping->operands and mapping->accumulator so that in every memory the
// buffers' sum is at most free_bytes; false if that cannot be. `needs` has one entry an operand of
// the nest and one for the accumulators; the output's own need counts only where it is not drained
// in place.
bool AssignMemories(const ir::Nest& nest, const machine::Target& target,
                    std::span<const int64_t> free_bytes, std::span<const int> resident_in,
                    std::span<const BufferNeed> needs, Mapping* mapping);

}  // namespace dla::scheduler
