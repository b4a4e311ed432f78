// Target -> JSON, every field.
#include "machine/json_fields.h"
#include "machine/target_file.h"

namespace dla::machine {
namespace {

Json RateJson(Rational rate) {
  if (rate.denominator == 1) return rate.numerator;
  return Concat(rate.numerator, "/", rate.denominator);
}

Json MemoryJson(const Memory& memory) {
  Json json = {{"name", memory.name}, {"bytes", memory.bytes}};
  json["holds"] = Json::array();
  for (int c = 0; c < kOperandClassCount; ++c) {
    const auto cls = static_cast<OperandClass>(c);
    if (memory.Holds(cls)) json["holds"].push_back(std::string(ClassName(cls)));
  }
  json["align_bytes"] = memory.align_bytes;
  if (memory.bytes_per_cycle) json["bytes_per_cycle"] = RateJson(*memory.bytes_per_cycle);
  if (!memory.energy_is_default) json["energy_pj_per_byte"] = memory.energy_pj_per_byte;
  return json;
}

Json ArrayJson(const Array& array) {
  static constexpr const char* kDataflows[] = {"os", "ws", "is", "spatial"};
  Json json = {{"rows", array.rows}, {"cols", array.cols}};
  json["dataflow"] = kDataflows[static_cast<size_t>(array.dataflow)];
  json["rates"] = Json::object();
  for (const auto& [types, rate] : array.rates) {
    std::string key(TypeName(types.first));
    if (types.second != types.first) key = Concat(key, ",", TypeName(types.second));
    json["rates"][key] = RateJson(rate);
  }
  json["accumulator"] = Json::object();
  for (const auto& [from, to] : array.accumulator) {
    json["accumulator"][std::string(TypeName(from))] = std::string(TypeName(to));
  }
  json["energy_pj_per_mac"] = Json::object();
  for (const auto& [type, energy] : array.energy_pj_per_mac) {
    json["energy_pj_per_mac"][std::string(TypeName(type))] = energy;
  }
  return json;
}

Json VectorJson(const Vector& vector) {
  Json json = {{"lanes", vector.lanes}, {"startup_cycles", vector.startup_cycles}};
  json["energy_pj_per_op"] = vector.energy_pj_per_op;
  json["op_cycles"] = Json::object();
  for (size_t c = 1; c < vector.op_cycles.size(); ++c) {
    json["op_cycles"][std::string(OpClassName(static_cast<OpClass>(c)))] = vector.op_cycles[c];
  }
  return json;
}

Json OutputStageJson(const OutputStage& stage) {
  Json json = Json::array();
  if (stage.bias) json.push_back("bias");
  if (stage.scale) json.push_back("scale");
  if (stage.clamp) json.push_back("clamp");
  if (stage.relu) json.push_back("relu");
  if (stage.leaky_relu) json.push_back("leaky_relu");
  if (stage.table) json.push_back("table");
  return json;
}

Json DramJson(const Dram& dram) {
  Json json = {{"bytes_per_cycle", RateJson(dram.bytes_per_cycle)},
               {"latency_cycles", dram.latency_cycles},
               {"burst_bytes", dram.burst_bytes},
               {"energy_pj_per_byte", dram.energy_pj_per_byte}};
  if (dram.bytes) json["bytes"] = *dram.bytes;
  return json;
}

}  // namespace

std::string TargetJson(const Target& target) {
  Json json = {{"name", target.name}, {"comment", target.comment}};
  json["clock_mhz"] = target.clock_mhz;
  json["dram"] = DramJson(target.dram);
  json["memories"] = Json::array();
  for (const Memory& memory : target.memories) json["memories"].push_back(MemoryJson(memory));
  json["links"] = Json::array();
  for (const Link& link : target.links) {
    json["links"].push_back({{"from", target.memories[static_cast<size_t>(link.from)].name},
                             {"to", target.memories[static_cast<size_t>(link.to)].name},
                             {"bytes_per_cycle", RateJson(link.bytes_per_cycle)}});
  }
  json["dma"] = {{"startup_cycles", target.dma_startup_cycles}};
  json["array"] = ArrayJson(target.array);
  json["vector"] = VectorJson(target.vector);
  json["output_stage"] = OutputStageJson(target.output_stage);
  json["host"] = {{"call_cycles", target.host.call_cycles},
                  {"cycles_per_element", target.host.cycles_per_element},
                  {"bytes_per_cycle", RateJson(target.host.bytes_per_cycle)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace dla::machine
