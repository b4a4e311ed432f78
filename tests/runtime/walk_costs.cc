// The brute-force twin of the emulator's timing: every step, every address, one recurrence.
#include <algorithm>
#include <set>

#include "tests/runtime/conv_program.h"

namespace dla::runtime::test {
namespace {

using machine::Group;
using machine::OperandDesc;
using machine::Program;

// Block indices of one step, by dimension.
using Blocks = std::vector<int64_t>;

std::vector<Blocks> AllSteps(const Group& group) {
  std::vector<Blocks> steps = {Blocks(group.dims.size(), 0)};
  for (const uint8_t d : group.loops) {
    std::vector<Blocks> longer;
    for (const Blocks& blocks : steps) {
      for (int64_t i = 0; i * group.dims[d].block < group.dims[d].extent; ++i) {
        longer.push_back(blocks);
        longer.back()[d] = i;
      }
    }
    steps = longer;
  }
  return steps;
}

std::pair<int64_t, int64_t> RangeOf(const Group& group, size_t d, const Blocks& blocks) {
  const auto& dim = group.dims[d];
  const bool looped = std::find(group.loops.begin(), group.loops.end(), d) != group.loops.end();
  if (!looped) return {0, dim.extent};
  return {blocks[d] * dim.block, std::min((blocks[d] + 1) * dim.block, dim.extent)};
}

// All DRAM element addresses of the tile, clipped; in panels only their number counts.
std::vector<int64_t> AddressesOf(const Group& group, const OperandDesc& o, const Blocks& blocks) {
  std::vector<int64_t> addresses = {0};
  for (const auto& axis : o.axes) {
    int64_t low = axis.offset;
    int64_t high = axis.offset;
    for (const auto& term : axis.terms) {
      const auto [begin, end] = RangeOf(group, term.dim, blocks);
      low += term.coefficient * begin;
      high += term.coefficient * (end - 1);
    }
    std::vector<int64_t> longer;
    for (const int64_t base : addresses) {
      for (int64_t i = std::max<int64_t>(low, 0); i <= std::min(high, axis.bound - 1); ++i) {
        longer.push_back(base + i * axis.dram_stride);
      }
    }
    addresses = longer;
  }
  return addresses;
}

struct Transfer {
  int64_t bytes = 0, bus_bytes = 0, descriptors = 0;
};

void AddDescriptor(const Program& program, const Group& group, const OperandDesc& o,
                   const Blocks& blocks, Transfer* transfer) {
  const std::vector<int64_t> list = AddressesOf(group, o, blocks);
  if (list.empty()) return;
  const int64_t burst = program.target.dram.burst_bytes;
  const auto rounded = [burst](int64_t bytes) { return (bytes + burst - 1) / burst * burst; };
  ++transfer->descriptors;
  const auto bytes = static_cast<int64_t>(list.size()) * 4;
  transfer->bytes += bytes;
  if (o.dram_layout == machine::DramLayout::kPacked) {
    transfer->bus_bytes += rounded(bytes);
    return;
  }
  const std::set<int64_t> sorted(list.begin(), list.end());
  int64_t run = 0;
  int64_t last = -2;
  for (const int64_t address : sorted) {
    if (address != last + 1) {
      transfer->bus_bytes += rounded(run * 4);
      run = 0;
    }
    ++run;
    last = address;
  }
  transfer->bus_bytes += rounded(run * 4);
}

// Is the tile of operand `o` another one in step i than in its neighbour (i - 1 or i + 1)?
bool Changes(const HandGroup& hand, uint8_t o, const std::vector<Blocks>& steps, size_t i,
             int direction) {
  const auto j = static_cast<int64_t>(i) + direction;
  if (j < 0 || j >= static_cast<int64_t>(steps.size())) return true;
  for (const uint8_t d : hand.group.loops) {
    if (steps[i][d] != steps[static_cast<size_t>(j)][d] && (hand.DimsOf(o) >> d & 1) != 0) {
      return true;
    }
  }
  return false;
}

Transfer Collect(const Program& program, const HandGroup& hand, const std::vector<Traffic>& list,
                 bool overlaps, const std::vector<Blocks>& steps, size_t i, int direction) {
  Transfer transfer;
  for (const Traffic& t : list) {
    const int towards = t.at_drain ? 1 : direction;
    if (t.overlaps != overlaps || !Changes(hand, t.operand, steps, i, towards)) continue;
    AddDescriptor(program, hand.group, hand.group.operands[t.operand], steps[i], &transfer);
  }
  return transfer;
}

}  // namespace

WalkedCosts WalkCosts(const Program& program, const HandGroup& hand,
                      int64_t (*compute_cycles)(const machine::Target&, const std::vector<int64_t>&,
                                                bool)) {
  const machine::Target& target = program.target;
  const std::vector<Blocks> steps = AllSteps(hand.group);
  const auto count = static_cast<int64_t>(steps.size());
  WalkedCosts costs;
  std::vector<int64_t> end(steps.size());
  const auto ended = [&](int64_t i) { return i < 0 ? 0 : end[static_cast<size_t>(i)]; };
  int64_t bus = 0;
  // The recurrence of docs/MACHINE.md: serves a transfer, if there is one, once `ready`.
  const auto serve = [&](const Transfer& t, int64_t ready, int64_t* join, int64_t latency) {
    if (t.descriptors == 0) return;
    const auto& rate = target.dram.bytes_per_cycle;
    bus = std::max(bus, ready) + t.descriptors * target.dma_startup_cycles +
          (t.bus_bytes * rate.denominator + rate.numerator - 1) / rate.numerator;
    *join = std::max(*join, bus + latency);
    costs.dram_bytes += t.bytes;
    costs.dram_bus_bytes += t.bus_bytes;
    costs.descriptors += t.descriptors;
  };
  const auto store = [&](int64_t i, bool overlaps, int64_t* join) {
    if (i < 0 || i >= count) return;
    serve(Collect(program, hand, hand.stores, overlaps, steps, static_cast<size_t>(i), 1), ended(i),
          join, 0);
  };
  for (int64_t i = 0; i < count + 2; ++i) {
    int64_t ready = 0;
    store(i - 2, true, &ready);
    if (i < count) {
      serve(Collect(program, hand, hand.loads, true, steps, static_cast<size_t>(i), -1),
            ended(i - 2), &ready, target.dram.latency_cycles);
    }
    store(i - 1, false, &ready);
    if (i >= count) continue;
    serve(Collect(program, hand, hand.loads, false, steps, static_cast<size_t>(i), -1),
          ended(i - 1), &ready, target.dram.latency_cycles);
    std::vector<int64_t> lengths;
    for (size_t d = 0; d < hand.group.dims.size(); ++d) {
      const auto [begin, stop] = RangeOf(hand.group, d, steps[static_cast<size_t>(i)]);
      lengths.push_back(stop - begin);
    }
    end[static_cast<size_t>(i)] =
        std::max(ended(i - 1), ready) +
        compute_cycles(target, lengths,
                       Changes(hand, hand.stores[0].operand, steps, static_cast<size_t>(i), 1));
  }
  costs.cycles = std::max(bus, end.back());
  return costs;
}

}  // namespace dla::runtime::test
