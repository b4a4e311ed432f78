// The simple twin of the program verifier: runs over every step of a program and looks at every
// place that an instruction would touch. Slow, plain, and shares no code with the verifier.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "machine/program.h"

namespace dla::machine::sample {

// The indices of one axis in a step, both ends included; empty if last < first.
struct Range {
  int64_t first = 0, last = -1;
};

// One step of a group: block indices by dimension.
struct Step {
  std::vector<int64_t> block;
};

inline Range AxisRange(const Group& group, const AxisDesc& axis, const Step& step) {
  Range range{axis.offset, axis.offset};
  for (const TermDesc& term : axis.terms) {
    const DimDesc& dim = group.dims[term.dim];
    const int64_t start = step.block[term.dim] * dim.block;
    const int64_t end = std::min(start + dim.block, dim.extent);
    range.first += term.coefficient * start;
    range.last += term.coefficient * (end - 1);
  }
  return {std::max<int64_t>(range.first, 0), std::min(range.last, axis.bound - 1)};
}

inline std::string CheckTile(const Program& program, const Group& group, const OperandDesc& operand,
                             const Step& step) {
  int64_t generation = 0;
  for (const uint8_t dim : group.loops) {
    if ((operand.generation_dims >> dim & 1) == 0) continue;
    generation = generation * group.dims[dim].count() + step.block[dim];
  }
  int64_t last_local = 0, panel_elements = 1, last_dram = 0, packed_start = 0, packed_bound = 1;
  std::vector<Range> ranges;
  for (const AxisDesc& axis : operand.axes) {
    const Range range = AxisRange(group, axis, step);
    if (range.last < range.first) return "";  // absent
    ranges.push_back(range);
    const int64_t begin = operand.resident ? 0 : range.first;
    last_local += (range.last - begin) * axis.local_stride;
    panel_elements *= range.last - range.first + 1;
    last_dram += range.last * axis.dram_stride;
    packed_bound *= axis.bound;
  }
  int64_t before = 1, after = packed_bound;
  for (size_t a = 0; a < ranges.size(); ++a) {
    after /= operand.axes[a].bound;
    packed_start += before * ranges[a].first * after;
    before *= ranges[a].last - ranges[a].first + 1;
  }
  const int64_t bits = TypeBits(operand.type);
  const int64_t local_elements =
      operand.local_layout == LocalLayout::kPanels ? panel_elements : last_local + 1;
  const int64_t start = operand.address + generation % operand.ring_slots * operand.slot_bytes;
  if (start < 0 || local_elements * bits > operand.slot_bytes * 8 ||
      start * 8 + local_elements * bits > program.target.memories[operand.memory].bytes * 8) {
    return "tile of '" + operand.value + "' leaves its place";
  }
  if (operand.dram_layout == DramLayout::kNone) return "";
  const Region& region = program.regions[operand.region];
  const bool packed = operand.dram_layout == DramLayout::kPacked;
  const int64_t first_element = operand.dram_base + (packed ? packed_start : 0);
  const int64_t end_element = operand.dram_base + (packed ? packed_start + before : last_dram + 1);
  if (first_element < 0 || end_element * bits > region.bytes * 8) {
    return "'" + operand.value + "' leaves its region";
  }
  return "";
}

// Runs all steps of all engines in a random order; "" if every engine comes to its end with all
// tokens back at zero.
inline std::string RunEngines(const Group& group, int64_t steps, std::mt19937_64* random) {
  struct Item {
    Instruction instruction;
    int64_t ticket = -1;
  };
  std::vector<std::vector<Item>> queue(kEngineCount);
  const auto add = [&](const std::vector<Instruction>& code, int64_t step) {
    for (const Instruction& i : code) {
      queue[static_cast<size_t>(i.engine)].push_back(
          {i, i.op == Opcode::kBus ? 4 * (step + i.lag) + i.slot : -1});
    }
  };
  add(group.prologue, 0);
  for (int64_t step = 0; step < steps; ++step) add(group.body, step);
  add(group.epilogue, 0);
  std::vector<size_t> at(kEngineCount, 0);
  std::vector<int64_t> tokens(kMaxTokens, 0);
  const auto can_run = [&](size_t e) {
    if (at[e] == queue[e].size()) return false;
    const Item& item = queue[e][at[e]];
    if (item.instruction.op == Opcode::kWait) {
      return tokens[item.instruction.token] >= item.instruction.count;
    }
    if (item.ticket < 0) return true;
    for (size_t k = at[1 - e]; k < queue[1 - e].size(); ++k) {
      if (queue[1 - e][k].ticket >= 0) return queue[1 - e][k].ticket > item.ticket;
    }
    return true;
  };
  while (true) {
    std::vector<size_t> ready;
    for (size_t e = 0; e < queue.size(); ++e) {
      if (can_run(e)) ready.push_back(e);
    }
    if (ready.empty()) break;
    const size_t e = ready[(*random)() % ready.size()];
    const Instruction& i = queue[e][at[e]++].instruction;
    if (i.op == Opcode::kWait) tokens[i.token] -= i.count;
    if (i.op == Opcode::kSignal) tokens[i.token] += i.count;
  }
  for (size_t e = 0; e < queue.size(); ++e) {
    if (at[e] != queue[e].size()) return "an engine waits for ever";
  }
  for (const int64_t token : tokens) {
    if (token != 0) return "a token is left";
  }
  return "";
}

// "" if nothing that the program does in any step can go wrong; `max_steps` bounds the walk.
inline std::string WalkProgram(const Program& program, int64_t max_steps, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (const Group& group : program.groups) {
    int64_t steps = 1;
    for (const uint8_t dim : group.loops) steps *= group.dims[dim].count();
    const int64_t walked = std::min(steps, max_steps);
    for (int64_t s = 0; s < walked; ++s) {
      Step step{std::vector<int64_t>(group.dims.size(), 0)};
      int64_t rest = s;
      for (size_t l = group.loops.size(); l-- > 0;) {
        const int64_t count = group.dims[group.loops[l]].count();
        step.block[group.loops[l]] = rest % count;
        rest /= count;
      }
      for (const OperandDesc& operand : group.operands) {
        const std::string fault = CheckTile(program, group, operand, step);
        if (!fault.empty()) return group.name + ": " + fault;
      }
    }
    const std::string fault = RunEngines(group, walked, &random);
    if (!fault.empty()) return group.name + ": " + fault;
  }
  return "";
}

}  // namespace dla::machine::sample
