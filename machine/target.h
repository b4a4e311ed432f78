// The description of an accelerator: what a target file says, with everything inherited filled in.
//
// docs/TARGETS.md documents the JSON form; machine/target_file.h reads and prints it. Times are in
// cycles of `clock_mhz`, sizes in bytes, energy in pJ.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/element_type.h"
#include "support/micro_program.h"
#include "support/operand_class.h"

namespace dla::machine {

// A positive fraction, kept exactly: "64/3" bytes a cycle.
struct Rational {
  int64_t numerator = 1;
  int64_t denominator = 1;
  bool operator==(const Rational&) const = default;
};
// ceil(amount / rate): the cycles that `amount` >= 0 takes.
int64_t CyclesAtRate(int64_t amount, Rational rate);

struct Dram {
  Rational bytes_per_cycle{16, 1};
  int64_t latency_cycles = 0;
  int64_t burst_bytes = 1;
  double energy_pj_per_byte = 160;
  std::optional<int64_t> bytes;  // a limit on the program's footprint
  bool operator==(const Dram&) const = default;
};

struct Memory {
  std::string name;
  int64_t bytes = 0;
  std::array<bool, kOperandClassCount> holds{};  // indexed by OperandClass
  int64_t align_bytes = 1;
  std::optional<Rational> bytes_per_cycle;  // bounds each instruction that touches it from below
  double energy_pj_per_byte = 0;            // 1.25 * sqrt(bytes / 8192) where the file does not say
  bool energy_is_default = true;
  bool operator==(const Memory&) const = default;

  bool Holds(OperandClass cls) const { return holds[static_cast<size_t>(cls)]; }
};

struct Link {
  int from = 0;  // indices of memories
  int to = 0;
  Rational bytes_per_cycle;
  bool operator==(const Link&) const = default;
};

enum class Dataflow : uint8_t { kOutputStationary, kWeightStationary, kInputStationary, kSpatial };

struct Array {
  int64_t rows = 32;
  int64_t cols = 32;
  Dataflow dataflow = Dataflow::kOutputStationary;
  // MACs per PE and cycle, by the types of the two operands (first: input, second: weight). A type
  // that is missing is not supported.
  std::map<std::pair<ElementType, ElementType>, Rational> rates;
  std::map<ElementType, ElementType> accumulator;  // by the input's type
  std::map<ElementType, double> energy_pj_per_mac;
  bool operator==(const Array&) const = default;
};

struct Vector {
  int64_t lanes = 32;
  std::array<int64_t, kOpClassCount> op_cycles{};  // indexed by OpClass; 0 for kFree
  int64_t startup_cycles = 0;
  double energy_pj_per_op = 1;
  bool operator==(const Vector&) const = default;
};

// What the drain of the array and the end of a vector program do for free.
struct OutputStage {
  bool bias = true, scale = true, clamp = true, relu = true, leaky_relu = true, table = true;
  bool operator==(const OutputStage&) const = default;
  bool Does(MicroOp op) const;  // kRelu, kLeakyRelu, kClamp
};

struct Host {
  int64_t call_cycles = 10000;
  int64_t cycles_per_element = 1;
  Rational bytes_per_cycle{4, 1};
  bool operator==(const Host&) const = default;
};

inline constexpr size_t kMaxMemories = 32;

struct Target {
  std::string name;
  std::string comment;
  int64_t clock_mhz = 1000;
  Dram dram;
  std::vector<Memory> memories;
  std::vector<Link> links;
  int64_t dma_startup_cycles = 0;
  Array array;
  Vector vector;
  OutputStage output_stage;
  Host host;
  bool operator==(const Target&) const = default;

  int MemoryIndex(const std::string& memory_name) const;  // -1: none of that name
  const Link* FindLink(int from, int to) const;           // null: none
};

}  // namespace dla::machine
