#include "scheduler/plan_problem.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "scheduler/group_costs.h"
#include "scheduler/held_mappings.h"
#include "scheduler/residency.h"
#include "scheduler/residency_candidates.h"
#include "scheduler/value_flow.h"

namespace dla::scheduler {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRooms = 8;          // steps of room that are asked for
constexpr size_t kMostSets = 256;  // of held values of one group

size_t At(int i) { return static_cast<size_t>(i); }

class Builder {
 public:
  Builder(const ir::Graph& graph, const std::vector<ir::Nest>& nests, Searcher* searcher)
      : graph_(graph), nests_(nests), searcher_(*searcher), mappings_(graph, nests, searcher) {
    const ValueFlows flows = FlowsOf(graph, nests);
    for (Candidate& candidate : CandidatesOf(graph, nests, flows, searcher->target(), false)) {
      if (candidate.is_whole()) tensors_.push_back(std::move(candidate));
    }
    for (const Candidate& tensor : tensors_) readers_.push_back(flows.at(tensor.root).readers);
  }

  Result<PlanProblem> Run() {
    for (const machine::Memory& memory : searcher_.target().memories) {
      problem_.memories.push_back({memory.name, UsableBytes(memory), memory.align_bytes});
    }
    for (size_t g = 0; g < nests_.size(); ++g) {
      PlanStep step = {.name = graph_.nodes[g].name};
      for (const std::vector<PlanHeld>& held : SetsOf(static_cast<int>(g))) {
        AddOptions(g, held, &step);
      }
      if (step.options.empty() || !step.options[0].held.empty()) {
        return DoesNotFit("node '", graph_.nodes[g].name, "': no tile is small enough");
      }
      problem_.steps.push_back(std::move(step));
    }
    for (size_t t = 0; t < tensors_.size(); ++t) AddTensor(t);
    return std::move(problem_);
  }

 private:
  // The sets of values that the group makes or reads, each in one of its scratchpads; nothing
  // first. Of very many only nothing, each alone, and all of them.
  std::vector<std::vector<PlanHeld>> SetsOf(int group) const {
    std::vector<int> touched;
    size_t count = 1;
    for (size_t t = 0; t < tensors_.size(); ++t) {
      if (!tensors_[t].IsTouchedBy({group, group + 1})) continue;
      touched.push_back(static_cast<int>(t));
      count = std::min(count * (tensors_[t].memories.size() + 1), kMostSets + 1);
    }
    std::vector<std::vector<PlanHeld>> sets = {{}};
    if (count <= kMostSets) {
      for (const int t : touched) Extend(t, &sets);
      return sets;
    }
    std::vector<PlanHeld> all;
    for (const int t : touched) {
      for (const int m : tensors_[At(t)].memories) sets.push_back({{t, m}});
      all.push_back({t, tensors_[At(t)].memories[0]});
    }
    sets.push_back(std::move(all));
    return sets;
  }

  // Each set also with the tensor in each of its scratchpads.
  void Extend(int tensor, std::vector<std::vector<PlanHeld>>* sets) const {
    const size_t before = sets->size();
    for (const int m : tensors_[At(tensor)].memories) {
      for (size_t i = 0; i < before; ++i) {
        sets->push_back((*sets)[i]);
        sets->back().push_back({tensor, m});
      }
    }
  }

  // The group's mappings beside what is held, for ever less room.
  void AddOptions(size_t g, const std::vector<PlanHeld>& held, PlanStep* step) {
    const auto& memories = searcher_.target().memories;
    StayingValues staying;
    std::vector<int64_t> taken(memories.size(), 0);
    for (const PlanHeld& h : held) {
      staying[tensors_[At(h.tensor)].root] = {.memory = h.memory};
      taken[At(h.memory)] += tensors_[At(h.tensor)].reserved_bytes;
    }
    const SearchResult* last = nullptr;
    for (int room = kRooms; room > 0; --room) {
      std::vector<int64_t> reserved = taken;
      for (size_t m = 0; m < memories.size(); ++m) {
        const int64_t usable = UsableBytes(memories[m]);
        reserved[m] = std::max(reserved[m], usable - usable / kRooms * room);
        if (reserved[m] > usable) return;
      }
      const SearchResult* result = mappings_.Find(g, staying, reserved);
      if (result == nullptr) return;
      if (result == last) continue;
      last = result;
      step->options.push_back(
          {.held = held,
           .work_bytes = UsedBytes(nests_[g], result->mapping, searcher_.target()),
           .cost = AdditiveCost(result->predicted, nests_[g], searcher_.target(),
                                searcher_.objective())});
    }
  }

