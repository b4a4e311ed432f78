#include "scheduler/residency.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "scheduler/cascade.h"
#include "scheduler/cascade_choice.h"
#include "scheduler/gain.h"
#include "scheduler/held_mappings.h"
#include "scheduler/predict.h"
#include "scheduler/residency_candidates.h"
#include "scheduler/value_flow.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

constexpr size_t kSmall = 100;  // groups; to try every chain of more takes long

class Planner {
 public:
  Planner(const ir::Graph& graph, const std::vector<ir::Nest>& nests, const ResidencyRules& rules,
          Searcher* searcher)
      : graph_(graph),
        nests_(nests),
        rules_(rules),
        searcher_(*searcher),
        mappings_(graph, nests, searcher),
        flows_(FlowsOf(graph, nests)),
        cascades_(graph, nests, flows_, searcher->target()),
        candidates_(CandidatesOf(graph, nests, flows_, searcher->target(), rules.inferences > 1)) {
    by_root_.assign(graph.values.size(), -1);
    for (size_t i = candidates_.size(); i-- > 0;) {
      by_root_[At(candidates_[i].root)] = static_cast<int>(i);
    }
  }

  Result<ResidencyPlan> Run(const std::function<void(size_t, size_t)>& progress) {
    DLA_ASSIGN_OR_RETURN(segments_, SplitIntoSegments(GivenCascades(graph_, rules_.given),
                                                      static_cast<int>(nests_.size())));
    NumberSegments();
    DLA_RETURN_IF_ERROR(ReadGiven());
    if (rules_.pins != nullptr) {
      for (const auto& [value, memory] : rules_.pins->hold) {
        DLA_RETURN_IF_ERROR(Pin({.name = value, .memory = memory}));
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
    complete_ = result.complete && !MayCascade();
    if (result.failed_step >= 0) return NoRoomFor(segments_[At(result.failed_step)]);
    if (MayCascade()) result = CascadeFromBothEnds(std::move(result));
    return Write(AddParts(std::move(result)));
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
    for (const GivenValue& value : *rules_.given->values) DLA_RETURN_IF_ERROR(Pin(value));
    return Status();
  }

  // Holds the part of the value's life that is given, else the first one that there is.
  Status Pin(const GivenValue& value) {
    const int m = searcher_.target().MemoryIndex(value.memory);
    if (m < 0)
      return Usage("value '", value.name, "': there is no scratchpad '", value.memory, "'");
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      if (graph_.values[At(candidate.root)].name != value.name) continue;
      const GroupSpan life = LifeOfCandidate(candidate);
      const bool is_meant = value.first_group < 0 ||
                            (life.first == value.first_group && life.end == value.end_group &&
                             candidate.through == value.through);
      const auto& memories = candidate.memories;
      if (!is_meant || std::find(memories.begin(), memories.end(), m) == memories.end()) continue;
      pinned_[static_cast<int>(i)] = m;
      return Status();
    }
    return Usage("value '", value.name, "' cannot stay in '", value.memory,
                 "': only a value that groups make and read, or that several read, can stay, in a ",
                 "scratchpad that holds its classes and is large enough");
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
      } else if (place.buffers != "resident and in DRAM") {
        for (size_t c = 0; c < candidates_.size(); ++c) {
          const std::vector<int>& touches = candidates_[c].touches;
          const bool touched = std::binary_search(touches.begin(), touches.end(), int(g));
          if (candidates_[c].root == root && touched) excluded_.insert(static_cast<int>(c));
        }
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
      if (!parts_ && !candidate.is_whole()) continue;
      if (IsPinned(candidate.root) || excluded_.count(number) != 0) continue;
      const Segment& segment = segments_[At(segment_of_[At(candidate.first_group)])];
      if (segment.lines != 0 && candidate.end_group <= segment.groups.end) continue;
      Holdable item = {.name = graph_.values[At(candidate.root)].name,
                       .bytes = candidate.reserved_bytes,
                       .first_step = segment_of_[At(candidate.first_group)],
                       .end_step = segment_of_[At(candidate.end_group - 1)] + 1,
                       .gains = Gains(candidate),
                       .is_one_step = candidate.is_one_step,
                       .is_extra = !candidate.is_whole()};
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

  bool IsPinned(ir::ValueId root) const {
    return std::any_of(pinned_.begin(), pinned_.end(),
                       [&](const auto& pin) { return candidates_[At(pin.first)].root == root; });
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
    if (result == nullptr) return kImpossible;
    const double first = Cost(g, result->predicted);
    if (!LoadsOnce(result->mapping)) return first;
    const double steady =
        Cost(g, Predict(nests_[At(g)], SteadyMapping(result->mapping), searcher_.target()));
    return steady + (first - steady) / static_cast<double>(rules_.inferences);
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
    for (const int g : candidate.touches) {
      const SearchResult* none = Mapped(At(g), {});
      const ir::Nest& nest = nests_[At(g)];
      int64_t bytes = 0;
      for (const ir::Operand& operand : nest.operands) {
        if (RootOf(graph_, operand) == candidate.root) bytes += DenseBytes(operand);
      }
      const bool moves = (candidate.through.loaded && g == candidate.touches.front()) ||
                         (candidate.through.stored && Writes(g, candidate.root));
      const double gain = moves ? 0
                                : TransferGain(nest, *none, static_cast<double>(bytes),
                                               searcher_.target(), searcher_.objective());
      if (!gains.empty() && gains.back().first == segment_of_[At(g)]) {
        gains.back().second += gain;
      } else {
        gains.emplace_back(segment_of_[At(g)], gain);
      }
    }
    return gains;
  }

  bool Writes(int g, ir::ValueId root) const {
    const std::vector<int>& writers = flows_.at(root).writers;
    return std::binary_search(writers.begin(), writers.end(), g);
  }

  // What stays while a segment runs, and the bytes of each memory that are taken: by what the
  // solver holds and what is pinned.
  struct Taken {
    StayingValues values;  // of the roots that the segment touches
    std::vector<int64_t> bytes;
    bool clash = false;  // two parts of one value's life meet
  };

  void Add(const Candidate& candidate, int memory, GroupSpan groups, Taken* taken) const {
    Staying staying = {.memory = memory, .once = candidate.through.kept};
    for (int g = groups.first; g < groups.end; ++g) {
      if (candidate.is_loaded() && g == candidate.touches.front()) staying.is_loaded = true;
      if (candidate.through.stored && Writes(g, candidate.root)) staying.is_stored = true;
    }
    taken->clash = !taken->values.emplace(candidate.root, staying).second || taken->clash;
  }

  Taken TakenBy(const Holding& holding, GroupSpan groups) const {
    Taken taken;
    taken.bytes.assign(holding.bytes.begin(), holding.bytes.end());
    taken.bytes.resize(searcher_.target().memories.size(), 0);
    for (const Held& h : holding.touched) {
      Add(candidates_[At(items_[At(h.item)])], h.memory, groups, &taken);
    }
    for (const auto& [i, memory] : pinned_) {
      const Candidate& candidate = candidates_[At(i)];
      if (candidate.end_group <= groups.first || candidate.first_group >= groups.end) continue;
      const auto over = pinned_.find(OverOf(i));
      const bool shares =
          over != pinned_.end() && over->second == memory && groups.first == candidate.first_group;
      if (!shares) taken.bytes[At(memory)] += candidate.reserved_bytes;
      if (candidate.IsTouchedBy(groups)) Add(candidate, memory, groups, &taken);
    }
    return taken;
  }

  // The group's mapping with these items (and what is pinned) held; null: does not fit.
  const SearchResult* Mapped(size_t g, const Holding& holding) {
    const int group = static_cast<int>(g);
    const Taken taken = TakenBy(holding, {group, group + 1});
    if (taken.clash) return nullptr;
    const GivenMapping* given = GivenFor(g);
    const std::vector<int> resident_in = mappings_.ResidentIn(g, taken.values);
    const auto resolved = [&](const GivenMapping& mapping) {
      const SearchResult* result = Resolve(mapping, g, resident_in, taken.bytes);
      return mappings_.WithTransfers(g, result, taken.values);
    };
    if (given != nullptr && !rules_.given_is_start) return resolved(*given);
    const SearchResult* found = mappings_.Find(g, taken.values, taken.bytes);
    if (given == nullptr) return found;
    const SearchResult* start = resolved(InOnePlace(*given, nests_[g]));
    given_fault_ = Status();
    if (start == nullptr || found == nullptr) return start == nullptr ? found : start;
    return Cost(group, start->predicted) < Cost(group, found->predicted) ? start : found;
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
      if (candidate.IsTouchedBy(groups)) question.touched.push_back(h);
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
    ResidencyPlan plan = {.complete = complete_};
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
         .over = takes_over ? candidates_[At(candidate.over)].root : ir::kNoValue,
         .through = candidate.through});
  }

