// One convolution as graph, schedule and program, for tests that choose the mapping themselves.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "ir/graph.h"
#include "machine/program.h"
#include "scheduler/layer.h"
#include "scheduler/schedule.h"
#include "support/tensor.h"

namespace dla::testing {

// Types in which the tensors of a layer are stored, and the one in which the array multiplies.
struct LayerTypes {
  ElementType input = ElementType::kF32, weight = ElementType::kF32;
  ElementType residual = ElementType::kF32, output = ElementType::kF32;
  ElementType array = ElementType::kF32;
};

// A layer with what may be fused to it, and its data. The bias is f32.
struct LayerCase {
  LayerTypes types;
  scheduler::Layer layer;
  bool bias = false;
  bool residual = false;  // added after the convolution, by the vector engine
  bool relu = false;      // last
  int64_t pack = 1;       // groups side by side (ir/packed_groups.h)
  // Of the output channels of all packed groups, its rows and its columns: how many are repeated.
  int64_t repeated_m = 0, repeated_e = 0, repeated_f = 0;
  std::vector<float> input, weight, bias_values, residual_values;
};

// Random small layer and data; the values are multiples of 1/8, so that sums are exact in f32.
LayerCase RandomLayer(std::mt19937* random);

// The same with random types; every value but the output is exact in all of them.
LayerCase RandomTypedLayer(std::mt19937* random);

// The same with several groups, packed; in some, one group's inputs are not finite.
LayerCase RandomPackedLayer(std::mt19937* random);

// One of the three with one or two dimensions that are repeated, in part or as a whole.
LayerCase RandomRepeatedLayer(std::mt19937* random);

// The layer's nominal MACs.
int64_t NominalMacs(const LayerCase& layer);

// Its output, computed by plain loops and rounded once, to the output's type.
std::vector<float> Expected(const LayerCase& layer);

ir::Nest NestOf(const LayerCase& layer);
ir::Graph GraphOf(const LayerCase& layer);

// Random blocks, order, buffering (not the memories) for a nest.
scheduler::Mapping RandomMapping(const ir::Nest& nest, std::mt19937* random);

// Memories of a mapping for edge32: input 0, weight 1, output 2; the drained result in place or
// over in `input`, a residual in either.
void PlaceInThree(const ir::Nest& nest, scheduler::Mapping* mapping, std::mt19937* random);

// The schedule with that mapping, buffers side by side from address 0 in each memory; the target's
// memories grow to what is needed.
scheduler::Schedule ScheduleOf(const LayerCase& layer, const scheduler::Mapping& mapping,
                               machine::Target target);

// The same for any group of a graph that has no other.
scheduler::Schedule ScheduleOf(const ir::Graph& graph, scheduler::ScheduledGroup group,
                               machine::Target target);

// The program with its constants.
machine::Program ProgramOf(const scheduler::Schedule& schedule);

// Its data as the program's inputs.
std::vector<Tensor> InputsOf(const LayerCase& layer, const machine::Program& program);

// Runs it on the emulator with --check; the output, or nothing after a failure (reported to gtest).
struct Ran {
  std::vector<float> output;
  std::vector<machine::Counters> counters;
  std::string error;
};
Ran RunProgram(const LayerCase& layer, const machine::Program& program, bool check,
               std::optional<uint64_t> jitter);

}  // namespace dla::testing
