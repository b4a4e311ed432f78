#include "scheduler/residency.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "scheduler/cascade.h"
#include "scheduler/cascade_choice.h"
#include "scheduler/group_costs.h"
#include "scheduler/predict.h"
#include "scheduler/residency_candidates.h"
#include "scheduler/transfers.h"
#include "scheduler/value_flow.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

class Planner {
 public:
  Planner(const ir::Graph& graph, const std::vector<ir::Nest>& nests, const ResidencyRules& rules,
          Searcher* searcher)
      : graph_(graph),
        nests_(nests),
        rules_(rules),
        searcher_(*searcher),
        costs_(nests, searcher),
        flows_(FlowsOf(graph, nests)),
        cascades_(graph, nests, flows_, searcher->target()),
        candidates_(CandidatesOf(graph, nests, flows_, searcher->target())) {
    by_root_.assign(graph.values.size(), -1);
    for (size_t i = 0; i < candidates_.size(); ++i) {
      by_root_[At(candidates_[i].root)] = static_cast<int>(i);
    }
    for (int g = 0; g < static_cast<int>(nests.size()); ++g) segments_.push_back({{g, g + 1}});
    NumberSegments();
  }

  Result<ResidencyPlan> Run(const std::function<void(size_t, size_t)>& progress) {
    DLA_RETURN_IF_ERROR(ReadGiven());
    if (rules_.pins != nullptr) {
      for (const auto& [value, memory] : rules_.pins->hold) {
        DLA_RETURN_IF_ERROR(Pin(value, memory));
      }
    }
    for (size_t g = 0; g < nests_.size(); ++g) {
      if (progress) progress(g, nests_.size());
      if (Mapped(g, {}) != nullptr) continue;
      if (!given_fault_.ok()) return given_fault_;
      if (HoldsPinned(static_cast<int>(g))) {
        return Usage("group '", graph_.nodes[g].name,
                     "': no tile fits beside the values that are pinned there");
      }
      return DoesNotFit("node '", graph_.nodes[g].name, "'");
    }
    if (progress) progress(nests_.size(), nests_.size());
    DLA_RETURN_IF_ERROR(SetSegments(GivenCascades(graph_, rules_.given)));
    ResidencyResult result = SolveResidency(Problem(), rules_.options);
    if (result.failed_step >= 0) return NoRoomFor(segments_[At(result.failed_step)]);
    if (MayCascade()) result = CascadeFromBothEnds(std::move(result));
    return Write(result);
  }

 private:
  // Takes over what the user says: values by name, and what given mappings imply.
  Status ReadGiven() {
    if (rules_.given == nullptr) return Status();
    for (const auto& given : rules_.given->groups) {
      const std::string& name = given.first;  // not a structured binding: Clang 14 captures none
      const auto node = std::find_if(graph_.nodes.begin(), graph_.nodes.end(),
                                     [&](const ir::Node& n) { return n.name == name; });
      if (node == graph_.nodes.end()) {
        return Usage("group '", name, "': the model has no group of that name");
      }
      if (!rules_.given->values) {
        PinOperands(static_cast<size_t>(node - graph_.nodes.begin()), given.second);
      }
    }
    if (!rules_.given->values) return Status();
    for (size_t i = 0; i < candidates_.size(); ++i) excluded_.insert(static_cast<int>(i));
    for (const auto& [name, memory] : *rules_.given->values) {
      DLA_RETURN_IF_ERROR(Pin(name, memory));
    }
    return Status();
  }

