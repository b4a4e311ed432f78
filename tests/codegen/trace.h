// What a group does, unrolled: every transfer and computation, what each byte that it reads derives
// from, and which of them are over before which begin, whatever each of them takes.
//
// From this two things follow without running anything: whether engines can race for a byte, and
// whether two programs give the same outputs for all inputs. Places on chip and in temporary DRAM
// and the transfers between them are only means here.
#pragma once

#include <cstdint>
#include <string>

#include "machine/program.h"

namespace dla::testing {

struct Trace {
  // Digest of how each byte of the outputs derives from what the regions hold at the start: which
  // computations, with which extents and roles, on which data.
  uint64_t outputs = 0;
  // Two pieces of work that can meet at a byte which one of them writes, or engines that wait for
  // each other for ever. Then the outputs depend on who is faster.
  std::string fault;
};

// The trace of a program's only group.
Trace TraceOf(const machine::Program& program);

// Do both give the same outputs, whatever the inputs and delays?
bool SameEffect(const Trace& a, const Trace& b);

}  // namespace dla::testing
