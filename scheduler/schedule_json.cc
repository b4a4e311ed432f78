#include "scheduler/schedule_json.h"

#include <nlohmann/json.hpp>

#include "ir/packed_groups.h"
#include "machine/counters_json.h"
#include "scheduler/dram.h"
#include "scheduler/predict.h"
#include "scheduler/transfers.h"

namespace dla::scheduler {
namespace {

using Json = nlohmann::ordered_json;

size_t At(int i) { return static_cast<size_t>(i); }

class Writer {
 public:
  explicit Writer(const Schedule& schedule) : graph_(schedule.graph), schedule_(schedule) {}

  Json Run() const {
    Json json;
    json["format"] = "dla-schedule";
    json["version"] = 1;
    json["target"] = schedule_.target.name;
    json["optimize"] = ObjectiveName(schedule_.objective);
    json["buffers"] = BufferRuleName(schedule_.search.buffers);
    json["slices"] = Json::array();
    for (const Slicing& slicing : schedule_.slicings) {
      json["slices"].push_back(
          {{"groups", slicing.groups}, {"dimension", slicing.dimension}, {"count", slicing.count}});
    }
    json["groups"] = Json::array();
    for (const ScheduledGroup& group : schedule_.groups) json["groups"].push_back(GroupOf(group));
    json["cascades"] = Json::array();
    for (const Cascade& cascade : schedule_.cascades)
      json["cascades"].push_back(CascadeOf(cascade));
    json["values"] = Json::array();
    for (const Resident& resident : schedule_.residents) {
      if (resident.ring.bound != 0) continue;
      json["values"].push_back({{"name", NameOf(resident.root)},
                                {"memory", MemoryName(resident.memory)},
                                {"address", resident.address},
                                {"bytes", resident.bytes},
                                {"first_group", resident.first_group},
                                {"end_group", resident.end_group}});
      Json& value = json["values"].back();
      if (resident.through.loaded) value["loaded"] = true;
      if (resident.through.stored) value["stored"] = true;
      if (resident.through.kept) value["kept"] = true;
      if (resident.over == ir::kNoValue) continue;
      json["values"].back()["takes_place_of"] = NameOf(resident.over);
    }
    json["order"] = {{"peak_bytes", schedule_.order.peak_bytes},
                     {"graph_peak_bytes", schedule_.order.graph_peak_bytes}};
    json["residency"] = Residency();
    json["memories"] = Memories();
    json["dram"] = Dram();
    json["totals"] = machine::CountersJson(Totals(schedule_), schedule_.target);
    json["totals"]["energy_pj"] = TotalEnergy(&ScheduledGroup::predicted);
    if (LoadsOnce(schedule_)) {
      json["steady"] = machine::CountersJson(SteadyTotals(schedule_), schedule_.target);
      json["steady"]["energy_pj"] = TotalEnergy(&ScheduledGroup::steady);
    }
    return json;
  }

 private:
  const std::string& NameOf(ir::ValueId v) const { return graph_.values[At(v)].name; }
  const std::string& MemoryName(int m) const { return schedule_.target.memories[At(m)].name; }

  // Its groups, the lines of its stripes, and what stays on chip line by line.
  Json CascadeOf(const Cascade& cascade) const {
    Json json;
    for (int g = cascade.first_group; g < cascade.end_group; ++g) {
      json["groups"].push_back(schedule_.groups[At(g)].name);
    }
    json["lines"] = cascade.lines;
    json["rings"] = Json::array();
    for (const Resident& r : schedule_.residents) {
      if (r.ring.bound == 0 || r.first_group != cascade.first_group) continue;
      json["rings"].push_back({{"value", NameOf(r.root)},
                               {"memory", MemoryName(r.memory)},
                               {"address", r.address},
                               {"bytes", r.bytes},
                               {"lines", r.ring.lines == 0 ? r.ring.bound : r.ring.lines},
                               {"of", r.ring.bound}});
    }
    return json;
  }

