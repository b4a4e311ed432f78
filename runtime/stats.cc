#include "runtime/stats.h"

#include "machine/counters_json.h"

namespace dla::runtime {
namespace {

using Json = nlohmann::ordered_json;
using machine::Counters;
using machine::Program;

double MillisecondsOf(const Program& program, int64_t cycles) {
  return static_cast<double>(cycles) / (static_cast<double>(program.target.clock_mhz) * 1000.0);
}

Json EnginesJson(const GroupRun& run) {
  Json json = Json::object();
  for (size_t e = 0; e < run.engines.size(); ++e) {
    const EngineTimes& times = run.engines[e];
    Json stalls = Json::object();
    for (size_t s = 0; s < times.stall.size(); ++s) {
      stalls[std::string(StallName(static_cast<StallCause>(s)))] = times.stall[s];
    }
    json[std::string(machine::EngineName(static_cast<machine::Engine>(e)))] = {
        {"busy_cycles", times.busy}, {"stall_cycles", std::move(stalls)}};
  }
  json["bus"] = {{"busy_cycles", run.bus_busy}};
  return json;
}

Json RunJson(const Program& program, const GroupRun& run) {
  Json json = machine::CountersJson(run.counters, program.target);
  const Energy& energy = run.energy;
  json["energy_pj"] = energy.total_pj();
  json["energy"] = {{"dram_pj", energy.dram_pj},
                    {"scratchpad_pj", energy.scratchpad_pj},
                    {"mac_pj", energy.mac_pj},
                    {"vector_pj", energy.vector_pj}};
  const double milliseconds = MillisecondsOf(program, run.counters.cycles);
  json["milliseconds"] = milliseconds;
  json["utilisation"] = run.utilisation();
  json["bound_by"] = std::string(run.bound_by());
  json["steps"] = run.steps;
  json["overflows"] = run.overflows;
  json["read_overflows"] = run.read_overflows;
  json["engines"] = EnginesJson(run);
  return json;
}

bool HasCycles(const RunOptions& options) {
  return options.mode != Mode::kFunctional && !options.jitter;
}

}  // namespace

bool AsPredicted(const Program& program, const RunOptions& options, const RunResult& result,
                 size_t g) {
  if (g >= program.predicted.size()) return false;
  Counters predicted = program.predicted[g];
  Counters counted = result.groups[g].counters;
  const size_t memories = program.target.memories.size();
  predicted.memory.resize(memories);
  counted.memory.resize(memories);
  if (!HasCycles(options)) predicted.cycles = counted.cycles = 0;
  return predicted == counted;
}

Json StatsJson(const Program& program, const RunOptions& options, const RunResult& result) {
  Json json = RunJson(program, result.total);
  const double milliseconds = MillisecondsOf(program, result.total.counters.cycles);
  json["inferences_per_second"] = milliseconds > 0 ? 1000.0 / milliseconds : 0.0;
  json["target"] = program.target.name;
  json["producer"] = program.producer;
  bool all = true;
  Counters predicted;
  for (const Counters& group : program.predicted) predicted.Add(group);
  json["predicted"] = machine::CountersJson(predicted, program.target);
  Json groups = Json::array();
  for (size_t g = 0; g < result.groups.size(); ++g) {
    Json group = {{"name", program.groups[g].name}, {"onnx_nodes", program.groups[g].onnx_nodes}};
    group.update(RunJson(program, result.groups[g]));
    if (g < program.predicted.size()) {
      group["predicted"] = machine::CountersJson(program.predicted[g], program.target);
    }
    const bool as_predicted = AsPredicted(program, options, result, g);
    group["as_predicted"] = as_predicted;
    all = all && as_predicted;
    groups.push_back(std::move(group));
  }
  json["as_predicted"] = all;
  json["groups"] = std::move(groups);
  return json;
}

std::vector<std::string> OverflowWarnings(const Program& program, const RunResult& result) {
  constexpr int64_t kMost = 10;
  std::vector<std::string> warnings;
  int64_t groups = 0;
  for (size_t g = 0; g < result.groups.size() && g < program.groups.size(); ++g) {
    const GroupRun& run = result.groups[g];
    if (run.overflows == 0 && run.read_overflows == 0) continue;
    if (++groups > kMost) continue;
    const machine::Group& group = program.groups[g];
    std::string nodes;
    for (const std::string& node : group.onnx_nodes) nodes += (nodes.empty() ? "" : ", ") + node;
    std::string text = Concat("group '", group.name, "' (", nodes, "): ");
    if (run.overflows > 0) {
      text +=
          Concat(run.overflows, " results are too large for half precision and became infinite");
    }
    if (run.read_overflows > 0) {
      text += Concat(run.overflows > 0 ? "; " : "",
                     "the array reads numbers that are infinite in half precision");
    }
    warnings.push_back(std::move(text));
  }
  if (groups > kMost) {
    warnings.push_back(Concat("numbers became infinite in ", groups - kMost, " more groups"));
  }
  return warnings;
}

}  // namespace dla::runtime