  // What its transfers cost stands in the options.
  void AddTensor(size_t t) {
    const Candidate& candidate = tensors_[t];
    PlanTensor tensor = {.name = graph_.values[At(candidate.root)].name,
                         .bytes = candidate.bytes,
                         .producer = candidate.first_group,
                         .is_whole = true,
                         .memories = candidate.memories};
    for (const int g : readers_[t]) {
      if (g > candidate.first_group) tensor.uses.emplace_back(g, 0.0);
    }
    problem_.tensors.push_back(std::move(tensor));
  }

  const ir::Graph& graph_;
  const std::vector<ir::Nest>& nests_;
  Searcher& searcher_;
  HeldMappings mappings_;
  std::vector<Candidate> tensors_;
  std::vector<std::vector<int>> readers_;  // by tensor
  PlanProblem problem_;
};

Json OptionJson(const PlanProblem& problem, const PlanOption& option) {
  Json json = {{"cost", option.cost}};
  for (size_t m = 0; m < option.work_bytes.size(); ++m) {
    if (option.work_bytes[m] > 0) json["work"][problem.memories[m].name] = option.work_bytes[m];
  }
  for (const PlanHeld& held : option.held) {
    const std::string& name = problem.tensors[At(held.tensor)].name;
    if (held.memory < 0) {
      json["held"].push_back(name);
    } else {
      json["held"].push_back(
          {{"tensor", name}, {"memory", problem.memories[At(held.memory)].name}});
    }
  }
  return json;
}

Json TensorJson(const PlanProblem& problem, const PlanTensor& tensor) {
  Json json = {{"name", tensor.name}, {"bytes", tensor.bytes}};
  if (tensor.producer >= 0) json["producer"] = problem.steps[At(tensor.producer)].name;
  if (tensor.store_cost > 0) json["store_cost"] = tensor.store_cost;
  if (tensor.is_output) json["output"] = true;
  if (tensor.is_required) json["required"] = true;
  if (tensor.is_whole) json["whole"] = true;
  json["uses"] = Json::array();
  for (const auto& [step, cost] : tensor.uses) {
    json["uses"].push_back({{"step", problem.steps[At(step)].name}, {"cost", cost}});
  }
  json["memories"] = Json::array();
  for (const int m : tensor.memories) json["memories"].push_back(problem.memories[At(m)].name);
  return json;
}

}  // namespace

Result<PlanProblem> PlanProblemOf(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                                  Searcher* searcher) {
  return Builder(graph, nests, searcher).Run();
}

std::string PlanProblemJson(const PlanProblem& problem) {
  Json json;
  json["memories"] = Json::array();
  for (const PlanMemory& memory : problem.memories) {
    json["memories"].push_back(
        {{"name", memory.name}, {"bytes", memory.bytes}, {"align", memory.align_bytes}});
  }
  json["steps"] = Json::array();
  for (const PlanStep& step : problem.steps) {
    Json options = Json::array();
    for (const PlanOption& option : step.options) options.push_back(OptionJson(problem, option));
    json["steps"].push_back({{"name", step.name}, {"options", std::move(options)}});
  }
  json["tensors"] = Json::array();
  for (const PlanTensor& tensor : problem.tensors) {
    json["tensors"].push_back(TensorJson(problem, tensor));
  }
  return json.dump(1) + "\n";
}

}  // namespace dla::scheduler
