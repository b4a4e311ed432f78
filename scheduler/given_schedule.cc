#include "scheduler/given_schedule.h"

#include <nlohmann/json.hpp>

#include "scheduler/predict.h"
#include "scheduler/searcher.h"
#include "scheduler/transfers.h"

namespace dla::scheduler {
namespace {

using Json = nlohmann::json;

size_t At(int i) { return static_cast<size_t>(i); }

Result<GivenMapping> ParseMapping(const Json& json) {
  GivenMapping mapping;
  if (!json.is_object()) return Malformed("is not an object");
  if (!json.contains("blocks") || !json["blocks"].is_object()) {
    return Malformed("blocks: an object of dimension names and sizes is needed");
  }
  for (const auto& [name, size] : json["blocks"].items()) {
    if (!size.is_number_integer()) return Malformed("blocks.", name, ": is not a whole number");
    mapping.blocks[name] = size.get<int64_t>();
  }
  if (!json.contains("order") || !json["order"].is_array()) {
    return Malformed("order: a list of dimension names is needed");
  }
  for (const Json& name : json["order"]) {
    if (!name.is_string()) return Malformed("order: holds something that is not a name");
    mapping.order.push_back(name.get<std::string>());
  }
  if (!json.contains("operands") || !json["operands"].is_array()) {
    return Malformed("operands: a list is needed");
  }
  for (const Json& place : json["operands"]) {
    const auto text = [&](const char* key) {
      return place.is_object() && place.contains(key) && place[key].is_string()
                 ? place[key].get<std::string>()
                 : std::string();
    };
    mapping.operands.push_back({text("value"), text("memory"), text("buffers"), text("from")});
    if (mapping.operands.back().memory.empty() || mapping.operands.back().buffers.empty()) {
      return Malformed("operands[", mapping.operands.size() - 1,
                       "]: 'memory' and 'buffers' are needed");
    }
  }
  return mapping;
}

Result<GivenCascade> ParseCascade(const Json& json) {
  GivenCascade cascade;
  const bool listed = json.is_object() && json.contains("groups") && json["groups"].is_array();
  const bool counted =
      json.is_object() && json.contains("lines") && json["lines"].is_number_integer();
  if (!listed || !counted) return Malformed("an entry needs 'groups' (names) and 'lines'");
  for (const Json& name : json["groups"]) {
    if (!name.is_string()) return Malformed("groups: holds something that is not a name");
    cascade.groups.push_back(name.get<std::string>());
  }
  cascade.lines = json["lines"].get<int64_t>();
  if (cascade.lines < 1 || cascade.groups.size() < 2) {
    return Malformed("a cascade has two groups or more, and stripes of a line or more");
  }
  return cascade;
}

Result<Slicing> ParseSlicing(const Json& json) {
  if (!json.is_object() || !json.contains("groups") || !json["groups"].is_array() ||
      !json.contains("dimension") || !json["dimension"].is_string() || !json.contains("count") ||
      !json["count"].is_number_integer()) {
    return Malformed("an entry needs 'groups', 'dimension' and 'count'");
  }
  Slicing slicing = {.dimension = json["dimension"].get<std::string>(),
                     .count = json["count"].get<int64_t>()};
  for (const Json& group : json["groups"]) {
    if (!group.is_string()) return Malformed("groups: the name of a group expected");
    slicing.groups.push_back(group.get<std::string>());
  }
  return slicing;
}

void ParseLife(const Json& json, GivenValue* value) {
  const auto number = [&](const char* key) {
    return json.contains(key) && json[key].is_number_integer() ? json[key].get<int>() : -1;
  };
  const auto flag = [&](const char* key) {
    return json.contains(key) && json[key].is_boolean() && json[key].get<bool>();
  };
  value->first_group = number("first_group");
  value->end_group = number("end_group");
  value->through = {.loaded = flag("loaded"), .stored = flag("stored"), .kept = flag("kept")};
}

class Resolver {
 public:
  Resolver(const GivenMapping& given, const ir::Nest& nest, const machine::Target& target)
      : given_(given), nest_(nest), target_(target) {}

  Result<Mapping> Run(const std::vector<int64_t>& reserved_bytes) {
    DLA_RETURN_IF_ERROR(Blocks());
    DLA_RETURN_IF_ERROR(Order());
    DLA_RETURN_IF_ERROR(Places());
    DLA_RETURN_IF_ERROR(DrainsAsSaid());
    const std::string gather = GatherFault(nest_, mapping_);
    if (!gather.empty()) return Usage("operands: ", gather);
    DLA_RETURN_IF_ERROR(Fits(reserved_bytes));
    return mapping_;
  }

