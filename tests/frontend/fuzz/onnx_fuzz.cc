// Any bytes as an ONNX file: refused with a message, or a graph that the verifier accepts and all
// passes take.
#include <unistd.h>

#include <cstdio>
#include <string>

#include "frontend/import.h"
#include "ir/pass.h"
#include "ir/verifier.h"
#include "support/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string path = "/dev/shm/dla_onnx_fuzz." + std::to_string(getpid());
  FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return 0;
  std::fwrite(data, 1, size, file);
  std::fclose(file);
  auto graph = dla::frontend::ImportOnnx(path, {});
  std::remove(path.c_str());
  if (!graph.ok()) return 0;
  (void)dla::ir::RunPasses(&*graph, {}).ok();
  return 0;
}
