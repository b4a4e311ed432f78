#include "runtime/kernels/contraction.h"

#include <algorithm>
#include <cstring>

#include "machine/program.h"
#include "runtime/kernels/contract_f32.h"

namespace dla::runtime {
namespace {

using Dims = std::vector<ContractionDim>;

int64_t CountOf(const Dims& dims) {
  int64_t count = 1;
  for (const ContractionDim& dim : dims) count *= dim.length;
  return count;
}

// Offsets of all points of the dimensions, last dimension fastest. Returns the end.
int64_t* FillOffsets(const Dims& dims, int64_t ContractionDim::*stride, int64_t* offsets) {
  int64_t count = 1;
  offsets[0] = 0;
  for (const ContractionDim& dim : dims) {
    // Backwards, so that the shorter list can be widened in place.
    for (int64_t i = count; i-- > 0;) {
      const int64_t base = offsets[i];
      for (int64_t j = dim.length; j-- > 0;) {
        offsets[i * dim.length + j] = base + j * dim.*stride;
      }
    }
    count *= dim.length;
  }
  return offsets + count;
}

// Strided weights as panels: [group][panel][depth][channel of the panel].
void PackWeights(const uint8_t* weight, const int64_t* groups, int64_t group_count,
                 const int64_t* channels, int64_t channel_count, const int64_t* depth,
                 int64_t depth_count, float* packed) {
  for (int64_t g = 0; g < group_count; ++g) {
    for (int64_t m = 0; m < channel_count; m += machine::kPanelWidth) {
      const int64_t width = std::min(machine::kPanelWidth, channel_count - m);
      for (int64_t k = 0; k < depth_count; ++k) {
        for (int64_t j = 0; j < width; ++j) {
          const int64_t offset = groups[g] + channels[m + j] + depth[k];
          std::memcpy(packed++, weight + offset * 4, 4);
        }
      }
    }
  }
}

void Contract(const F32Problem& problem, Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kAvx512:
      return avx512::Contract(problem);
    case Isa::kAvx2:
      return avx2::Contract(problem);
#endif
    default:
      return baseline::Contract(problem);
  }
}

// Calls visit(first channel, channels, first depth, depths) for each block that the tile has a part
// of; the firsts count from the tile's.
template <typename F>
void ForEachBlock(const ContractionDiagonal& d, int64_t channel_length, int64_t depth_length,
                  F visit) {
  const int64_t channel_end = d.first_channel + channel_length;
  const int64_t depth_end = d.first_depth + depth_length;
  for (int64_t b = d.first_channel / d.channels; b * d.channels < channel_end; ++b) {
    const int64_t channel = std::max(b * d.channels, d.first_channel);
    const int64_t depth = std::max(b * d.depths, d.first_depth);
    const int64_t channels = std::min((b + 1) * d.channels, channel_end) - channel;
    const int64_t depths = std::min((b + 1) * d.depths, depth_end) - depth;
    if (depths > 0) visit(channel - d.first_channel, channels, depth - d.first_depth, depths);
  }
}

// Numbers of the points of all dimensions at which one of them is in [first, first + length).
std::vector<int64_t> NumbersOf(const Dims& dims, size_t cut, int64_t first, int64_t length) {
  std::vector<int64_t> numbers = {0};
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t begin = d == cut ? first : 0;
    const int64_t end = d == cut ? first + length : dims[d].length;
    std::vector<int64_t> next;
    next.reserve(numbers.size() * static_cast<size_t>(end - begin));
    for (const int64_t number : numbers) {
      for (int64_t i = begin; i < end; ++i) next.push_back(number * dims[d].length + i);
    }
    numbers = std::move(next);
  }
  return numbers;
}

// The weights of some channels and depths of a tile in panels, as panels of their own.
void TakePanels(const Contraction& c, const std::vector<int64_t>& channels,
                const std::vector<int64_t>& depth, float* to) {
  const int64_t channel_count = CountOf(c.channels), depth_count = CountOf(c.depth);
  const int64_t group_count = CountOf(c.groups);
  for (int64_t g = 0; g < group_count; ++g) {
    const uint8_t* group = c.weight + g * channel_count * depth_count * 4;
    for (size_t begin = 0; begin < channels.size(); begin += machine::kPanelWidth) {
      const size_t end = std::min(begin + machine::kPanelWidth, channels.size());
      for (const int64_t k : depth) {
        for (size_t j = begin; j < end; ++j) {
          const int64_t panel = channels[j] / machine::kPanelWidth * machine::kPanelWidth;
          const int64_t width = std::min(machine::kPanelWidth, channel_count - panel);
          const int64_t element = panel * depth_count + k * width + channels[j] - panel;
          std::memcpy(to++, group + element * 4, 4);
        }
      }
    }
  }
}

