#include "ir/pass.h"

#include "ir/passes/passes.h"
#include "ir/verifier.h"

namespace dla::ir {
namespace {

constexpr Pass kPasses[] = {
    {"canonicalise", "many spellings to few operators", Canonicalise},
    {"fold", "constants; scales and biases into contractions", Fold},
    {"simplify", "no-ops, pairs that cancel, dead code", Simplify},
    {"fuse", "element-wise work behind its anchor", Fuse},
    {"layout", "storage of every value; views vanish", Layout},
    {"precision", "the types in which f32 values are stored and multiplied", Precision},
    {"names", "every node has a name of its own", Names},
};

}  // namespace

std::span<const Pass> PassTable() { return kPasses; }

Status RunPasses(Graph* graph, const PassOptions& options) {
  const auto verify = [&](std::string_view after) {
    const Status status = Verify(*graph);
    DLA_CHECK(status.ok(), "graph '", graph->name, "' is broken after ", after, ":\n",
              status.message());
    if (options.dump) options.dump(after, *graph);
  };
  verify("import");
  for (const Pass& pass : kPasses) {
    DLA_RETURN_IF_ERROR(pass.run(graph, options));
    verify(pass.name);
    if (pass.name == options.stop_after) break;
  }
  return {};
}

}  // namespace dla::ir
