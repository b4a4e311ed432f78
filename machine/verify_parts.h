// The parts of the program verifier; verifier.cc runs them in this order. Each later part relies on
// what the earlier ones found right.
#pragma once

#include <string>

#include "machine/faults.h"
#include "machine/program.h"

namespace dla::machine {

// Regions, ports, buffers; constants lie in a section of `constant_bytes`.
void VerifyTables(const Program& program, int64_t constant_bytes, Faults* faults);

// Dimensions, loops and operands of a group.
void VerifyGroupTables(const Program& program, const Group& group, const std::string& where,
                       Faults* faults);

// A micro-program's form: numbering, operands, stage tail. Roles are checked with instructions.
void VerifyMicroProgram(const Target& target, const Group& group, const MicroProgram& program,
                        const std::string& where, Faults* faults);

// Instructions one by one: engine, fields, operands and their roles.
void VerifyCode(const Program& program, const Group& group, const std::string& where,
                Faults* faults);

// Tokens, transfers and tickets, and that no engine waits for ever, with what the load engine
// prefetches for the next group (may be null).
void VerifySync(const Group& group, const Group* next, const std::string& where, Faults* faults);

// What a group prefetches, and that nothing overwrites what the two groups that overlap still need.
// Both groups' tables are sound.
void VerifyOverlap(const Program& program, size_t group, const std::string& where, Faults* faults);

// What is loaded once for all runs is constant and nothing else is written there; resident
// constants and inputs are loaded before they are used. All groups' tables and code are sound.
void VerifyKept(const Program& program, Faults* faults);

// Do loads or engines write the operand in a step of the group?
bool IsWritten(const Group& group, size_t operand);

// "operand 3 'conv1.weight'"
std::string OperandText(const Group& group, int operand);

}  // namespace dla::machine