void ContractBlocks(const Contraction& c, ContractionWorkspace* workspace, Isa isa) {
  const ContractionDiagonal& d = *c.diagonal;
  ForEachBlock(d, c.channels[d.channel_dim].length, c.depth[d.depth_dim].length,
               [&](int64_t channel, int64_t channels, int64_t depth, int64_t depths) {
                 Contraction block = c;
                 block.diagonal.reset();
                 block.channels[d.channel_dim].length = channels;
                 block.depth[d.depth_dim].length = depths;
                 block.input += depth * c.depth[d.depth_dim].input_stride * 4;
                 block.accumulator += channel * c.channels[d.channel_dim].output_stride * 4;
                 const auto taken = NumbersOf(c.channels, d.channel_dim, channel, channels);
                 const auto along = NumbersOf(c.depth, d.depth_dim, depth, depths);
                 float* panels = workspace->block_weights.Get(
                     CountOf(c.groups) * static_cast<int64_t>(taken.size() * along.size()));
                 TakePanels(c, taken, along, panels);
                 block.weight = reinterpret_cast<const uint8_t*>(panels);
                 ContractF32(block, workspace, isa);
               });
}

}  // namespace

int64_t DiagonalPairs(const ContractionDiagonal& diagonal, int64_t channel_length,
                      int64_t depth_length) {
  int64_t pairs = 0;
  ForEachBlock(
      diagonal, channel_length, depth_length,
      [&](int64_t, int64_t channels, int64_t, int64_t depths) { pairs += channels * depths; });
  return pairs;
}

bool HostHas(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kAvx512:
      return __builtin_cpu_supports("avx512f") != 0;
    case Isa::kAvx2:
      return __builtin_cpu_supports("avx2") != 0;
#endif
    default:
      return isa == Isa::kBaseline;
  }
}

Isa BestIsa() {
  static const Isa best = HostHas(Isa::kAvx512) ? Isa::kAvx512
                          : HostHas(Isa::kAvx2) ? Isa::kAvx2
                                                : Isa::kBaseline;
  return best;
}

void ContractF32(const Contraction& c, ContractionWorkspace* workspace, Isa isa) {
  if (c.diagonal) {
    ContractBlocks(c, workspace, isa);
    return;
  }
  F32Problem p{};
  p.group_count = CountOf(c.groups);
  p.pixel_count = CountOf(c.pixels);
  p.channel_count = CountOf(c.channels);
  p.depth_count = CountOf(c.depth);
  int64_t* next = workspace->offsets.Get(3 * p.group_count + 2 * p.pixel_count +
                                         2 * p.channel_count + 2 * p.depth_count);
  const auto table = [&next](const Dims& dims, int64_t ContractionDim::*stride) {
    const int64_t* begin = next;
    next = FillOffsets(dims, stride, next);
    return begin;
  };
  p.group_input = table(c.groups, &ContractionDim::input_stride);
  p.group_output = table(c.groups, &ContractionDim::output_stride);
  p.pixel_input = table(c.pixels, &ContractionDim::input_stride);
  p.pixel_output = table(c.pixels, &ContractionDim::output_stride);
  p.channel_output = table(c.channels, &ContractionDim::output_stride);
  p.depth_input = table(c.depth, &ContractionDim::input_stride);
  p.input = c.input;
  p.weight = c.weight;
  p.output = c.accumulator;
  p.packed = workspace->packed_input.Get(16 * p.depth_count);
  if (!c.weight_panels) {
    const int64_t* groups = table(c.groups, &ContractionDim::weight_stride);
    const int64_t* channels = table(c.channels, &ContractionDim::weight_stride);
    const int64_t* depth = table(c.depth, &ContractionDim::weight_stride);
    float* packed = workspace->packed_weights.Get(p.group_count * p.channel_count * p.depth_count);
    PackWeights(c.weight, groups, p.group_count, channels, p.channel_count, depth, p.depth_count,
                packed);
    p.weight = reinterpret_cast<const uint8_t*>(packed);
  }
  Contract(p, isa);
}

}  // namespace dla::runtime
