// Counters as JSON: the same keys for what was counted (--stats-json) and what was predicted
// (schedule.json). docs/STATS.md explains each key.
#pragma once

#include <nlohmann/json.hpp>

#include "machine/counters.h"
#include "machine/target.h"

namespace dla::machine {

// An object with all counters; `dram` by operand class and `memories` by name (the target's, which
// counters.memory is indexed by; missing entries count as zero).
inline nlohmann::ordered_json CountersJson(const Counters& counters, const Target& target) {
  nlohmann::ordered_json json;
  json["cycles"] = counters.cycles;
  json["dram_bytes"] = counters.dram_bytes();
  json["dram_bus_bytes"] = counters.dram_bus_bytes();
  auto& dram = json["dram"] = nlohmann::ordered_json::object();
  for (size_t c = 0; c < counters.traffic.size(); ++c) {
    const Counters::Traffic& t = counters.traffic[c];
    dram[std::string(ClassName(static_cast<OperandClass>(c)))] = {
        {"load_bytes", t.load_bytes},
        {"store_bytes", t.store_bytes},
        {"load_bus_bytes", t.load_bus_bytes},
        {"store_bus_bytes", t.store_bus_bytes}};
  }
  json["macs_array"] = counters.macs_array;
  json["macs_vector"] = counters.macs_vector;
  json["macs_host"] = counters.macs_host;
  json["macs_issued"] = counters.macs_issued;
  json["vector_ops"] = counters.vector_ops;
  json["host_calls"] = counters.host_calls;
  json["host_elements"] = counters.host_elements;
  json["descriptors"] = counters.descriptors;
  json["move_bytes"] = counters.move_bytes;
  auto& memories = json["memories"] = nlohmann::ordered_json::object();
  for (size_t m = 0; m < target.memories.size(); ++m) {
    const Counters::Access access =
        m < counters.memory.size() ? counters.memory[m] : Counters::Access{};
    memories[target.memories[m].name] = {{"read_bytes", access.read_bytes},
                                         {"write_bytes", access.write_bytes},
                                         {"load_bytes", access.load_bytes},
                                         {"store_bytes", access.store_bytes}};
  }
  return json;
}

}  // namespace dla::machine
