// names: every node gets a name of its own, by which people and schedules speak of it.
#include <map>
#include <set>
#include <string>

#include "ir/passes/passes.h"
#include "support/status.h"

namespace dla::ir {

// ONNX lets names recur, and the parts of one node have its name: the second one gets "#2" behind
// it, the next one "#3".
Status Names(Graph* graph, const PassOptions& /*options*/) {
  std::set<std::string> taken;
  for (const Node& node : graph->nodes) taken.insert(node.name);
  std::map<std::string, int> numbers;  // of each name, the last one that was given
  for (Node& node : graph->nodes) {
    int& number = numbers[node.name];
    if (++number == 1) continue;
    while (!taken.insert(Concat(node.name, "#", number)).second) ++number;
    node.name = Concat(node.name, "#", number);
  }
  return {};
}

}  // namespace dla::ir
