// What is counted while a program runs, and what the compiler predicts: one structure for both.
//
// Engines of the runtime increment it from the descriptors they execute; the scheduler fills it in
// closed form; tests compare the two member by member.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "support/operand_class.h"

namespace dla::machine {

struct Counters {
  int64_t cycles = 0;

  // DRAM traffic by operand class; `load` is DRAM -> chip. Payload bytes and bus bytes (bursts).
  struct Traffic {
    int64_t load_bytes = 0, store_bytes = 0;
    int64_t load_bus_bytes = 0, store_bus_bytes = 0;
    bool operator==(const Traffic&) const = default;
  };
  std::array<Traffic, kOperandClassCount> traffic{};  // indexed by OperandClass

  // Bytes that engines read from and write to each scratchpad (indexed as Target::memories), and
  // of these what DMA did (filling = writes by loads, draining = reads by stores).
  struct Access {
    int64_t read_bytes = 0, write_bytes = 0;
    int64_t load_bytes = 0, store_bytes = 0;
    bool operator==(const Access&) const = default;
  };
  std::vector<Access> memory;

  int64_t descriptors = 0;  // loads and stores that were not absent
  int64_t move_bytes = 0;   // over on-chip links
  int64_t macs_array = 0;   // nominal: padding included, what is `repeated` (machine/program.h) not
  int64_t macs_vector = 0;
  int64_t macs_host = 0;
  int64_t macs_issued = 0;  // what the engines did
  int64_t vector_ops = 0;   // elements times operations
  int64_t host_calls = 0;
  int64_t host_elements = 0;

  bool operator==(const Counters&) const = default;

  int64_t dram_bytes() const;
  int64_t dram_bus_bytes() const;
  // Adds everything, cycles included.
  void Add(const Counters& other);
};

}  // namespace dla::machine
