#include "scheduler/plan_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "support/checked.h"

namespace dla::scheduler {
namespace {

using Json = nlohmann::ordered_json;

size_t At(int i) { return static_cast<size_t>(i); }

constexpr int64_t kMostBytes = int64_t{1} << 48;

// Reads the file; the first fault is kept and ends the reading.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  Result<PlanProblem> Run() {
    if (!json_.is_object()) return Malformed("is not a JSON object");
    Each("memories", [&](const Json& j, const std::string& at) { ReadMemory(j, at); });
    Each("steps", [&](const Json& j, const std::string& at) {
      steps_[Text(j, "name", at)] = static_cast<int>(steps_.size());
    });
    Each("tensors", [&](const Json& j, const std::string& at) {
      tensors_[Text(j, "name", at)] = static_cast<int>(tensors_.size());
    });
    Each("steps", [&](const Json& j, const std::string& at) { ReadStep(j, at); });
    Each("tensors", [&](const Json& j, const std::string& at) { ReadTensor(j, at); });
    if (fault_.ok() &&
        (steps_.size() != problem_.steps.size() || tensors_.size() != problem_.tensors.size())) {
      return Malformed("two steps or two tensors have one name");
    }
    if (!fault_.ok()) return fault_;
    return std::move(problem_);
  }

 private:
  template <typename Read>
  void Each(const char* key, const Read& read) {
    if (!fault_.ok()) return;
    if (!json_.contains(key) || !json_[key].is_array()) return Fail(key, "a list is needed");
    for (size_t i = 0; i < json_[key].size() && fault_.ok(); ++i) {
      const std::string at = Concat(key, "[", i, "]");
      if (!json_[key][i].is_object()) return Fail(at, "is not an object");
      read(json_[key][i], at);
    }
  }

  void Fail(const std::string& at, const std::string& what) {
    if (fault_.ok()) fault_ = Malformed(at, ": ", what);
  }

  std::string Text(const Json& j, const char* key, const std::string& at) {
    if (j.contains(key) && j[key].is_string()) return j[key].get<std::string>();
    Fail(at, Concat("'", key, "' is needed, a text"));
    return "";
  }

  int64_t Whole(const Json& j, const char* key, int64_t least, const std::string& at) {
    if (j.contains(key) && j[key].is_number_integer()) {
      const int64_t value = j[key].get<int64_t>();
      if (value >= least && value <= kMostBytes) return value;
    }
    Fail(at, Concat("'", key, "' is needed, a whole number from ", least, " to ", kMostBytes));
    return least;
  }

  double Number(const Json& j, const char* key, const std::string& at) {
    if (!j.contains(key)) return 0;
    if (j[key].is_number() && j[key].get<double>() >= 0) return j[key].get<double>();
    Fail(at, Concat("'", key, "' is not a number of 0 or more"));
    return 0;
  }

  bool Flag(const Json& j, const char* key, const std::string& at) {
    if (!j.contains(key)) return false;
    if (j[key].is_boolean()) return j[key].get<bool>();
    Fail(at, Concat("'", key, "' is neither true nor false"));
    return false;
  }

  int Find(const std::map<std::string, int>& names, const Json& name, const std::string& at) {
    const auto it = name.is_string() ? names.find(name.get<std::string>()) : names.end();
    if (it != names.end()) return it->second;
    Fail(at, Concat("there is no ", name.dump()));
    return 0;
  }

  void ReadMemory(const Json& j, const std::string& at) {
    PlanMemory memory = {.name = Text(j, "name", at), .bytes = Whole(j, "bytes", 1, at)};
    if (j.contains("align")) memory.align_bytes = Whole(j, "align", 1, at);
    if (!memories_.try_emplace(memory.name, static_cast<int>(memories_.size())).second) {
      Fail(at, "another memory has this name");
    }
    problem_.memories.push_back(std::move(memory));
  }

