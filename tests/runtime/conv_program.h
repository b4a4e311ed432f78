// A convolution as a hand-made program, its naive result, and its costs by walking all steps.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "machine/program.h"
#include "support/tensor.h"
#include "tests/runtime/hand_program.h"

namespace dla::runtime::test {

// Dimensions of the group, in this order.
enum ConvDim : uint8_t { kG, kM, kC, kE, kF, kR, kS, kConvDims };

struct ConvSpec {
  std::array<int64_t, kConvDims> extent{1, 1, 1, 1, 1, 1, 1};
  std::array<int64_t, kConvDims> block{1, 1, 1, 1, 1, 1, 1};
  std::vector<uint8_t> loops;  // outermost first; C, R, S behind all others
  int64_t height = 1, width = 1, stride = 1, dilation = 1, padding = 0;
  bool bias = false, relu = false, panels = true;
  bool drain_apart = false;  // the drained tile has a buffer of its own
  uint8_t input_slots = 1, weight_slots = 1, output_slots = 1;
};

// Operands of the group, in this order (bias may be missing).
enum ConvOperand : uint8_t { kInput, kWeight, kAccumulator, kOutput, kBias };

struct ConvCase {
  machine::Program program;
  HandGroup hand;  // the only group's parts
  std::vector<Tensor> inputs;
  std::vector<float> expected;
};

ConvSpec RandomConv(std::mt19937* random);
ConvCase MakeConv(const ConvSpec& spec, std::mt19937* random);

// Cycles, bytes and bus bytes of a program with one group whose code HandGroup wrote, found by
// walking all steps, enumerating addresses and applying the recurrence of docs/MACHINE.md.
struct WalkedCosts {
  int64_t cycles = 0, dram_bytes = 0, dram_bus_bytes = 0, descriptors = 0;
};
// `compute_cycles(step lengths, is this the step that drains its tile?)` gives the time of a step's
// compute instructions.
WalkedCosts WalkCosts(const machine::Program& program, const HandGroup& hand,
                      int64_t (*compute_cycles)(const machine::Target&, const std::vector<int64_t>&,
                                                bool));
int64_t ConvCycles(const machine::Target& target, const std::vector<int64_t>& lengths, bool drains);

// Adds a residual to the convolution: the array drains in place, then the vector engine computes
// max(y + residual, 0) into a buffer of its own. `spec` is what the case was made from, without
// relu and drain_apart.
void AddResidual(const ConvSpec& spec, ConvCase* c, std::mt19937* random);
int64_t ConvResidualCycles(const machine::Target& target, const std::vector<int64_t>& lengths,
                           bool drains);

}  // namespace dla::runtime::test
