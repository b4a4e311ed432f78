// names: every node gets a name of its own, by which people and schedules speak of it.
#include <set>

#include "ir/passes/passes.h"
#include "support/status.h"

namespace dla::ir {

// ONNX lets names recur, and the parts of one node have its name: the second one gets "#2" behind
// it, the next one "#3".
Status Names(Graph* graph, const PassOptions& /*options*/) {
  std::set<std::string> taken;
  for (const Node& node : graph->nodes) taken.insert(node.name);
  std::set<std::string> given;
  for (Node& node : graph->nodes) {
    if (given.insert(node.name).second) continue;
    int number = 2;
    while (taken.count(Concat(node.name, "#", number)) != 0) ++number;
    node.name = Concat(node.name, "#", number);
    taken.insert(node.name);
    given.insert(node.name);
  }
  return {};
}

}  // namespace dla::ir