  PlanOption ReadOption(const Json& j, const std::string& at) {
    PlanOption option = {.cost = Number(j, "cost", at)};
    option.work_bytes.assign(problem_.memories.size(), 0);
    if (j.contains("work")) {
      if (!j["work"].is_object()) Fail(at, "'work' is not an object of memories and bytes");
      for (const auto& [name, bytes] : j["work"].items()) {
        const int memory = Find(memories_, Json(name), at);
        if (fault_.ok()) option.work_bytes[At(memory)] = Whole(j["work"], name.c_str(), 0, at);
      }
    }
    if (j.contains("held")) {
      if (!j["held"].is_array()) Fail(at, "'held' is not a list of tensors");
      for (const Json& held : j["held"]) option.held.push_back(ReadHeld(held, at));
    }
    return option;
  }

  // A name, or {"tensor": NAME, "memory": NAME}.
  PlanHeld ReadHeld(const Json& j, const std::string& at) {
    if (!j.is_object()) return {Find(tensors_, j, at)};
    if (!j.contains("tensor") || !j.contains("memory")) {
      Fail(at, "held: an object needs 'tensor' and 'memory'");
      return {};
    }
    return {Find(tensors_, j["tensor"], at), Find(memories_, j["memory"], at)};
  }

  void ReadStep(const Json& j, const std::string& at) {
    PlanStep step = {.name = Text(j, "name", at), .options = {}};
    if (!j.contains("options")) {
      step.options.push_back(ReadOption(j, at));
    } else if (!j["options"].is_array() || j["options"].empty()) {
      Fail(at, "'options' is not a list of ways to run the step");
    } else {
      for (const Json& option : j["options"]) {
        if (!option.is_object()) return Fail(at, "options: holds something that is not an object");
        step.options.push_back(ReadOption(option, at + ": options"));
      }
    }
    problem_.steps.push_back(std::move(step));
  }

  void ReadTensor(const Json& j, const std::string& at) {
    PlanTensor tensor = {.name = Text(j, "name", at), .bytes = Whole(j, "bytes", 0, at)};
    if (j.contains("producer")) tensor.producer = Find(steps_, j["producer"], at);
    tensor.store_cost = Number(j, "store_cost", at);
    tensor.is_output = Flag(j, "output", at);
    tensor.is_required = Flag(j, "required", at);
    tensor.is_whole = Flag(j, "whole", at);
    if (!j.contains("uses") || !j["uses"].is_array()) return Fail(at, "'uses' is needed, a list");
    for (const Json& use : j["uses"]) {
      if (!use.is_object() || !use.contains("step")) return Fail(at, "uses: 'step' is needed");
      const int step = Find(steps_, use["step"], at + ": uses");
      const int before = tensor.uses.empty() ? tensor.producer : tensor.uses.back().first;
      if (fault_.ok() && step <= before) Fail(at, "uses: must follow the producer in order");
      tensor.uses.emplace_back(step, Number(use, "cost", at + ": uses"));
    }
    if (!j.contains("memories")) {
      for (size_t m = 0; m < problem_.memories.size(); ++m) {
        tensor.memories.push_back(static_cast<int>(m));
      }
    } else {
      for (const Json& name : j["memories"]) tensor.memories.push_back(Find(memories_, name, at));
    }
    problem_.tensors.push_back(std::move(tensor));
  }

  const Json& json_;
  PlanProblem problem_;
  std::map<std::string, int> memories_, steps_, tensors_;
  Status fault_;
};

// A stay of a tensor as an item: its whole life, or from one touch to the next.
struct Stay {
  int tensor = 0;
  int first = 0;  // steps, both included
  int last = 0;
  bool is_whole = false;
  int memory = -1;  // where it must be (a required tensor with one memory), or where it is
};

class PlanSolver {
 public:
  PlanSolver(const PlanProblem& plan, const ResidencyOptions& residency,
             const PlacementOptions& placement)
      : plan_(plan), residency_(residency), placement_(placement) {
    for (size_t t = 0; t < plan.tensors.size(); ++t) AddStays(static_cast<int>(t));
    base_.assign(plan.steps.size(), 0);
    for (const PlanTensor& tensor : plan.tensors) {
      for (const auto& [step, load] : tensor.uses) base_[At(step)] += load;
      if (tensor.producer >= 0) base_[At(tensor.producer)] += tensor.store_cost;
    }
    for (const Stay& stay : stays_) {
      if (!plan.tensors[At(stay.tensor)].is_required) continue;
      base_[At(stay.first)] += kMissing;
      missing_ += kMissing;
    }
  }

