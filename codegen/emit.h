// Schedule -> program.
//
// Nothing is decided here: every block, order, buffer and address comes from the schedule. A group
// becomes its tables (dimensions, operands, micro-programs) and one short piece of code whose
// length does not depend on the number of tiles (machine/program.h).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"
#include "machine/program.h"
#include "machine/program_file.h"
#include "scheduler/schedule.h"
#include "support/status.h"

namespace dla::codegen {

// The program of the schedule, without the bytes of its constants. kUnsupported if a group needs
// more dimensions, axes or operands than the instruction set has.
Result<machine::Program> Emit(const scheduler::Schedule& schedule);

// Gives the sink the bytes of one constant region of that program: a dense constant as it is, a
// weight packed in tile order and panels, tile by tile. Fails only where the sink does.
Status AppendConstant(const scheduler::Schedule& schedule, size_t region,
                      const machine::ByteSink& append);
// The bytes of all constant regions at their addresses: Program::constants in memory.
std::vector<uint8_t> ConstantSpace(const scheduler::Schedule& schedule,
                                   const machine::Program& program);

}  // namespace dla::codegen
