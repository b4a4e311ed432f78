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

const std::vector<Counters>& PredictedOf(const Program& program, bool is_first) {
  return is_first || program.steady.empty() ? program.predicted : program.steady;
}

bool AsPredicted(const std::vector<Counters>& all, const RunOptions& options, const Counts& counts,
                 size_t g) {
  if (g >= all.size()) return false;
  Counters predicted = all[g];
  Counters counted = counts.groups[g].counters;
  predicted.memory.resize(counted.memory.size());
  if (!HasCycles(options)) predicted.cycles = counted.cycles = 0;
  return predicted == counted;
}

namespace {

// All there is to say of one run.
Json CountsJson(const Program& program, const RunOptions& options, const Counts& counts,
                bool is_first) {
  Json json = RunJson(program, counts.total);
  const double milliseconds = MillisecondsOf(program, counts.total.counters.cycles);
  json["inferences_per_second"] = milliseconds > 0 ? 1000.0 / milliseconds : 0.0;
  const std::vector<Counters>& all = PredictedOf(program, is_first);
  bool as_predicted = true;
  Counters predicted;
  for (const Counters& group : all) predicted.Add(group);
  json["predicted"] = machine::CountersJson(predicted, program.target);
  Json groups = Json::array();
  for (size_t g = 0; g < counts.groups.size(); ++g) {
    Json group = {{"name", program.groups[g].name}, {"onnx_nodes", program.groups[g].onnx_nodes}};
    group.update(RunJson(program, counts.groups[g]));
    if (g < all.size()) group["predicted"] = machine::CountersJson(all[g], program.target);
    const bool is_right = AsPredicted(all, options, counts, g);
    group["as_predicted"] = is_right;
    as_predicted = as_predicted && is_right;
    groups.push_back(std::move(group));
  }
  json["as_predicted"] = as_predicted;
  json["groups"] = std::move(groups);
  return json;
}

}  // namespace

Json StatsJson(const Program& program, const RunOptions& options, const RunResult& result) {
  Json json = {{"target", program.target.name}, {"producer", program.producer}};
  if (!result.steady) {
    json.update(CountsJson(program, options, result, true));
    return json;
  }
  json["runs"] = options.repeat;
  json["first"] = CountsJson(program, options, result, true);
  json["steady"] = CountsJson(program, options, *result.steady, false);
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