  Result<std::string> Run() {
    std::vector<bool> banned(stays_.size() * plan_.memories.size(), false);
    while (true) {
      const ResidencyProblem problem = ProblemWithout(banned);
      const ResidencyResult result = SolveResidency(problem, residency_);
      if (result.failed_step >= 0) {
        return DoesNotFit("step '", plan_.steps[At(result.failed_step)].name,
                          "': none of its options fits");
      }
      chosen_ = fixed_;
      for (size_t i = 0; i < result.memory.size(); ++i) {
        if (result.memory[i] < 0) continue;
        chosen_.push_back(stays_[items_[i]]);
        chosen_.back().memory = result.memory[i];
      }
      DLA_RETURN_IF_ERROR(CheckRequired());
      const int failed = PlaceAll();
      if (failed < 0) return Write(problem, result);
      if (!Ban(failed, result, &banned)) {
        return DoesNotFit("memory '", plan_.memories[At(failed)].name,
                          "': no addresses were found for what must be held");
      }
      ++given_up_;
    }
  }

 private:
  void AddStays(int t) {
    const PlanTensor& tensor = plan_.tensors[At(t)];
    std::vector<int> touches;
    if (tensor.producer >= 0) touches.push_back(tensor.producer);
    for (const auto& use : tensor.uses) touches.push_back(use.first);
    if (touches.empty()) return;
    const bool produced = tensor.producer >= 0;
    if (tensor.is_required) {
      const Stay stay = {t, touches.front(), touches.back(), true, -1};
      if (tensor.memories.size() != 1) return stays_.push_back(stay);
      fixed_.push_back(stay);
      fixed_.back().memory = tensor.memories[0];
      return;
    }
    if (produced && !tensor.is_output && touches.size() > 1) {
      stays_.push_back({t, touches.front(), touches.back(), true, -1});
    }
    // Held from one touch to the next, though it is in DRAM, too.
    const bool only_whole =
        tensor.is_whole || (produced && !tensor.is_output && touches.size() == 2);
    for (size_t i = 0; i + 1 < touches.size() && !only_whole; ++i) {
      stays_.push_back({t, touches[i], touches[i + 1], false, -1});
    }
  }

  int64_t Reserved(const PlanTensor& tensor) const {
    int64_t bytes = 0;
    for (const int m : tensor.memories) {
      bytes = std::max(bytes, RoundUp(tensor.bytes, plan_.memories[At(m)].align_bytes));
    }
    return bytes;
  }

  ResidencyProblem ProblemWithout(const std::vector<bool>& banned) {
    ResidencyProblem problem = {.steps = static_cast<int>(plan_.steps.size())};
    for (const PlanMemory& memory : plan_.memories) {
      problem.capacity_bytes.push_back(memory.bytes / memory.align_bytes * memory.align_bytes);
    }
    items_.clear();
    for (size_t s = 0; s < stays_.size(); ++s) {
      const Stay& stay = stays_[s];
      const PlanTensor& tensor = plan_.tensors[At(stay.tensor)];
      Holdable item = {.name = tensor.name,
                       .bytes = Reserved(tensor),
                       .first_step = stay.first,
                       .end_step = stay.last + 1};
      for (const int m : tensor.memories) {
        if (!banned[s * plan_.memories.size() + At(m)]) item.memories.push_back(m);
      }
      for (int step = stay.first; step <= stay.last; ++step) {
        const bool is_missed = tensor.is_required && step == stay.first;
        const double gain =
            Saved(stay, step) + OptionGain(step, stay.tensor) + (is_missed ? kMissing : 0);
        if (gain > 0 || Touches(step, stay)) item.gains.emplace_back(step, gain);
      }
      item.is_one_step = stay.is_whole && tensor.uses.size() == 1 && stay.last == stay.first + 1;
      if (item.memories.empty()) continue;
      items_.push_back(s);
      problem.items.push_back(std::move(item));
    }
    problem.cost = [this](int step, const Holding& holding) { return Cost(step, holding); };
    return problem;
  }

