// Any bytes: refused, or a program that can be verified, printed and assembled again.
#include "machine/assembly.h"
#include "machine/program_file.h"
#include "machine/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto program = dla::machine::ParseProgram({data, size}, nullptr, "fuzz");
  if (!program.ok()) return 0;
  const bool sound = dla::machine::VerifyProgram(*program).ok();
  const auto again = dla::machine::Assemble(dla::machine::Disassemble(*program));
  DLA_CHECK(!sound || (again.ok() && again->groups == program->groups), "no round trip");
  return 0;
}
