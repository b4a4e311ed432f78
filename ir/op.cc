#include "ir/op.h"

#include <algorithm>

#include "ir/ops/ops.h"

namespace dla::ir {
namespace {

template <typename T>
T Get(const AttributeMap& attributes, const std::string& name, T fallback) {
  const auto it = attributes.find(name);
  if (it == attributes.end()) return fallback;
  const T* value = std::get_if<T>(&it->second);
  return value == nullptr ? fallback : *value;
}

}  // namespace

const OpDef* FindOperator(std::string_view name) {
  const std::span<const OpDef* const> table = OperatorTable();
  const auto it =
      std::lower_bound(table.begin(), table.end(), name,
                       [](const OpDef* row, std::string_view n) { return row->name < n; });
  return it != table.end() && (*it)->name == name ? *it : nullptr;
}

Result<Nest> BuildNest(const Graph& graph, const Node& node) {
  const OpDef* def = FindOperator(node.op);
  DLA_CHECK(def != nullptr && def->nest != nullptr, "no nest for ", node.op);
  Result<Nest> nest = def->nest(graph, node);
  if (!nest.ok()) return nest.status().At("node '" + node.name + "' (" + node.op + ")");
  if (graph.array_type && nest->anchor == Anchor::kContraction) {
    for (const int o : {Nest::kInput, Nest::kWeight}) {
      Operand& operand = nest->operands[Idx(o)];
      if (operand.type == ElementType::kF32) operand.read_as = graph.array_type;
    }
  }
  return nest;
}

int64_t GetInt(const AttributeMap& attributes, const std::string& name, int64_t fallback) {
  return Get(attributes, name, fallback);
}

float GetFloat(const AttributeMap& attributes, const std::string& name, float fallback) {
  return Get(attributes, name, fallback);
}

std::string GetString(const AttributeMap& attributes, const std::string& name,
                      const std::string& fallback) {
  return Get(attributes, name, fallback);
}

std::vector<int64_t> GetInts(const AttributeMap& attributes, const std::string& name,
                             std::vector<int64_t> fallback) {
  return Get(attributes, name, std::move(fallback));
}

}  // namespace dla::ir
