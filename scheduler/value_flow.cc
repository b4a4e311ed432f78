#include "scheduler/value_flow.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

void AddOnce(int g, std::vector<int>* groups) {
  if (groups->empty() || groups->back() != g) groups->push_back(g);
}

}  // namespace

ir::ValueId RootOf(const ir::Graph& graph, const ir::Operand& operand) {
  if (operand.is_local) return ir::kNoValue;
  return graph.values[At(operand.value)].storage.root;
}

ValueFlows FlowsOf(const ir::Graph& graph, const std::vector<ir::Nest>& nests) {
  ValueFlows flows;
  for (size_t g = 0; g < nests.size(); ++g) {
    for (int o = 0; o <= nests[g].output(); ++o) {
      const ir::Operand& operand = nests[g].operands[At(o)];
      if (operand.is_local) continue;
      ValueFlow& flow = flows[RootOf(graph, operand)];
      AddOnce(static_cast<int>(g), o == nests[g].output() ? &flow.writers : &flow.readers);
    }
  }
  for (const ir::ValueId v : graph.outputs) {
    const auto root = flows.find(graph.values[At(v)].storage.root);
    if (root != flows.end()) root->second.is_graph_output = true;
    const auto itself = flows.find(v);
    if (itself != flows.end()) itself->second.is_graph_output = true;
  }
  return flows;
}

int64_t DenseBytes(const ir::Operand& operand) {
  int64_t elements = 1;
  for (const ir::Axis& axis : operand.axes) elements *= axis.bound;
  return TypeBytes(operand.type, elements);
}

}  // namespace dla::scheduler
