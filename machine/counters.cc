#include "machine/counters.h"

#include <cstddef>

namespace dla::machine {

int64_t Counters::dram_bytes() const {
  int64_t bytes = 0;
  for (const Traffic& t : traffic) bytes += t.load_bytes + t.store_bytes;
  return bytes;
}

int64_t Counters::dram_bus_bytes() const {
  int64_t bytes = 0;
  for (const Traffic& t : traffic) bytes += t.load_bus_bytes + t.store_bus_bytes;
  return bytes;
}

void Counters::Add(const Counters& other) {
  cycles += other.cycles;
  for (size_t c = 0; c < traffic.size(); ++c) {
    traffic[c].load_bytes += other.traffic[c].load_bytes;
    traffic[c].store_bytes += other.traffic[c].store_bytes;
    traffic[c].load_bus_bytes += other.traffic[c].load_bus_bytes;
    traffic[c].store_bus_bytes += other.traffic[c].store_bus_bytes;
  }
  if (memory.size() < other.memory.size()) memory.resize(other.memory.size());
  for (size_t m = 0; m < other.memory.size(); ++m) {
    memory[m].read_bytes += other.memory[m].read_bytes;
    memory[m].write_bytes += other.memory[m].write_bytes;
    memory[m].load_bytes += other.memory[m].load_bytes;
    memory[m].store_bytes += other.memory[m].store_bytes;
  }
  descriptors += other.descriptors;
  move_bytes += other.move_bytes;
  macs_array += other.macs_array;
  macs_vector += other.macs_vector;
  macs_host += other.macs_host;
  macs_issued += other.macs_issued;
  vector_ops += other.vector_ops;
  host_calls += other.host_calls;
  host_elements += other.host_elements;
}

}  // namespace dla::machine