  // What the tensor's own transfers in the step cost less while it stays.
  double Saved(const Stay& stay, int step) const {
    const PlanTensor& tensor = plan_.tensors[At(stay.tensor)];
    double saved = 0;
    for (const auto& [use, cost] : tensor.uses) {
      const bool is_first = tensor.producer < 0 && use == stay.first;
      if (use == step && !is_first && (stay.is_whole || use == stay.last)) saved += cost;
    }
    if (stay.is_whole && step == tensor.producer && !tensor.is_output) saved += tensor.store_cost;
    return saved;
  }

  // The tensor's share of what options that need it cost less than the cheapest that needs nothing:
  // what it saves alone, and of what several save together beyond that, equal parts. Of all that an
  // option needs the shares add up to what it saves, so they are upper bounds.
  double OptionGain(int step, int tensor) const {
    const double alone = SavedAlone(step, tensor);
    double beyond = 0;
    for (const PlanOption& option : plan_.steps[At(step)].options) {
      if (!Needs(option, tensor)) continue;
      std::set<int> needed;
      for (const PlanHeld& held : option.held) needed.insert(held.tensor);
      double saved = CostWithNothing(step) - option.cost;
      for (const int other : needed) saved -= SavedAlone(step, other);
      beyond = std::max(beyond, saved / static_cast<double>(needed.size()));
    }
    return alone + beyond;
  }

  double SavedAlone(int step, int tensor) const {
    double saved = 0;
    for (const PlanOption& option : plan_.steps[At(step)].options) {
      if (option.held.size() != 1 || option.held[0].tensor != tensor) continue;
      saved = std::max(saved, CostWithNothing(step) - option.cost);
    }
    return saved;
  }

  // The dearest option if all need something: then nothing is saved by what must be held.
  double CostWithNothing(int step) const {
    double least = kImpossible, most = 0;
    for (const PlanOption& option : plan_.steps[At(step)].options) {
      if (option.held.empty() && FitsAlone(option)) least = std::min(least, option.cost);
      most = std::max(most, option.cost);
    }
    return least == kImpossible ? most : least;
  }

  bool FitsAlone(const PlanOption& option) const {
    for (size_t m = 0; m < plan_.memories.size(); ++m) {
      if (WorkBytes(option, m) > plan_.memories[m].bytes) return false;
    }
    return true;
  }

  static bool Needs(const PlanOption& option, int tensor) {
    return std::any_of(option.held.begin(), option.held.end(),
                       [&](const PlanHeld& held) { return held.tensor == tensor; });
  }

  // Does the step's cost depend on whether the tensor stays, apart from its bytes? At both ends it
  // does: there two stays of one tensor meet.
  bool Touches(int step, const Stay& stay) const {
    const auto& options = plan_.steps[At(step)].options;
    return step == stay.first || step == stay.last ||
           std::any_of(options.begin(), options.end(),
                       [&](const PlanOption& option) { return Needs(option, stay.tensor); });
  }

  double Cost(int step, const Holding& holding) {
    std::vector<int64_t> used(holding.bytes.begin(), holding.bytes.end());
    std::vector<Stay> here;
    for (const Stay& stay : fixed_) {
      if (stay.first > step || stay.last < step) continue;
      used[At(stay.memory)] += Reserved(plan_.tensors[At(stay.tensor)]);
      here.push_back(stay);
    }
    for (const Held& h : holding.touched) {
      Stay stay = stays_[items_[At(h.item)]];
      const bool twice = std::any_of(here.begin(), here.end(), [&](const Stay& other) {
        return other.tensor == stay.tensor && (other.is_whole || stay.is_whole);
      });
      if (twice) return kImpossible;
      stay.memory = h.memory;
      here.push_back(stay);
    }
    double cost = base_[At(step)];
    for (const Stay& stay : here) cost -= Saved(stay, step);
    for (const Held& h : holding.touched) {
      const Stay& stay = stays_[items_[At(h.item)]];
      if (plan_.tensors[At(stay.tensor)].is_required && stay.first == step) cost -= kMissing;
    }
    const PlanOption* option = Cheapest(step, here, used);
    return option == nullptr ? kImpossible : cost + option->cost;
  }

