// canonicalise: every ONNX node becomes one or more canonical nodes (OpDef::lower).
#include "ir/passes/passes.h"
#include "ir/rewriter.h"

namespace dla::ir {

Status Canonicalise(Graph* graph, const PassOptions&) {
  Rewriter rewriter(graph);
  std::string problems;
  const std::vector<Node> nodes = graph->nodes;
  for (const Node& node : nodes) {
    const OpDef* def = FindOperator(node.op);
    DLA_CHECK(def != nullptr, node.op);
    if (def->lower == nullptr) {
      rewriter.Keep(node);
      continue;
    }
    rewriter.Begin(node);
    const Status status = def->lower(&rewriter, node);
    if (status.ok()) continue;
    const std::string where =
        Concat("node '", node.name, "' (", node.op, ", opset ", node.opset, ")");
    problems += (problems.empty() ? "" : "\n") + status.At(where).message();
  }
  if (!problems.empty()) return Unsupported(problems);
  rewriter.Commit();
  RemoveDeadNodes(graph);
  CompactValues(graph);
  return {};
}

}  // namespace dla::ir