  Status Pin(const std::string& name, const std::string& memory) {
    const int m = searcher_.target().MemoryIndex(memory);
    if (m < 0) return Usage("value '", name, "': there is no scratchpad '", memory, "'");
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (graph_.values[At(candidates_[i].root)].name != name) continue;
      const auto& memories = candidates_[i].memories;
      if (std::find(memories.begin(), memories.end(), m) == memories.end()) break;
      pinned_[static_cast<int>(i)] = m;
      return Status();
    }
    return Usage("value '", name, "' cannot stay in '", memory,
                 "': only a value that groups make and only groups read can stay, in a scratchpad ",
                 "that holds its classes and is large enough");
  }

  bool HoldsPinned(int g) const {
    return std::any_of(pinned_.begin(), pinned_.end(), [&](const auto& pin) {
      const Candidate& c = candidates_[At(pin.first)];
      return c.first_group <= g && g < c.end_group;
    });
  }

  // A given mapping says where each operand of its group stays, or that it does not.
  void PinOperands(size_t g, const GivenMapping& given) {
    const ir::Nest& nest = nests_[g];
    for (size_t o = 0; o < nest.operands.size() && o < given.operands.size(); ++o) {
      const ir::ValueId root = RootOf(graph_, nest.operands[o]);
      if (root == ir::kNoValue || by_root_[At(root)] < 0) continue;
      const int i = by_root_[At(root)];
      const GivenMapping::Place& place = given.operands[o];
      const std::string& stays_in = place.buffers == "moved" ? place.from : place.memory;
      if (place.buffers == "resident" || place.buffers == "moved") {
        pinned_[i] = searcher_.target().MemoryIndex(stays_in);
      } else {
        excluded_.insert(i);
      }
    }
  }

  ResidencyProblem Problem() {
    items_.clear();
    ResidencyProblem problem = {.steps = static_cast<int>(segments_.size())};
    for (const machine::Memory& memory : searcher_.target().memories) {
      problem.capacity_bytes.push_back(UsableBytes(memory));
    }
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      const int number = static_cast<int>(i);
      if (pinned_.count(number) != 0 || excluded_.count(number) != 0) continue;
      if (IsInside(candidate, segments_[At(segment_of_[At(candidate.first_group)])])) continue;
      Holdable item = {.name = graph_.values[At(candidate.root)].name,
                       .bytes = candidate.reserved_bytes,
                       .first_step = segment_of_[At(candidate.first_group)],
                       .end_step = segment_of_[At(candidate.end_group - 1)] + 1,
                       .gains = Gains(candidate),
                       .is_one_step = candidate.is_one_step};
      for (const int m : candidate.memories) {
        if (rules_.forbidden.count({candidate.root, m}) == 0) item.memories.push_back(m);
      }
      if (item.memories.empty()) continue;
      items_.push_back(static_cast<int>(i));
      problem.items.push_back(std::move(item));
    }
    for (size_t i = 0; i < items_.size(); ++i) problem.items[i].over = ItemOf(OverOf(items_[i]));
    problem.cost = [this](int step, const Holding& holding) {
      const Segment& segment = segments_[At(step)];
      return segment.lines == 0 ? GroupCost(segment.groups.first, holding)
                                : CascadeCost(segment, holding);
    };
    return problem;
  }

  // The candidate whose place this one may take, -1: none. A cascade runs its groups in turns.
  int OverOf(int i) const {
    const Candidate& candidate = candidates_[At(i)];
    const bool alone = segments_[At(segment_of_[At(candidate.first_group)])].lines == 0;
    return alone ? candidate.over : -1;
  }

  // The problem's item that is this candidate, or -1.
  int ItemOf(int candidate) const {
    const auto it = std::lower_bound(items_.begin(), items_.end(), candidate);
    const bool is_one = it != items_.end() && *it == candidate;
    return is_one ? static_cast<int>(it - items_.begin()) : -1;
  }

  double Cost(int g, const machine::Counters& counters) const {
    return AdditiveCost(counters, nests_[At(g)], searcher_.target(), searcher_.objective());
  }
  double GroupCost(int g, const Holding& holding) {
    const SearchResult* result = Mapped(At(g), holding);
    return result == nullptr ? kImpossible : Cost(g, result->predicted);
  }
  double CascadeCost(const Segment& segment, const Holding& holding) {
    const CascadePlan* plan = Cascaded(segment, holding);
    if (plan == nullptr) return kImpossible;
    double cost = 0;
    for (size_t i = 0; i < plan->predicted.size(); ++i) {
      cost += Cost(segment.groups.first + static_cast<int>(i), plan->predicted[i]);
    }
    return cost;
  }

  // What its transfers cost the group where the bus is what it waits for.
  std::vector<std::pair<int, double>> Gains(const Candidate& candidate) {
    std::vector<std::pair<int, double>> gains;  // by segment
    const ValueFlow& flow = flows_.at(candidate.root);
    std::set<int> groups(flow.writers.begin(), flow.writers.end());
    groups.insert(flow.readers.begin(), flow.readers.end());
    for (const int g : groups) {
      const SearchResult* none = Mapped(At(g), {});
      const ir::Nest& nest = nests_[At(g)];
      int64_t bytes = 0;
      for (const ir::Operand& operand : nest.operands) {
        if (RootOf(graph_, operand) == candidate.root) bytes += DenseBytes(operand);
      }
      const double gain = Gain(At(g), none, static_cast<double>(bytes));
      if (!gains.empty() && gains.back().first == segment_of_[At(g)]) {
        gains.back().second += gain;
      } else {
        gains.emplace_back(segment_of_[At(g)], gain);
      }
    }
    return gains;
  }

  double Gain(size_t g, const SearchResult* none, double bytes) const {
    const machine::Target& target = searcher_.target();
    const machine::Rational rate = target.dram.bytes_per_cycle;
    const double bus =
        bytes * static_cast<double>(rate.denominator) / static_cast<double>(rate.numerator);
    const double idle = static_cast<double>(none->predicted.cycles -
                                            ComputeCycles(nests_[g], none->mapping, target));
    switch (searcher_.objective()) {
      case Objective::kTraffic:
        return bytes;
      case Objective::kLatency:
        return std::min(bus, idle) + 1e-6 * bytes;
      case Objective::kEnergy:
      case Objective::kEdp:
        return bytes * target.dram.energy_pj_per_byte;
      case Objective::kBalanced:
        break;
    }
    return std::min(bus, idle) + 0.05 * bus;
  }

  // Which root stays whole in which memory while a segment runs, and the bytes of each memory that
  // are taken: by what the solver holds and what is pinned.
  struct Taken {
    std::map<ir::ValueId, int> whole_in;  // of the roots that the segment touches
    std::vector<int64_t> bytes;
  };

  Taken TakenBy(const Holding& holding, GroupSpan groups) const {
    Taken taken;
    taken.bytes.assign(holding.bytes.begin(), holding.bytes.end());
    taken.bytes.resize(searcher_.target().memories.size(), 0);
    for (const Held& h : holding.touched) {
      taken.whole_in[candidates_[At(items_[At(h.item)])].root] = h.memory;
    }
    for (const auto& [i, memory] : pinned_) {
      const Candidate& candidate = candidates_[At(i)];
      if (candidate.end_group <= groups.first || candidate.first_group >= groups.end) continue;
      const auto over = pinned_.find(OverOf(i));
      const bool shares =
          over != pinned_.end() && over->second == memory && groups.first == candidate.first_group;
      if (!shares) taken.bytes[At(memory)] += candidate.reserved_bytes;
      if (Touches(candidate.root, groups)) taken.whole_in[candidate.root] = memory;
    }
    return taken;
  }

  // The group's mapping with these items (and what is pinned) held; null: does not fit.
  const SearchResult* Mapped(size_t g, const Holding& holding) {
    const ir::Nest& nest = nests_[g];
    const int group = static_cast<int>(g);
    const auto [whole_in, reserved] = TakenBy(holding, {group, group + 1});
    std::vector<int> resident_in(nest.operands.size(), -1);
    for (size_t o = 0; o < nest.operands.size(); ++o) {
      const auto it = whole_in.find(RootOf(graph_, nest.operands[o]));
      if (it != whole_in.end()) resident_in[o] = it->second;
    }
    const GivenMapping* given = GivenFor(g);
    if (given != nullptr && !rules_.given_is_start) {
      return Resolve(*given, g, resident_in, reserved);
    }
    for (size_t m = 0; m < reserved.size(); ++m) {
      if (reserved[m] > UsableBytes(searcher_.target().memories[m])) return nullptr;
    }
    const SearchResult* found = costs_.Find(g, resident_in, reserved);
    if (given == nullptr) return found;
    const SearchResult* start = Resolve(InOnePlace(*given, nest), g, resident_in, reserved);
    given_fault_ = Status();
    if (start == nullptr || found == nullptr) return start == nullptr ? found : start;
    return Cost(group, start->predicted) < Cost(group, found->predicted) ? start : found;
  }

  // A mapping for a finer cut: what two scratchpads held for each other may be in one now.
  static GivenMapping InOnePlace(GivenMapping given, const ir::Nest& nest) {
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

  const GivenMapping* GivenFor(size_t g) const {
    if (rules_.given == nullptr) return nullptr;
    const auto it = rules_.given->groups.find(graph_.nodes[g].name);
    return it == rules_.given->groups.end() ? nullptr : &it->second;
  }

  // The given mapping with these residents; null (and a fault) if it is illegal.
  const SearchResult* Resolve(const GivenMapping& given, size_t g,
                              const std::vector<int>& resident_in,
                              const std::vector<int64_t>& reserved) {
    const std::string where = "group '" + graph_.nodes[g].name + "'";
    const Result<Mapping> mapping = ResolveMapping(given, nests_[g], searcher_.target(), reserved);
    if (!mapping.ok()) {
      given_fault_ = mapping.status().At(where);
      return nullptr;
    }
    for (size_t o = 0; o < resident_in.size(); ++o) {
      const OperandPlace& place = mapping->operands[o];
      if ((place.resident ? place.memory : place.source) != resident_in[o]) {
        given_fault_ = Usage(where, ": operands[", o, "] is ", StaysOnChip(place) ? "" : "not ",
                             "resident, which does not agree with 'values'");
        return nullptr;
      }
    }
    return searcher_.Keep(nests_[g], *mapping);
  }

  // The question about a segment while these items are held.
  struct Question {
    std::vector<Held> touched;
    std::vector<int64_t> bytes;
    operator Holding() const { return {touched, bytes}; }  // NOLINT: it is one
  };
  Question QuestionOf(GroupSpan groups, std::span<const Held> held) const {
    Question question;
    question.bytes.assign(searcher_.target().memories.size(), 0);
    for (const Held& h : held) {
      const Candidate& candidate = candidates_[At(items_[At(h.item)])];
      const bool begins = groups.first == candidate.first_group && groups.end == groups.first + 1;
      const Held over = {begins ? ItemOf(OverOf(items_[At(h.item)])) : -1, h.memory};
      if (std::find(held.begin(), held.end(), over) == held.end())
        question.bytes[At(h.memory)] += candidate.reserved_bytes;
      if (Touches(candidate.root, groups)) question.touched.push_back(h);
    }
    return question;
  }

  // Of each group, what is held during it.
  std::vector<std::vector<Held>> HeldByGroup(const ResidencyResult& result) const {
    std::vector<std::vector<Held>> held(nests_.size());
    for (size_t i = 0; i < result.memory.size(); ++i) {
      if (result.memory[i] < 0) continue;
      const Candidate& candidate = candidates_[At(items_[i])];
      const GroupSpan life = LifeOfCandidate(candidate);
      for (int g = life.first; g < life.end; ++g) {
        held[At(g)].push_back({static_cast<int>(i), result.memory[i]});
      }
    }
    return held;
  }

  // A value lives as long as the cascades in which it is made or read.
  GroupSpan LifeOfCandidate(const Candidate& candidate) const {
    return {segments_[At(segment_of_[At(candidate.first_group)])].groups.first,
            segments_[At(segment_of_[At(candidate.end_group - 1)])].groups.end};
  }

  ResidencyPlan Write(const ResidencyResult& result) {
    ResidencyPlan plan;
    for (size_t i = 0; i < result.memory.size(); ++i) {
      if (result.memory[i] < 0) continue;
      const int over = ItemOf(OverOf(items_[i]));
      const bool takes_over = over >= 0 && result.memory[At(over)] == result.memory[i];
      AddResident(items_[i], result.memory[i], takes_over, &plan);
    }
    for (const auto& [i, memory] : pinned_) {
      const auto over = pinned_.find(OverOf(i));
      AddResident(i, memory, over != pinned_.end() && over->second == memory, &plan);
    }
    const std::vector<std::vector<Held>> held = HeldByGroup(result);
    for (const Segment& segment : segments_) {
      const int first = segment.groups.first;
      const Question question = QuestionOf(segment.groups, held[At(first)]);
      if (segment.lines == 0) {
        plan.mappings.push_back(Mapped(At(first), question));
        continue;
      }
      const CascadePlan* cascade = Cascaded(segment, question);
      DLA_CHECK(cascade != nullptr, "a cascade that was planned does not fit");
      plan.cascades.push_back(cascade->cascade);
      plan.residents.insert(plan.residents.end(), cascade->rings.begin(), cascade->rings.end());
      for (size_t i = 0; i < cascade->mappings.size(); ++i) {
        plan.mappings.push_back(searcher_.Keep(nests_[At(first) + i], cascade->mappings[i]));
      }
    }
    return plan;
  }

  void AddResident(int i, int memory, bool takes_over, ResidencyPlan* plan) const {
    const Candidate& candidate = candidates_[At(i)];
    const GroupSpan life = LifeOfCandidate(candidate);
    plan->residents.push_back(
        {.root = candidate.root,
         .memory = memory,
         .bytes = candidate.bytes,
         .first_group = life.first,
         .end_group = life.end,
         .over = takes_over ? candidates_[At(candidate.over)].root : ir::kNoValue});
  }

  // --- Cascades ---

  bool MayCascade() const {
    const ResidencyPolicy policy = rules_.options.policy;
    const bool chooses = policy == ResidencyPolicy::kBest || policy == ResidencyPolicy::kExact ||
                         policy == ResidencyPolicy::kInfinite;
    const bool given = rules_.given != nullptr && (rules_.given->cascades || rules_.given->values);
    return rules_.cascades && chooses && !given;
  }

  // These cascades, every other group alone.
  Status SetSegments(std::vector<Segment> cascades) {
    DLA_ASSIGN_OR_RETURN(segments_,
                         SplitIntoSegments(std::move(cascades), static_cast<int>(nests_.size())));
    NumberSegments();
    for (const Segment& segment : segments_) {
      if (segment.lines != 0 && Cascaded(segment, {}) == nullptr) return NoRoomFor(segment);
    }
    return Status();
  }

  void NumberSegments() {
    segment_of_.resize(nests_.size());
    for (size_t s = 0; s < segments_.size(); ++s) {
      for (int g = segments_[s].groups.first; g < segments_[s].groups.end; ++g) {
        segment_of_[At(g)] = static_cast<int>(s);
      }
    }
  }

  Status NoRoomFor(const Segment& segment) const {
    const std::string& first = graph_.nodes[At(segment.groups.first)].name;
    if (segment.lines == 0) return Usage("group '", first, "': its given mapping does not fit");
    return Usage("cascade of groups '", first, "' to '",
                 graph_.nodes[At(segment.groups.end - 1)].name, "' in stripes of ", segment.lines,
                 " lines: ",
                 cascades_.IsChain(segment.groups)
                     ? "it does not fit into the scratchpads"
                     : "the groups are no chain of windows over lines, each made and read inside");
  }

  // Made and last read within the segment.
  static bool IsInside(const Candidate& candidate, const Segment& segment) {
    return segment.lines != 0 && candidate.first_group >= segment.groups.first &&
           candidate.end_group <= segment.groups.end;
  }

  // The cascade with these items (and what is pinned) held; null: does not fit.
  const CascadePlan* Cascaded(const Segment& segment, const Holding& holding) {
    const auto& memories = searcher_.target().memories;
    auto [whole_in, reserved] = TakenBy(holding, segment.groups);
    for (size_t m = 0; m < memories.size(); ++m) {
      const int64_t usable = UsableBytes(memories[m]);
      reserved[m] += usable * rules_.cascade_slack / 64;
      if (reserved[m] > usable) return nullptr;
    }
    const auto [it, is_new] = cascade_plans_.try_emplace(
        PlanKey(segment.groups.first, segment.groups.end, segment.lines, whole_in, reserved));
    if (is_new) it->second = cascades_.Plan(segment.groups, segment.lines, whole_in, reserved);
    return it->second ? &*it->second : nullptr;
  }

  bool Touches(ir::ValueId root, GroupSpan groups) const {
    const ValueFlow& flow = flows_.at(root);
    const auto inside = [&](int g) { return groups.first <= g && g < groups.end; };
    return std::any_of(flow.writers.begin(), flow.writers.end(), inside) ||
           std::any_of(flow.readers.begin(), flow.readers.end(), inside);
  }

  // What stays whole takes the room of cascades and the other way round: cascades are chosen beside
  // what is held, and beside nothing; the cheaper plan is taken.
  ResidencyResult CascadeFromBothEnds(ResidencyResult result) {
    // Beside nothing every chain is worth trying, which takes long.
    constexpr size_t kMostGroups = 500;
    if (nests_.size() > kMostGroups) return AddCascades(std::move(result));
    ResidencyResult nothing = result;
    std::fill(nothing.memory.begin(), nothing.memory.end(), -1);
    nothing.cost = result.cost_of_none;
    const std::vector<Segment> alone = segments_;
    const std::vector<int> all_items = items_;
    result = AddCascades(std::move(result));
    std::vector<Segment> segments = std::exchange(segments_, alone);
    std::vector<int> items = std::exchange(items_, all_items);
    NumberSegments();
    nothing = AddCascades(std::move(nothing));
    if (nothing.cost < result.cost) return nothing;
    segments_ = std::move(segments);
    items_ = std::move(items);
    NumberSegments();
    return result;
  }

  // Chooses cascades beside what is held, decides anew what is held beside these, and so on.
  ResidencyResult AddCascades(ResidencyResult result) {
    constexpr int kRounds = 4;
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<Segment> before = segments_;
      const std::vector<int> items = items_;
      const bool set = SetSegments(ChooseCascades(Choice(result))).ok();
      if (set && segments_ != before) {
        ResidencyResult next = SolveResidency(Problem(), rules_.options);
        if (next.failed_step < 0 && next.cost < result.cost) {
          result = std::move(next);
          continue;
        }
      }
      segments_ = before;
      NumberSegments();
      items_ = items;
      break;
    }
    return result;
  }

  CascadeChoice Choice(const ResidencyResult& result) {
    CascadeChoice choice = {
        .graph = graph_, .nests = nests_, .flows = flows_, .planner = cascades_};
    for (const int i : items_) {
      const Candidate& c = candidates_[At(i)];
      choice.items.push_back({c.root, {c.first_group, c.end_group}});
    }
    constexpr size_t kSmall = 100;  // groups; in larger graphs every chain takes long
    choice.try_every_chain = nests_.size() <= kSmall;
    choice.held = HeldByGroup(result);
    choice.may_be_member = [this](int g) { return GivenFor(At(g)) == nullptr; };
    choice.group_cost = [this](int g, std::span<const Held> held) {
      return GroupCost(g, QuestionOf({g, g + 1}, held));
    };
    choice.moves_again = [this](int g, std::span<const Held> held) {
      const SearchResult* alone = Mapped(At(g), QuestionOf({g, g + 1}, held));
      return alone != nullptr &&
             alone->predicted.dram_bytes() > CompulsoryBytes(nests_[At(g)], alone->mapping);
    };
    choice.cascade_cost = [this](const Segment& segment, std::span<const Held> held) {
      return CascadeCost(segment, QuestionOf(segment.groups, held));
    };
    return choice;
  }

  const ir::Graph& graph_;
  const std::vector<ir::Nest>& nests_;
  const ResidencyRules& rules_;
  Searcher& searcher_;
  GroupCosts costs_;
  const ValueFlows flows_;
  const CascadePlanner cascades_;
  std::vector<Segment> segments_;  // all groups, in order
  std::vector<int> segment_of_;    // by group
  using PlanKey = std::tuple<int, int, int64_t, std::map<ir::ValueId, int>, std::vector<int64_t>>;
  std::map<PlanKey, std::optional<CascadePlan>> cascade_plans_;
  const std::vector<Candidate> candidates_;
  std::vector<int> by_root_;   // candidate, or -1
  std::map<int, int> pinned_;  // candidates that must stay, and where
  std::set<int> excluded_;     // candidates that must not stay
  std::vector<int> items_;     // the problem's items, as candidates
  Status given_fault_;
};

}  // namespace

double AdditiveCost(const machine::Counters& c, const ir::Nest& nest, const machine::Target& target,
                    Objective objective) {
  const double cycles = static_cast<double>(c.cycles);
  const double bytes = static_cast<double>(c.dram_bus_bytes());
  switch (objective) {
    case Objective::kLatency:
      return cycles + 1e-6 * bytes;
    case Objective::kTraffic:
      return bytes + 1e-6 * cycles;
    case Objective::kEnergy:
    case Objective::kEdp:
      return EnergyPj(c, target, nest.operands[0].ReadType()) + 1e-6 * cycles;
    case Objective::kBalanced:
      break;
  }
  const machine::Rational rate = target.dram.bytes_per_cycle;
  return cycles +
         0.05 * bytes * static_cast<double>(rate.denominator) / static_cast<double>(rate.numerator);
}

Result<ResidencyPlan> PlanResidency(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                                    const ResidencyRules& rules, Searcher* searcher,
                                    const std::function<void(size_t, size_t)>& progress) {
  return Planner(graph, nests, rules, searcher).Run(progress);
}

}  // namespace dla::scheduler