  const PlanOption* Cheapest(int step, const std::vector<Stay>& here,
                             const std::vector<int64_t>& used) const {
    const PlanOption* best = nullptr;
    for (const PlanOption& option : plan_.steps[At(step)].options) {
      bool fits = true;
      for (size_t m = 0; m < used.size(); ++m) {
        fits = fits && used[m] + WorkBytes(option, m) <= plan_.memories[m].bytes;
      }
      for (const PlanHeld& held : option.held) {
        fits =
            fits && std::any_of(here.begin(), here.end(), [&](const Stay& stay) {
              return stay.tensor == held.tensor && (held.memory < 0 || stay.memory == held.memory);
            });
      }
      if (fits && (best == nullptr || option.cost < best->cost)) best = &option;
    }
    return best;
  }

  int64_t WorkBytes(const PlanOption& option, size_t m) const {
    return RoundUp(option.work_bytes[m], plan_.memories[m].align_bytes);
  }

  Status CheckRequired() const {
    for (size_t t = 0; t < plan_.tensors.size(); ++t) {
      if (!plan_.tensors[t].is_required) continue;
      const bool is_held = std::any_of(chosen_.begin(), chosen_.end(),
                                       [&](const Stay& stay) { return At(stay.tensor) == t; });
      if (!is_held) {
        return DoesNotFit("tensor '", plan_.tensors[t].name, "': there is no room for it");
      }
    }
    return Status();
  }

  const PlanOption& OptionOf(int step) const {
    std::vector<Stay> here;
    std::vector<int64_t> used(plan_.memories.size(), 0);
    for (const Stay& stay : chosen_) {
      if (stay.first > step || stay.last < step) continue;
      here.push_back(stay);
      used[At(stay.memory)] += Reserved(plan_.tensors[At(stay.tensor)]);
    }
    const PlanOption* option = Cheapest(step, here, used);
    DLA_CHECK(option != nullptr, "a step of the plan does not fit");
    return *option;
  }

  // Addresses for all stays and working sets; -1, or the memory for which none were found.
  int PlaceAll() {
    addresses_.assign(chosen_.size(), 0);
    work_addresses_.assign(plan_.steps.size(), std::vector<int64_t>(plan_.memories.size(), -1));
    for (int m = 0; m < static_cast<int>(plan_.memories.size()); ++m) {
      PlacementProblem problem = {.capacity_bytes = plan_.memories[At(m)].bytes};
      std::vector<int64_t*> targets;
      for (size_t i = 0; i < chosen_.size(); ++i) {
        const Stay& stay = chosen_[i];
        if (stay.memory != m) continue;
        problem.buffers.push_back({stay.first, stay.last + 1, plan_.tensors[At(stay.tensor)].bytes,
                                   plan_.memories[At(m)].align_bytes});
        targets.push_back(&addresses_[i]);
      }
      for (size_t s = 0; s < plan_.steps.size(); ++s) {
        const int64_t bytes = OptionOf(static_cast<int>(s)).work_bytes[At(m)];
        if (bytes == 0) continue;
        const int64_t step = static_cast<int64_t>(s);
        problem.buffers.push_back({step, step + 1, bytes, plan_.memories[At(m)].align_bytes});
        targets.push_back(&work_addresses_[s][At(m)]);
      }
      const PlacementResult result = Place(problem, placement_);
      nodes_ += result.nodes;
      if (!result.solution) return m;
      DLA_CHECK(Validate(problem, *result.solution) == PlacementFault::kNone, "placement");
      for (size_t i = 0; i < targets.size(); ++i) *targets[i] = result.solution->offsets[i];
    }
    return -1;
  }

  // The longest stay in the memory that need not be there may not be there any more.
  bool Ban(int memory, const ResidencyResult& result, std::vector<bool>* banned) const {
    int longest = -1;
    for (size_t i = 0; i < items_.size(); ++i) {
      const Stay& stay = stays_[items_[i]];
      if (result.memory[i] != memory) continue;
      const auto length = [](const Stay& s) { return s.last - s.first; };
      if (longest < 0 || length(stay) > length(stays_[items_[At(longest)]])) {
        longest = static_cast<int>(i);
      }
    }
    if (longest < 0) return false;
    (*banned)[items_[At(longest)] * plan_.memories.size() + At(memory)] = true;
    return true;
  }

