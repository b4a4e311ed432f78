// Any bytes as an ONNX file: refused with a message, or a graph that the verifier accepts and all
// passes take. Most inputs come from a mutator that knows the format.
#include <onnx/onnx_pb.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "frontend/import.h"
#include "ir/pass.h"
#include "ir/verifier.h"
#include "onnx_mutator.h"
#include "support/file.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  onnx::ModelProto model;
  if (seed % 16 == 0 || !model.ParseFromArray(data, static_cast<int>(size))) {
    return LLVMFuzzerMutate(data, size, most);
  }
  for (unsigned i = 0; i <= seed % 3; ++i) dla::frontend::MutateMessage(&model, seed + i * 7919);
  const size_t bytes = model.ByteSizeLong();
  if (bytes > most) return LLVMFuzzerMutate(data, size, most);
  model.SerializeToArray(data, static_cast<int>(most));
  return bytes;
}

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