  Json GroupOf(const ScheduledGroup& group) const {
    Json json;
    json["name"] = group.name;
    json["op"] = group.op;
    json["onnx_nodes"] = group.onnx_nodes;
    json["nest"] = NestOf(group.nest);
    json["mapping"] = MappingOf(group);
    json["buffers"] = Json::array();
    for (const TileBuffer& buffer : group.buffers) {
      json["buffers"].push_back({{"operand", OperandName(group.nest, buffer.operand)},
                                 {"memory", MemoryName(buffer.memory)},
                                 {"address", buffer.address},
                                 {"tile_bytes", buffer.slot_bytes},
                                 {"tiles", buffer.slots}});
    }
    json["predicted"] = machine::CountersJson(group.predicted, schedule_.target);
    json["predicted"]["energy_pj"] =
        EnergyPj(group.predicted, schedule_.target, group.nest.operands[0].ReadType());
    if (LoadsOnce(group.mapping) || group.steady.cycles != group.predicted.cycles) {
      json["steady"] = machine::CountersJson(group.steady, schedule_.target);
      json["steady"]["energy_pj"] =
          EnergyPj(group.steady, schedule_.target, group.nest.operands[0].ReadType());
    }
    json["alone_cycles"] = group.alone_cycles;
    if (group.joined) json["joined"] = true;
    for (int o = 0; o < group.nest.output(); ++o) {
      if ((group.prefetched >> o & 1U) == 0) continue;
      json["prefetched"].push_back(OperandName(group.nest, o));
    }
    json["compulsory_bytes"] = group.compulsory_bytes;
    json["compute_cycles"] = ComputeCycles(group.nest, group.mapping, schedule_.target);
    json["search"] = SearchOf(group);
    return json;
  }

  // How far the mapping is from the best; without a bound just what was done.
  Json SearchOf(const ScheduledGroup& group) const {
    Json json = {{"points", group.points}, {"evaluated", group.evaluated}};
    const Certificate& certificate = group.certificate;
    if (certificate.least <= 0) return json;
    const double value = ValueOf(group, schedule_);
    json["value"] = value;
    json["bound"] = certificate.least;
    json["gap"] = value / certificate.least - 1;
    json["proven"] = certificate.proven;
    json["all_sizes"] = certificate.all_sizes;
    if (certificate.least_cycles > 0) json["least_cycles"] = certificate.least_cycles;
    return json;
  }

  std::string OperandName(const ir::Nest& nest, int operand) const {
    if (operand == kAccumulator) return "accumulators";
    if (nest.operands[At(operand)].is_local) return "running value";
    return NameOf(nest.operands[At(operand)].value);
  }

  Json NestOf(const ir::Nest& nest) const {
    static constexpr const char* kAnchors[] = {"contraction", "vector", "move"};
    Json json;
    json["anchor"] = kAnchors[static_cast<size_t>(nest.anchor)];
    for (const ir::Dimension& d : nest.dimensions) {
      json["dimensions"][d.name] = d.extent;
      if (d.repeated != 0) json["repeated"][d.name] = d.repeated;
    }
    if (nest.anchor == ir::Anchor::kContraction) {
      const int64_t packed = ir::ZeroFactor(nest.operands[ir::Nest::kWeight], nest);
      if (packed > 1) json["packed_groups"] = packed;
    }
    json["operands"] = Json::array();
    for (int o = 0; o <= nest.output(); ++o) {
      const ir::Operand& operand = nest.operands[At(o)];
      json["operands"].push_back({{"value", OperandName(nest, o)},
                                  {"class", ClassName(operand.cls)},
                                  {"type", TypeName(operand.type)},
                                  {"index", IndexText(nest, operand)}});
    }
    if (!nest.program.ops.empty()) json["program"] = ToText(nest.program);
    for (const ir::Phase& phase : nest.phases) {
      json["phases"].push_back({{"pass", phase.pass},
                                {"program", ToText(phase.program)},
                                {"writes", OperandName(nest, phase.output)}});
    }
    return json;
  }

  // One text an axis, e.g. "E*2 + R - 1 in [0, 224)".
  static Json IndexText(const ir::Nest& nest, const ir::Operand& operand) {
    Json axes = Json::array();
    for (const ir::Axis& axis : operand.axes) {
      std::string text;
      for (const ir::Term& term : axis.terms) {
        if (!text.empty()) text += " + ";
        text += nest.dimensions[At(term.dimension)].name;
        if (term.coefficient != 1) text += "*" + std::to_string(term.coefficient);
      }
      if (text.empty()) text = std::to_string(axis.offset);
      if (!axis.terms.empty() && axis.offset != 0) {
        text += (axis.offset < 0 ? " - " : " + ") + std::to_string(std::abs(axis.offset));
      }
      axes.push_back(text + " in [0, " + std::to_string(axis.bound) + ")");
    }
    return axes;
  }

