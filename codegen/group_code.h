// The code of one group: which engine does what in a step, and the tokens between them.
#pragma once

#include "machine/program.h"
#include "scheduler/schedule.h"

namespace dla::codegen {

// Fills in loops, programs, prologue, body and epilogue of `group`, whose dims and operands are
// there already (operand i of the nest is operand i of the group; the accumulators come last).
//
// A step, engine by engine (D: transfers that overlap with compute, S: those that do not):
//   load     wait free_d; loads D; bus.  wait free_s; loads S; bus.  signal loaded
//   move     wait free_move; moves; signal moved
//   compute  wait loaded, moved, stored_s, stored_d; array and/or vector; signal free_d, free_s, free_move, done
//   store    wait done; stores S; bus; signal stored_s.  stores D; bus; signal stored_d
// The prologue gives two credits of free_d and stored_d and one of free_s and stored_s: step i
// loads when step i-2 (D) or i-1 (S) has ended, and computes when the stores of these steps have.
// The epilogue takes back the credits that are left.
void EmitCode(const scheduler::Schedule& schedule, const scheduler::ScheduledGroup& scheduled,
              machine::Group* group);

}  // namespace dla::codegen