  // --- Cascades ---

  bool MayCascade() const {
    const bool chooses = rules_.options.policy >= ResidencyPolicy::kBest;
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

  // Which groups run together, and what may be held beside them.
  struct Setting {
    std::vector<Segment> segments;
    std::vector<int> items;
  };
  void Return(Setting to) {
    segments_ = std::move(to.segments);
    items_ = std::move(to.items);
    NumberSegments();
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

  // The cascade with these items (and what is pinned) held; null: does not fit.
  const CascadePlan* Cascaded(const Segment& segment, const Holding& holding) {
    const auto& memories = searcher_.target().memories;
    const Taken taken = TakenBy(holding, segment.groups);
    // Stripes load and store lines of rings, not whole values.
    bool moves = taken.clash;
    std::map<ir::ValueId, int> whole_in;
    for (const auto& [root, staying] : taken.values) {
      moves = moves || staying.is_loaded || staying.is_stored;
      whole_in[root] = staying.memory;
    }
    if (moves) return nullptr;
    std::vector<int64_t> reserved = taken.bytes;
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

  // What stays whole takes the room of cascades and the other way round: cascades are chosen beside
  // what is held, and beside nothing; the cheaper plan is taken.
  ResidencyResult CascadeFromBothEnds(ResidencyResult result) {
    // Beside nothing every chain is worth trying, which takes long.
    constexpr size_t kMostGroups = 500;
    if (nests_.size() > kMostGroups) return AddCascades(std::move(result));
    ResidencyResult nothing = result;
    std::fill(nothing.memory.begin(), nothing.memory.end(), -1);
    nothing.cost = result.cost_of_none;
    const Setting alone = {segments_, items_};
    result = AddCascades(std::move(result));
    Setting beside = {segments_, items_};
    Return(alone);
    nothing = AddCascades(std::move(nothing));
    if (nothing.cost < result.cost) return nothing;
    Return(std::move(beside));
    return result;
  }

  // Decides anew with parts of lives and values that are loaded; never dearer than the plan without
  // them. These and cascades are in each other's way: cascades are chosen beside them, too.
  ResidencyResult AddParts(ResidencyResult result) {
    if (!rules_.parts) return result;
    parts_ = true;
    Setting best = {segments_, items_};
    ResidencyResult with = SolveResidency(Problem(), rules_.options);
    complete_ = complete_ && with.complete;
    if (with.failed_step < 0 && with.cost < result.cost) {
      result = std::move(with);
      best.items = items_;
    }
    items_ = best.items;
    if ((rules_.inferences == 1 && nests_.size() > kSmall) || !MayCascade()) return result;
    segments_ = *SplitIntoSegments({}, static_cast<int>(nests_.size()));  // each group alone
    NumberSegments();
    with = AddCascades(SolveResidency(Problem(), rules_.options));
    if (with.failed_step < 0 && with.cost < result.cost) return with;
    Return(std::move(best));
    return result;
  }

  // Chooses cascades beside what is held, decides anew what is held beside these, and so on.
  ResidencyResult AddCascades(ResidencyResult result) {
    constexpr int kRounds = 4;
    for (int round = 0; round < kRounds; ++round) {
      Setting before = {segments_, items_};
      const bool set = SetSegments(ChooseCascades(Choice(result))).ok();
      if (set && segments_ != before.segments) {
        ResidencyResult next = SolveResidency(Problem(), rules_.options);
        if (next.failed_step < 0 && next.cost < result.cost) {
          result = std::move(next);
          continue;
        }
      }
      Return(std::move(before));
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
  HeldMappings mappings_;
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
  bool parts_ = false;         // are parts of lives among them?
  bool complete_ = false;      // everything was looked at
  Status given_fault_;
};

}  // namespace

Result<ResidencyPlan> PlanResidency(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                                    const ResidencyRules& rules, Searcher* searcher,
                                    const std::function<void(size_t, size_t)>& progress) {
  return Planner(graph, nests, rules, searcher).Run(progress);
}

}  // namespace dla::scheduler
