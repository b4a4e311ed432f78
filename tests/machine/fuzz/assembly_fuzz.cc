// Any text: refused, or a program that can be verified and printed.
#include "machine/assembly.h"
#include "machine/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto program = dla::machine::Assemble(std::string(data, data + size));
  if (!program.ok()) return 0;
  (void)dla::machine::VerifyProgram(*program).ok();
  (void)dla::machine::Disassemble(*program);
  return 0;
}
