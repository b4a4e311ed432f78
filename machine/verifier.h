// The program verifier: proves, before a program runs, that running it cannot go wrong.
//
// Proved, for every iteration of every loop:
//   * every index (region, memory, operand, program, dimension, token) names something;
//   * loops are bounded: at most 2^40 steps a group; no number in a descriptor overflows;
//   * every tile lies within its scratchpad, aligned, in a memory that holds its class; its slot is
//     as large as its longest tile, and no two elements of a tile share a place;
//   * every transfer stays within its DRAM region; inputs and constants are never stored to;
//     constants lie within the constants section; ports match their regions;
//   * what engines write is never clipped; links that moves use exist;
//   * micro-programs are well formed; the output stage is asked only for what the target's does;
//     array operands have the classes, types and dimensions of their roles;
//   * every transfer is closed by a `bus` in its own step; tickets of a DMA engine strictly
//     increase and no two of them are equal, so that the bus order is total;
//   * what a group prefetches is not stored to by the group before, nor lies where that one's
//     operands lie; a joined group touches no scratchpad byte that the one before may still store;
//   * what is loaded in the first run only is constant and lies where nothing else is written, so
//   that
//     later runs find it; resident constants and inputs are loaded in the group or before it;
//   * each token goes from one engine to one other, balances to zero, and no engine waits for ever.
// Outside the body there are only `wait` and `signal` (nothing else has a step there).
//
// Not proved: that the program computes what its model says, nor that no engine touches a tile too
// early (the runtime's --check shadows every byte for that).
#pragma once

#include "machine/program.h"
#include "support/status.h"

namespace dla::machine {

// Ok, or kMalformed with up to 20 faults, one a line: group, instruction, operand, what is wrong.
Status VerifyProgram(const Program& program);

// The same before the constants are there: they will take `constant_bytes` bytes.
Status VerifyProgram(const Program& program, int64_t constant_bytes);

// `lag` of a bus instruction.
inline constexpr int kMaxBusLag = 3;
// Extents, bounds, strides and offsets of descriptors, and the size of a DRAM space.
inline constexpr int64_t kMaxExtent = int64_t{1} << 40;

}  // namespace dla::machine
