// Programs made by hand for the tests of the emulator: one group at a time, with the token pattern
// that the compiler emits, but written down independently of it.
//
// `HandGroup` completes a group whose dimensions, loops and operands are set: generations, slots,
// predicates, code. Reduction loops must lie inside all others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/program.h"

namespace dla::runtime::test {

// How one operand travels.
struct Traffic {
  uint8_t operand = 0;
  bool overlaps = true;   // double-buffered, or transferred once
  bool at_drain = false;  // a load in the step that drains its tile, not in the first that uses it
};

// The parts of a group's code that differ from test to test.
struct HandGroup {
  machine::Group group;
  std::vector<Traffic> loads, stores;
  // What the compute engine does in a step; several instructions run one after the other.
  std::vector<machine::Instruction> compute;
  machine::Engine compute_engine = machine::Engine::kArray;
  std::vector<machine::Instruction> vector_after;  // what the vector engine does behind the array

  // Mask of the dimensions that operand `o` depends on.
  uint16_t DimsOf(uint8_t o) const;
  // Position, in `loops`, of the innermost loop that operand `o` depends on; -1: none.
  int InnermostLoop(uint8_t o) const;
  // Sets generation_dims of operand `o` from the loops up to the innermost relevant one.
  void SetGeneration(uint8_t o);
  // Writes prologue, body and epilogue.
  void EmitCode();
};

// A target like edge32-ideal with generous memories: "input", "weight", "output", each holding all
// classes, no latency, start-up or bursts.
machine::Target PlainTarget(int64_t memory_bytes = int64_t{1} << 20);

// Appends a region behind the others of its kind; returns its number.
uint32_t AddRegion(machine::Program* program, machine::RegionKind kind, const std::string& name,
                   int64_t bytes);
// Appends a constant region with these floats.
uint32_t AddConstant(machine::Program* program, const std::string& name,
                     const std::vector<float>& values);

std::vector<uint8_t> BytesOf(const std::vector<float>& values);
std::vector<float> FloatsOf(const std::vector<uint8_t>& bytes);

}  // namespace dla::runtime::test