 private:
  Status Blocks() {
    for (const auto& [name, size] : given_.blocks) {
      if (DimensionOf(name) < 0) return Usage("there is no dimension '", name, "'");
    }
    for (const ir::Dimension& d : nest_.dimensions) {
      const auto it = given_.blocks.find(d.name);
      const int64_t block = it == given_.blocks.end() ? d.extent : it->second;
      if (block < 1 || block > d.extent) {
        return Usage("block ", block, " of ", d.name, " is not from 1 to ", d.extent);
      }
      mapping_.block.push_back(block);
    }
    for (size_t d = 0; d < nest_.dimensions.size(); ++d) {
      const int dim = static_cast<int>(d);
      const bool reduced = nest_.IsReduction(dim) || (nest_.reduce_mask >> d & 1U) != 0;
      if (dim == nest_.pass_dimension && mapping_.block[d] != 1) {
        return Usage("the block of 'pass' is always 1");
      }
      if (nest_.anchor != ir::Anchor::kContraction && reduced && nest_.pass_dimension < 0 &&
          mapping_.block[d] < nest_.dimensions[d].extent) {
        return Usage("dimension ", nest_.dimensions[d].name,
                     " is reduced over by the vector unit and cannot be cut");
      }
    }
    return Status();
  }

  Status Order() {
    uint32_t seen = 0;
    for (const std::string& name : given_.order) {
      const int d = DimensionOf(name);
      if (d < 0) return Usage("order: there is no dimension '", name, "'");
      if (seen >> d & 1U) return Usage("order: '", name, "' is listed twice");
      seen |= uint32_t{1} << d;
      mapping_.order.push_back(d);
    }
    const uint32_t cut = CutMask(nest_, mapping_);
    if (seen != cut) {
      return Usage("order: it must list exactly the dimensions whose block is smaller than their ",
                   "extent", Names("; missing: ", cut & ~seen), Names("; not cut: ", seen & ~cut));
    }
    return nest_.pass_dimension >= 0 ? PassOrder() : Status();
  }

  // Running values live for the passes over one tile of the output.
  Status PassOrder() const {
    int before = 0;
    for (const int d : mapping_.order) {
      const int rank = d == nest_.pass_dimension ? 1 : (nest_.reduce_mask >> d & 1U) != 0 ? 2 : 0;
      if (rank < before) {
        return Usage("order: '", nest_.dimensions[At(d)].name, "' must be further out; reductions ",
                     "in passes have 'pass' outside of what is reduced over",
                     Names(" (", nest_.reduce_mask & CutMask(nest_, mapping_)),
                     ") and inside of everything else");
      }
      before = rank;
    }
    return Status();
  }

  // The dimensions' names behind `before`; nothing if there are none.
  std::string Names(const char* before, uint32_t dims) const {
    std::string text;
    for (size_t d = 0; d < nest_.dimensions.size(); ++d) {
      if ((dims >> d & 1U) == 0) continue;
      text += Concat(text.empty() ? before : ", ", nest_.dimensions[d].name);
    }
    return text;
  }

  Status Places() {
    const bool contracts = nest_.anchor == ir::Anchor::kContraction;
    const size_t wanted = nest_.operands.size() + (contracts ? 1 : 0);
    if (given_.operands.size() != wanted) {
      return Usage("operands: ", given_.operands.size(), " are listed, the group has ", wanted);
    }
    for (size_t o = 0; o < wanted; ++o) {
      OperandPlace place;
      const GivenMapping::Place& given = given_.operands[o];
      place.memory = target_.MemoryIndex(given.memory);
      if (place.memory < 0) return Usage("operands: there is no scratchpad '", given.memory, "'");
      const bool sums = o == nest_.operands.size();
      const OperandClass cls = sums ? OperandClass::kPartial : nest_.operands[o].cls;
      if (!target_.memories[At(place.memory)].Holds(cls)) {
        return Usage("operands: '", given.memory, "' does not hold ", ClassName(cls));
      }
      DLA_RETURN_IF_ERROR(KnownBuffers(given, sums));
      place.is_double = given.buffers != "single";
      place.resident = StartsWithResident(given.buffers);
      if (given.buffers == "moved") {
        place.source = target_.MemoryIndex(given.from);
        if (place.source < 0 || target_.FindLink(place.source, place.memory) == nullptr) {
          return Usage("operands: there is no link from '", given.from, "' to '", given.memory,
                       "'");
        }
      }
      if (sums) {
        mapping_.accumulator = place;
      } else {
        mapping_.operands.push_back(place);
      }
    }
    return Status();
  }

  // Whether it goes through DRAM as well, `values` says.
  static bool StartsWithResident(const std::string& buffers) {
    return buffers == "resident" || buffers == "resident and in DRAM";
  }

  static Status KnownBuffers(const GivenMapping::Place& given, bool sums) {
    if (given.buffers == "double" || given.buffers == "single") return Status();
    if (sums) {
      return Usage("operands: the accumulators' buffers are 'double' or 'single', not '",
                   given.buffers, "'");
    }
    if (StartsWithResident(given.buffers) || given.buffers == "moved" ||
        given.buffers == "drained in place") {
      return Status();
    }
    return Usage("operands: buffers '", given.buffers,
                 "': double, single, resident, moved or drained in place expected");
  }

