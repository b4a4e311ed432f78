#include "machine/verifier.h"

#include "machine/verify_parts.h"

namespace dla::machine {
namespace {

void VerifyGroup(const Program& program, size_t g, const std::string& where, Faults* faults) {
  const Group& group = program.groups[g];
  const Group* next = g + 1 < program.groups.size() ? &program.groups[g + 1] : nullptr;
  const size_t before = faults->count();
  VerifyGroupTables(program, group, where, faults);
  if (faults->count() != before) return;
  for (size_t p = 0; p < group.programs.size(); ++p) {
    VerifyMicroProgram(program.target, group, group.programs[p], Concat(where, ": program ", p),
                       faults);
  }
  if (faults->count() != before) return;
  VerifyCode(program, group, where, faults);
  if (faults->count() != before) return;
  VerifySync(group, next, where, faults);
  VerifyOverlap(program, g, where, faults);
}

}  // namespace

std::string OperandText(const Group& group, int operand) {
  return Concat("operand ", operand, " '", group.operands[static_cast<size_t>(operand)].value, "'");
}

Status VerifyProgram(const Program& program) {
  return VerifyProgram(program, static_cast<int64_t>(program.constants.bytes.size()));
}

Status VerifyProgram(const Program& program, int64_t constant_bytes) {
  Faults faults;
  VerifyTables(program, constant_bytes, &faults);
  if (faults.count() == 0) {
    for (size_t g = 0; g < program.groups.size() && !faults.full(); ++g) {
      VerifyGroup(program, g, Concat("group ", g, " '", program.groups[g].name, "'"), &faults);
    }
  }
  if (faults.count() == 0) VerifyKept(program, &faults);
  return faults.ToStatus();
}

}  // namespace dla::machine
