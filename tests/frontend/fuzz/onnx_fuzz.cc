// Any bytes as an ONNX file: refused with a message, or a graph that the verifier accepts and all
// passes take.
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "frontend/import.h"
#include "ir/pass.h"
#include "ir/verifier.h"
#include "support/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A file in memory, which has a name only in /proc.
  const int file = memfd_create("model.onnx", 0);
  if (file < 0) return 0;
  const bool written = write(file, data, size) == static_cast<ssize_t>(size);
  auto graph = dla::frontend::ImportOnnx("/proc/self/fd/" + std::to_string(file), {});
  close(file);
  if (!written) return 0;
  if (!graph.ok()) return 0;
  (void)dla::ir::RunPasses(&*graph, {}).ok();
  return 0;
}