  // What is drained in place lies where the accumulators are.
  Status DrainsAsSaid() const {
    for (int o = 0; o <= nest_.output(); ++o) {
      if (given_.operands[At(o)].buffers != "drained in place") continue;
      if (o == nest_.output() && DrainsInPlace(nest_, mapping_)) continue;
      return Usage("operands: only the output of an array group can be drained in place, and only ",
                   "in the scratchpad of its accumulators");
    }
    return Status();
  }

  Status Fits(const std::vector<int64_t>& reserved_bytes) const {
    std::vector<int64_t> used = reserved_bytes;
    for (int o = kAccumulator; o <= nest_.output(); ++o) {
      if (o == kAccumulator && nest_.anchor != ir::Anchor::kContraction) continue;
      const int memory =
          o == kAccumulator ? mapping_.accumulator.memory : mapping_.operands[At(o)].memory;
      used[At(memory)] += BufferBytes(nest_, mapping_, target_, o);
    }
    for (size_t m = 0; m < used.size(); ++m) {
      const int64_t bytes = UsableBytes(target_.memories[m]);
      if (used[m] > bytes) {
        return Usage("it needs ", used[m], " bytes of '", target_.memories[m].name, "', which has ",
                     bytes);
      }
    }
    return Status();
  }

  int DimensionOf(const std::string& name) const {
    for (size_t d = 0; d < nest_.dimensions.size(); ++d) {
      if (nest_.dimensions[d].name == name) return static_cast<int>(d);
    }
    return -1;
  }

  const GivenMapping& given_;
  const ir::Nest& nest_;
  const machine::Target& target_;
  Mapping mapping_;
};

}  // namespace

Result<GivenSchedule> ParseGivenSchedule(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Malformed("is not a JSON object");
  GivenSchedule given;
  if (json.contains("groups")) {
    if (!json["groups"].is_array()) return Malformed("groups: is not a list");
    for (const Json& group : json["groups"]) {
      if (!group.is_object() || !group.contains("name") || !group["name"].is_string()) {
        return Malformed("groups: an entry has no name");
      }
      const std::string name = group["name"].get<std::string>();
      given.order.push_back(name);
      if (!group.contains("mapping")) continue;
      Result<GivenMapping> mapping = ParseMapping(group["mapping"]);
      if (!mapping.ok()) return mapping.status().At("group '" + name + "': mapping");
      given.groups[name] = std::move(*mapping);
    }
  }
  if (json.contains("slices")) {
    if (!json["slices"].is_array()) return Malformed("slices: is not a list");
    for (const Json& entry : json["slices"]) {
      Result<Slicing> slicing = ParseSlicing(entry);
      if (!slicing.ok()) return slicing.status().At("slices");
      given.slicings.push_back(std::move(*slicing));
    }
  }
  if (json.contains("values")) {
    if (!json["values"].is_array()) return Malformed("values: is not a list");
    given.values.emplace();
    for (const Json& value : json["values"]) {
      if (!value.is_object() || !value.contains("name") || !value.contains("memory") ||
          !value["name"].is_string() || !value["memory"].is_string()) {
        return Malformed("values: an entry needs 'name' and 'memory'");
      }
      given.values->push_back(
          {.name = value["name"].get<std::string>(), .memory = value["memory"].get<std::string>()});
      ParseLife(value, &given.values->back());
    }
  }
  if (json.contains("cascades")) {
    if (!json["cascades"].is_array()) return Malformed("cascades: is not a list");
    given.cascades.emplace();
    for (const Json& entry : json["cascades"]) {
      Result<GivenCascade> cascade = ParseCascade(entry);
      if (!cascade.ok()) return cascade.status().At("cascades");
      for (const std::string& group : cascade->groups) given.groups.erase(group);
      given.cascades->push_back(std::move(*cascade));
    }
  }
  return given;
}

Result<Mapping> ResolveMapping(const GivenMapping& given, const ir::Nest& nest,
                               const machine::Target& target,
                               const std::vector<int64_t>& reserved_bytes) {
  return Resolver(given, nest, target).Run(reserved_bytes);
}

GivenMapping InOnePlace(GivenMapping given, const ir::Nest& nest) {
  for (GivenMapping::Place& place : given.operands) {
    if (place.buffers == "moved" && place.from == place.memory) place.buffers = "resident";
  }
  if (nest.anchor != ir::Anchor::kContraction || given.operands.size() < 2) return given;
  GivenMapping::Place& output = given.operands[given.operands.size() - 2];
  const bool is_tile = output.buffers == "single" || output.buffers == "double";
  if (is_tile && output.memory == given.operands.back().memory) {
    output.buffers = "drained in place";
  }
  return given;
}

}  // namespace dla::scheduler
