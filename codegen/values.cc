#include "codegen/values.h"

#include <algorithm>
#include <map>
#include <string>

namespace dla::codegen {
namespace {

class Describer {
 public:
  explicit Describer(const scheduler::Schedule& schedule)
      : graph_(schedule.graph), schedule_(schedule) {
    for (size_t v = 0; v < graph_.values.size(); ++v) {
      values_.emplace(graph_.values[v].name, static_cast<ir::ValueId>(v));
    }
    for (size_t g = 0; g < schedule.groups.size(); ++g) {
      const auto& group = schedule.groups[g];
      const ir::ValueId output = group.nest.operands.back().value;
      last_writer_[graph_.values[static_cast<size_t>(output)].storage.root] =
          static_cast<int32_t>(g);
      for (const std::string& node : group.onnx_nodes) {
        group_of_node_.emplace(node, static_cast<int32_t>(g));
      }
    }
  }

  machine::ValueDesc Describe(const ir::ComputedValue& computed) const {
    machine::ValueDesc desc = {.name = computed.value, .node = computed.node};
    if (const auto it = values_.find(computed.value); it != values_.end()) {
      Locate(graph_.values[static_cast<size_t>(it->second)], &desc);
    }
    if (desc.place == machine::ValuePlace::kNowhere) {
      const auto group = group_of_node_.find(computed.node);
      desc.group = group == group_of_node_.end() ? -1 : group->second;
    }
    return desc;
  }

 private:
  // A value is whole when the last group that writes into its root's buffer has ended.
  void Locate(const ir::Value& value, machine::ValueDesc* desc) const {
    if (value.constant != nullptr || value.storage.root == ir::kNoValue) return;
    const auto writer = last_writer_.find(value.storage.root);
    const int32_t group = writer == last_writer_.end() ? -1 : writer->second;
    const int64_t offset = TypeBytes(value.StoredType(), value.storage.offset);
    if (const int region = scheduler::FindValueRegion(schedule_, value.storage.root); region >= 0) {
      desc->place = machine::ValuePlace::kRegion;
      desc->space = static_cast<uint32_t>(region);
      desc->base = offset;
    } else {
      const auto resident =
          std::find_if(schedule_.residents.begin(), schedule_.residents.end(), [&](const auto& r) {
            return r.root == value.storage.root && r.first_group <= group && group < r.end_group;
          });
      // Of a value in a ring there are never all lines.
      if (resident == schedule_.residents.end() || resident->ring.lines != 0) return;
      desc->place = machine::ValuePlace::kMemory;
      desc->space = static_cast<uint32_t>(resident->memory);
      desc->base = resident->address + offset;
    }
    desc->group = group;
    desc->type = value.StoredType();
    desc->shape = value.shape;
    desc->strides = value.storage.strides;
  }

  const ir::Graph& graph_;
  const scheduler::Schedule& schedule_;
  std::map<std::string, ir::ValueId> values_;
  std::map<ir::ValueId, int32_t> last_writer_;
  std::map<std::string, int32_t> group_of_node_;
};

}  // namespace

std::vector<machine::ValueDesc> DescribeValues(const std::vector<ir::ComputedValue>& computed,
                                               const scheduler::Schedule& schedule) {
  const Describer describer(schedule);
  std::vector<machine::ValueDesc> values;
  values.reserve(computed.size());
  for (const ir::ComputedValue& value : computed) values.push_back(describer.Describe(value));
  return values;
}

}  // namespace dla::codegen