  std::string Write(const ResidencyProblem& problem, const ResidencyResult& result) const {
    Json json;
    json["format"] = "dla-plan";
    json["version"] = 1;
    json["policy"] = ResidencyPolicyName(residency_.policy);
    json["cost"] = result.cost;
    json["cost_of_none"] = result.cost_of_none - missing_;
    const ResidencyBound bound = BoundResidency(problem);
    json["bound"] = std::max(0.0, result.cost_of_none - bound.savings);
    json["complete"] = result.complete;
    json["given_up"] = given_up_;
    json["placement_nodes"] = nodes_;
    json["price"] = bound.price;
    json["stays"] = Json::array();
    for (size_t i = 0; i < chosen_.size(); ++i) {
      const Stay& stay = chosen_[i];
      json["stays"].push_back({{"tensor", plan_.tensors[At(stay.tensor)].name},
                               {"memory", plan_.memories[At(stay.memory)].name},
                               {"address", addresses_[i]},
                               {"first", plan_.steps[At(stay.first)].name},
                               {"last", plan_.steps[At(stay.last)].name}});
    }
    json["moves"] = Moves();
    json["steps"] = Json::array();
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      const PlanOption& option = OptionOf(static_cast<int>(s));
      Json step = {{"name", plan_.steps[s].name},
                   {"option", &option - plan_.steps[s].options.data()}};
      for (size_t m = 0; m < plan_.memories.size(); ++m) {
        if (work_addresses_[s][m] >= 0) {
          step["work"][plan_.memories[m].name] = work_addresses_[s][m];
        }
      }
      json["steps"].push_back(std::move(step));
    }
    return json.dump(1) + "\n";
  }

  // Loads and stores that are left.
  Json Moves() const {
    Json moves = Json::array();
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      for (size_t t = 0; t < plan_.tensors.size(); ++t) {
        const PlanTensor& tensor = plan_.tensors[t];
        const int step = static_cast<int>(s);
        const auto spared = [&](bool is_store) {
          return std::any_of(chosen_.begin(), chosen_.end(), [&](const Stay& stay) {
            if (At(stay.tensor) != t || stay.first > step || stay.last < step) return false;
            if (is_store) return stay.is_whole && !tensor.is_output;
            return stay.is_whole ? tensor.producer >= 0 || stay.first < step : stay.last == step;
          });
        };
        for (const auto& use : tensor.uses) {
          if (use.first == step && !spared(false)) moves.push_back(Move(s, tensor, "load"));
        }
        if (tensor.producer == step && !spared(true)) moves.push_back(Move(s, tensor, "store"));
      }
    }
    return moves;
  }

  Json Move(size_t step, const PlanTensor& tensor, const char* kind) const {
    return {{"step", plan_.steps[step].name}, {"kind", kind}, {"tensor", tensor.name}};
  }

  static constexpr double kMissing = 1e12;  // cost of a required tensor that is not held

  const PlanProblem& plan_;
  const ResidencyOptions& residency_;
  const PlacementOptions& placement_;
  std::vector<Stay> stays_;    // what can be chosen
  std::vector<Stay> fixed_;    // what must be
  std::vector<size_t> items_;  // the problem's items, as stays
  std::vector<Stay> chosen_;
  std::vector<int64_t> addresses_;                    // of chosen_
  std::vector<std::vector<int64_t>> work_addresses_;  // by step and memory; -1: none
  std::vector<double> base_;  // by step: all transfers, and what is required but not held
  double missing_ = 0;        // of it, the latter
  int given_up_ = 0;
  int64_t nodes_ = 0;
};

}  // namespace

Result<PlanProblem> ParsePlanProblem(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return Reader(json).Run();
}

Result<std::string> SolvePlan(const PlanProblem& problem, const ResidencyOptions& residency,
                              const PlacementOptions& placement) {
  return PlanSolver(problem, residency, placement).Run();
}

}  // namespace dla::scheduler