  Json MappingOf(const ScheduledGroup& group) const {
    const ir::Nest& nest = group.nest;
    Json json;
    json["order"] = Json::array();
    for (const int d : group.mapping.order) json["order"].push_back(nest.dimensions[At(d)].name);
    for (size_t d = 0; d < nest.dimensions.size(); ++d) {
      json["blocks"][nest.dimensions[d].name] = group.mapping.block[d];
    }
    if (group.mapping.stripe.dimension >= 0) {
      json["stripes"] = {{"dimension", nest.dimensions[At(group.mapping.stripe.dimension)].name},
                         {"lead", group.mapping.stripe.lead}};
    }
    json["steps"] = StepCount(nest, group.mapping);
    json["operands"] = Json::array();
    for (int o = 0; o <= nest.output(); ++o) {
      json["operands"].push_back(PlaceOf(group, o, group.mapping.operands[At(o)]));
    }
    if (nest.anchor == ir::Anchor::kContraction) {
      json["operands"].push_back(PlaceOf(group, kAccumulator, group.mapping.accumulator));
    }
    return json;
  }

  Json PlaceOf(const ScheduledGroup& group, int operand, const OperandPlace& place) const {
    const bool in_place =
        operand == group.nest.output() && DrainsInPlace(group.nest, group.mapping);
    const std::string buffers = place.kept ? "kept"
                                : place.resident
                                    ? place.through_dram ? "resident and in DRAM" : "resident"
                                : place.source >= 0 ? "moved"
                                : in_place          ? "drained in place"
                                : RingSlots(group.nest, group.mapping, operand) > 1 ? "double"
                                                                                    : "single";
    Json json = {{"value", OperandName(group.nest, operand)},
                 {"memory", MemoryName(place.memory)},
                 {"buffers", buffers}};
    if (place.source >= 0) json["from"] = MemoryName(place.source);
    return json;
  }

  // How it was decided what stays, and what no decision can better.
  Json Residency() const {
    const ResidencySummary& residency = schedule_.residency;
    const machine::Counters totals = Totals(schedule_);
    const auto gap = [](int64_t reached, int64_t bound) {
      if (bound <= 0) return 0.0;
      return static_cast<double>(reached - bound) / static_cast<double>(bound);
    };
    Json json;
    json["policy"] = ResidencyPolicyName(residency.policy);
    if (residency.inferences > 1) json["inferences"] = residency.inferences;
    json["given_up"] = residency.given_up;
    if (residency.policy == ResidencyPolicy::kExact) json["complete"] = residency.complete;
    json["bound"] = {
        {"compulsory_bytes", residency.bound.compulsory_bytes},
        {"dram_bytes", residency.bound.dram_bytes},
        {"dram_bytes_gap", gap(totals.dram_bytes(), residency.bound.dram_bytes)},
        {"cycles", residency.bound.cycles},
        {"cycles_gap", gap(totals.cycles, residency.bound.cycles)},
        {"alone_cycles", residency.bound.alone_cycles},
        {"alone_cycles_gap", gap(CyclesApart(schedule_), residency.bound.alone_cycles)}};
    json["price"] = residency.bound.price;
    return json;
  }

  // What each scratchpad holds at most, and its size.
  Json Memories() const {
    Json json = Json::array();
    for (int m = 0; m < static_cast<int>(schedule_.target.memories.size()); ++m) {
      const machine::Memory& memory = schedule_.target.memories[At(m)];
      int64_t peak = 0;
      for (const ScheduledGroup& group : schedule_.groups) {
        for (const TileBuffer& b : group.buffers) {
          if (b.memory == m) peak = std::max(peak, b.address + b.slot_bytes * b.slots);
        }
      }
      for (const Resident& r : schedule_.residents) {
        if (r.memory == m) peak = std::max(peak, r.address + r.bytes);
      }
      json.push_back({{"name", memory.name}, {"bytes", memory.bytes}, {"peak_bytes", peak}});
    }
    return json;
  }

  Json Dram() const {
    static constexpr const char* kKinds[] = {"input",         "output",    "constant",
                                             "packed weight", "temporary", "partial sums"};
    Json json;
    json["footprint_bytes"] = DramFootprint(schedule_);
    json["regions"] = Json::array();
    for (const DramRegion& region : schedule_.regions) {
      json["regions"].push_back({{"name", region.name},
                                 {"kind", kKinds[static_cast<size_t>(region.kind)]},
                                 {"address", region.address},
                                 {"bytes", region.bytes},
                                 {"first_group", region.first_group},
                                 {"end_group", region.end_group}});
    }
    return json;
  }

  double TotalEnergy(machine::Counters ScheduledGroup::*counters) const {
    double energy = 0;
    for (const ScheduledGroup& group : schedule_.groups) {
      energy += EnergyPj(group.*counters, schedule_.target, group.nest.operands[0].ReadType());
    }
    return energy;
  }

  const ir::Graph& graph_;
  const Schedule& schedule_;
};

}  // namespace

std::string ScheduleJson(const Schedule& schedule) { return Writer(schedule).Run().dump(1) + "\n"; }

}  // namespace dla::scheduler
