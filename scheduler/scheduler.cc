#include "scheduler/scheduler.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ir/op.h"
#include "scheduler/capacity.h"
#include "scheduler/dram.h"
#include "scheduler/order.h"
#include "scheduler/overlap.h"
#include "scheduler/phases.h"
#include "scheduler/plan_problem.h"
#include "scheduler/predict.h"
#include "scheduler/residency.h"
#include "scheduler/scratchpads.h"
#include "scheduler/searcher.h"
#include "scheduler/slice_choice.h"
#include "scheduler/slices.h"
#include "scheduler/traffic_bound.h"
#include "scheduler/work.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

Result<std::vector<ir::Nest>> BuildNests(const ir::Graph& graph, MultiplyBy multiply,
                                         Searcher* searcher) {
  const machine::Target& target = searcher->target();
  std::vector<ir::Nest> nests;
  std::string problems;
  for (const ir::Node& node : graph.nodes) {
    Result<ir::Nest> nest = ir::BuildNest(graph, node);
    std::string problem = nest.ok() ? Lacking(*nest, target) : nest.status().message();
    if (!problem.empty()) {
      problems += Concat(problems.empty() ? "" : "\n", "node '", node.name, "' (", node.op,
                         ", opset ", node.opset, "): ", problem);
      continue;
    }
    for (ir::Operand& operand : nest->operands) {
      operand.is_constant = graph.values[At(operand.value)].constant != nullptr;
    }
    *nest = ChooseEngine(*nest, multiply, searcher);
    // A reduction over more than fits is cut into passes.
    if (!AllFit({*nest}, target)) {
      if (std::optional<ir::Nest> cut = CutReductions(*nest)) *nest = std::move(*cut);
    }
    nests.push_back(std::move(*nest));
  }
  if (!problems.empty()) return Unsupported(problems);
  return nests;
}

std::vector<ScheduledGroup> MakeGroups(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                                       const machine::Target& target, const ResidencyPlan& plan) {
  std::vector<ScheduledGroup> groups;
  for (size_t g = 0; g < nests.size(); ++g) {
    const ir::Node& node = graph.nodes[g];
    ScheduledGroup group = {.name = node.name,
                            .onnx_nodes = node.onnx_nodes,
                            .op = node.op,
                            .nest = nests[g],
                            .mapping = plan.mappings[g]->mapping,
                            .predicted = plan.mappings[g]->predicted};
    group.alone_cycles = group.predicted.cycles;
    group.steady = LoadsOnce(group.mapping)
                       ? Predict(group.nest, SteadyMapping(group.mapping), target)
                       : group.predicted;
    group.compulsory_bytes = CompulsoryBytes(group.nest, group.mapping);
    for (size_t c = 0; c < plan.cascades.size(); ++c) {
      const Cascade& cascade = plan.cascades[c];
      const int i = static_cast<int>(g);
      if (cascade.first_group <= i && i < cascade.end_group) group.cascade = static_cast<int>(c);
    }
    group.certificate = plan.mappings[g]->certificate;
    group.points = plan.mappings[g]->points;
    group.evaluated = plan.mappings[g]->evaluated;
    groups.push_back(std::move(group));
  }
  return groups;
}

// After `memory` could not be placed: one of its residents may not stay there any more.
Status GiveUpOne(const Schedule& schedule, int memory, ResidencyRules* rules) {
  // Without parts of lives the plan is what it would be if there were none: it is no dearer.
  const bool any = std::any_of(schedule.residents.begin(), schedule.residents.end(),
                               [](const Resident& r) { return r.through != Through(); });
  if (any && rules->parts && rules->inferences == 1 && rules->given == nullptr) {
    rules->parts = false;
    return Status();
  }
  // Cascades fill what there is to the last byte: they leave a little first, then give way.
  constexpr int kMostSlack = 8;
  const bool given = rules->given != nullptr && rules->given->cascades;
  if (!schedule.cascades.empty() && (rules->cascade_slack < kMostSlack || !given)) {
    if (rules->cascade_slack < kMostSlack) {
      ++rules->cascade_slack;
    } else {
      rules->cascades = false;
    }
    return Status();
  }
  const std::string& name = schedule.target.memories[At(memory)].name;
  const int worst = LeastWorthwhile(schedule, memory);
  DLA_CHECK(worst >= 0, "tile buffers alone were not placed in '", name, "'");
  const ir::ValueId root = schedule.residents[At(worst)].root;
  if (!rules->forbidden.insert({root, memory}).second) {
    return Usage("value '", schedule.graph.values[At(root)].name, "' cannot stay in '", name,
                 "': no addresses were found for it and the tiles beside it");
  }
  return Status();
}

// Scratchpads in which everything fits, at the energy a byte of the real ones.
machine::Target WithoutLimits(machine::Target target) {
  for (machine::Memory& memory : target.memories) memory.bytes = int64_t{1} << 30;
  return target;
}

Status TooSmall(const std::vector<ir::Nest>& nests, const machine::Target& target,
                const Status& which) {
  return DoesNotFit("does not fit '", target.name, "': ", which.message(),
                    " has no tile that is small enough; ", WhatWouldFit(nests, target));
}

// Of an inference, in the mean.
double CostOf(const ScheduledGroup& group, const Schedule& schedule) {
  const auto inferences = static_cast<double>(schedule.residency.inferences);
  const auto of = [&](const machine::Counters& counters) {
    return AdditiveCost(counters, group.nest, schedule.target, schedule.objective);
  };
  return of(group.predicted) / inferences + of(group.steady) * (inferences - 1) / inferences;
}

double TotalCost(const Schedule& schedule) {
  double cost = 0;
  for (const ScheduledGroup& group : schedule.groups) cost += CostOf(group, schedule);
  return cost;
}

// The schedule of the groups in the order of the graph's nodes; as `start` has it, if not null.
Result<Schedule> ScheduleInOrder(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                                 const ScheduleOptions& options, const GivenSchedule* start,
                                 Searcher* searcher) {
  const machine::Target& target = searcher->target();
  ResidencyRules rules = {
      .options = {.policy = options.residency},
      .cascades = options.cascades && options.search.buffers == BufferRule::kBest,
      .inferences = options.inferences,
      .pins = options.pins,
      .given = start == nullptr ? options.given : start,
      .given_is_start = start != nullptr};
  while (true) {
    Result<ResidencyPlan> plan = PlanResidency(graph, nests, rules, searcher, options.progress);
    if (!plan.ok()) {
      if (plan.status().code() != ErrorCode::kDoesNotFit) return plan.status();
      return TooSmall(nests, target, plan.status());
    }
    Schedule schedule = {
        .graph = graph, .target = target, .objective = options.objective, .search = options.search};
    schedule.groups = MakeGroups(graph, nests, target, *plan);
    for (ScheduledGroup& group : schedule.groups) ListBuffers(target, &group);
    schedule.cascades = plan->cascades;
    schedule.residents = plan->residents;
    const int memory = LayOutScratchpads(options.placement, &schedule);
    if (memory >= 0) {
      DLA_RETURN_IF_ERROR(GiveUpOne(schedule, memory, &rules));
      continue;
    }
    if (options.prefetch) {
      const auto place = [&](Schedule* s) { return LayOutScratchpads(options.placement, s) < 0; };
      OverlapGroups(place, &schedule);
    }
    schedule.residency = {.policy = options.residency,
                          .inferences = options.inferences,
                          .given_up = static_cast<int>(rules.forbidden.size()),
                          .complete = plan->complete && rules.parts && rules.forbidden.empty()};
    return schedule;
  }
}

GroupGraph Ordered(const GroupGraph& groups, const std::vector<int>& order) {
  GroupGraph ordered = {.graph = groups.graph, .nests = InOrder(groups.nests, order)};
  ordered.graph.nodes = InOrder(groups.graph.nodes, order);
  return ordered;
}

// Cut into slices and ordered as the schedule has it.
Result<GroupGraph> AsGiven(GroupGraph groups, const GivenSchedule& given,
                           const machine::Target& target) {
  for (const Slicing& slicing : given.slicings) {
    Result<GroupGraph> sliced = Slice(groups, slicing);
    if (!sliced.ok()) return sliced.status().At("slices");
    groups = std::move(*sliced);
  }
  const OrderProblem problem = OrderProblemOf(groups.graph, groups.nests, target);
  DLA_ASSIGN_OR_RETURN(const std::vector<int> order, GivenOrder(groups.graph, problem, given));
  return Ordered(groups, order);
}

// Schedules of the groups in several orders and slices; the cheapest is kept, of equals the first.
class Trial {
 public:
  Trial(const ScheduleOptions& options, Searcher* searcher)
      : options_(options), searcher_(*searcher) {}

  // The groups in their order, as it is given.
  Status TryGiven(const GroupGraph& groups, const std::vector<Slicing>& slicings) {
    DLA_ASSIGN_OR_RETURN(best_, Make(groups, slicings, nullptr));
    return Status();
  }

  // An order other than the first may fail: then it is none.
  Status TryOrder(const GroupGraph& groups, const std::vector<int>& order) {
    Result<Schedule> schedule = Make(Ordered(groups, order), {}, nullptr);
    if (!schedule.ok()) return tried_.empty() ? schedule.status() : Status();
    tried_.push_back({.order = order, .cost = std::vector<double>(order.size())});
    for (size_t i = 0; i < order.size(); ++i) {
      tried_.back().cost[At(order[i])] = CostOf(schedule->groups[i], *schedule);
    }
    if (tried_.size() == 1) {
      best_ = unsliced_ = std::move(*schedule);
    } else if (TotalCost(*schedule) < TotalCost(unsliced_)) {
      unsliced_ = std::move(*schedule);
      other_order_ = true;
    }
    return Status();
  }

  const std::vector<TriedOrder>& tried() const { return tried_; }

  // The groups cut and ordered as in `start`, with its cascades and residents; if these are
  // impossible here, that is told.
  void TryStart(const GroupGraph& groups, const GivenSchedule& start) {
    Result<Schedule> schedule = Make(groups, start.slicings, &start);
    if (schedule.ok()) {
      Keep(std::move(*schedule));
    } else {
      warnings_.push_back(schedule.status().At("--start-from is left out").message());
    }
  }

  // The best so far, with slices.
  void TrySlices() { Keep(Cut(best_)); }

  // The cheapest order of all tried, with slices if any may be, where it is not the graph's, whose
  // slices were tried before.
  void TryOtherOrder(bool slices) {
    if (other_order_) Keep(slices ? Cut(std::move(unsliced_)) : std::move(unsliced_));
  }

  // The best schedule, with all that follows from it.
  Result<Schedule> Finish(const OrderProblem& problem) {
    const OrderProblem sliced = OrderProblemOf(best_.graph, NestsOf(best_), best_.target);
    best_.order = {
        .peak_bytes = LiveBytesOf(sliced, GraphOrder(best_.groups.size())).peak,
        .graph_peak_bytes = LiveBytesOf(problem, GraphOrder(problem.before.size())).peak};
    best_.residency.bound = BoundTraffic(best_, options_.prefetch);
    DLA_RETURN_IF_ERROR(LayOutDram(&best_));
    const std::string faults = VerifySchedule(best_);
    DLA_CHECK(faults.empty(), "schedule: ", faults);
    best_.warnings = std::move(warnings_);
    return std::move(best_);
  }

 private:
  void Keep(Schedule schedule) {
    if (TotalCost(schedule) < TotalCost(best_)) best_ = std::move(schedule);
  }

  Result<Schedule> Make(const GroupGraph& groups, const std::vector<Slicing>& slicings,
                        const GivenSchedule* start) {
    Result<Schedule> schedule =
        ScheduleInOrder(groups.graph, groups.nests, options_, start, &searcher_);
    if (schedule.ok()) schedule->slicings = slicings;
    return schedule;
  }

  // The schedule cut into more slices where it costs less then.
  Schedule Cut(Schedule schedule) {
    constexpr size_t kMany = 500;  // groups; to schedule more once again takes long
    if (schedule.groups.size() > kMany) return schedule;
    for (const SlicedWay way :
         {SlicedWay::kCascade, SlicedWay::kHoped, SlicedWay::kWhole, SlicedWay::kAlone}) {
      schedule = Cut(std::move(schedule), way);
    }
    return schedule;
  }

  // Cut at all places that look worthwhile; at each of them alone; and at those where that pays,
  // added one by one as long as they pay together: the cheapest of all these.
  Schedule Cut(Schedule schedule, SlicedWay way) {
    constexpr size_t kMost = 8;  // places that are tried alone
    const GroupGraph groups = {.graph = schedule.graph, .nests = NestsOf(schedule)};
    const std::vector<Slicing> before = schedule.slicings;
    double least = TotalCost(schedule);
    const auto cost_with = [&](const std::vector<Slicing>& slicings) {
      Result<Schedule> cut = MakeSliced(groups, before, slicings);
      if (!cut.ok()) return kImpossible;
      const double cost = TotalCost(*cut);
      if (cost < TotalCost(schedule)) schedule = std::move(*cut);
      return cost;
    };
    std::vector<Slicing> all, taken;
    for (const ChosenSlicing& choice : ChooseSlices(schedule, way)) all.push_back(choice.slicing);
    if (all.size() > 1 && way != SlicedWay::kAlone) cost_with(all);
    all.resize(std::min(all.size(), kMost));
    std::vector<std::pair<double, Slicing>> paying;
    for (const Slicing& slicing : all) {
      const double cost = cost_with({slicing});
      if (cost < least) paying.emplace_back(cost, slicing);
    }
    std::stable_sort(paying.begin(), paying.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [alone, slicing] : paying) {
      taken.push_back(slicing);
      const double cost = taken.size() == 1 ? alone : cost_with(taken);
      if (cost < least) {
        least = cost;
      } else {
        taken.pop_back();
      }
    }
    return schedule;
  }

  // Cuts groups that are what `before` made of the passes' ones. An error if they cannot be cut so
  // (a slice has the name of another group by now, perhaps) or there were many trials before.
  Result<Schedule> MakeSliced(GroupGraph groups, std::vector<Slicing> before,
                              const std::vector<Slicing>& slicings) {
    for (const Slicing& slicing : slicings) {
      DLA_ASSIGN_OR_RETURN(groups, Slice(groups, slicing));
      before.push_back(slicing);
    }
    constexpr size_t kMostWork = 4000;
    work_ += groups.nests.size();
    if (work_ > kMostWork) return DoesNotFit("the time for trials of slices");
    return Make(groups, before, nullptr);
  }

  const ScheduleOptions& options_;
  Searcher& searcher_;
  std::vector<TriedOrder> tried_;
  Schedule unsliced_;         // the cheapest of the tried orders
  bool other_order_ = false;  // not the graph's
  size_t work_ = 0;           // groups of all trials of slices
  Schedule best_;
  std::vector<std::string> warnings_;
};

// Slices are chosen where cascades may be, of values that nobody has pinned.
bool MaySlice(const ScheduleOptions& options) {
  const bool chooses = options.residency == ResidencyPolicy::kBest ||
                       options.residency == ResidencyPolicy::kInfinite;
  return options.slices && options.cascades && chooses && options.pins == nullptr &&
         options.inferences == 1 && options.search.buffers == BufferRule::kBest;
}

Result<Schedule> ScheduleOn(const machine::Target& target, const ir::Graph& graph,
                            const ScheduleOptions& options) {
  Searcher searcher(target, options.objective, options.search, options.cache);
  GroupGraph groups = {.graph = graph};
  DLA_ASSIGN_OR_RETURN(groups.nests, BuildNests(graph, options.multiply, &searcher));
  const OrderProblem problem = OrderProblemOf(graph, groups.nests, target);
  Trial trial(options, &searcher);
  if (options.given != nullptr) {
    DLA_ASSIGN_OR_RETURN(const GroupGraph given, AsGiven(groups, *options.given, target));
    DLA_RETURN_IF_ERROR(trial.TryGiven(given, options.given->slicings));
    return trial.Finish(problem);
  }
  DLA_RETURN_IF_ERROR(trial.TryOrder(groups, GraphOrder(groups.nests.size())));
  for (const GivenSchedule* start : options.starts) {
    DLA_ASSIGN_OR_RETURN(const GroupGraph started, AsGiven(groups, *start, target));
    trial.TryStart(started, *start);
  }
  const bool slices = MaySlice(options);
  if (slices) trial.TrySlices();
  // Where nothing stays on chip, any order is as good as the graph's.
  if (options.order == OrderRule::kBest && options.residency != ResidencyPolicy::kNone) {
    for (const std::vector<int>& order : OrdersToTry(problem)) {
      DLA_RETURN_IF_ERROR(trial.TryOrder(groups, order));
    }
    const std::optional<std::vector<int>> mixed = MixOrders(problem, trial.tried());
    if (mixed) DLA_RETURN_IF_ERROR(trial.TryOrder(groups, *mixed));
    trial.TryOtherOrder(slices);
  }
  return trial.Finish(problem);
}

}  // namespace

namespace {

Result<Schedule> ScheduleFor(const ir::Graph& graph, const machine::Target& target,
                             const ScheduleOptions& options) {
  if (options.residency != ResidencyPolicy::kInfinite) return ScheduleOn(target, graph, options);
  // What was found for the real sizes is one of the choices without limits.
  const machine::Target unlimited = WithoutLimits(target);
  DLA_ASSIGN_OR_RETURN(Schedule schedule, ScheduleOn(unlimited, graph, options));
  Result<Schedule> real = ScheduleOn(target, graph, options);
  if (real.ok() && TotalCost(*real) < TotalCost(schedule)) {
    real->target = unlimited;
    real->residency.bound = schedule.residency.bound;
    return real;
  }
  return schedule;
}

// Moves everything in each scratchpad to where its free piece lies, and gives back the whole sizes.
void MoveToPieces(const machine::Target& target, const std::vector<FreePiece>& pieces,
                  Schedule* schedule) {
  for (Resident& resident : schedule->residents) {
    resident.address += pieces[At(resident.memory)].begin;
  }
  for (ScheduledGroup& group : schedule->groups) {
    for (TileBuffer& buffer : group.buffers) buffer.address += pieces[At(buffer.memory)].begin;
  }
  for (size_t m = 0; m < pieces.size(); ++m) {
    schedule->target.memories[m].bytes += target.memories[m].bytes - pieces[m].bytes;
  }
}

}  // namespace

Result<Schedule> MakeSchedule(const ir::Graph& graph, const machine::Target& target,
                              const ScheduleOptions& options) {
  if (options.pins == nullptr || options.pins->reserve.empty()) {
    return ScheduleFor(graph, target, options);
  }
  // Planned for what is left, as if it were all.
  DLA_ASSIGN_OR_RETURN(const std::vector<FreePiece> pieces, FreePieces(target, *options.pins));
  machine::Target left = target;
  for (size_t m = 0; m < pieces.size(); ++m) left.memories[m].bytes = pieces[m].bytes;
  Result<Schedule> schedule = ScheduleFor(graph, left, options);
  if (!schedule.ok()) return schedule.status().At("beside the reserved regions");
  MoveToPieces(target, pieces, &*schedule);
  const std::string faults = VerifySchedule(*schedule);
  DLA_CHECK(faults.empty(), "schedule: ", faults);
  return schedule;
}

Result<std::string> MakePlanProblem(const ir::Graph& graph, const machine::Target& target,
                                    const ScheduleOptions& options) {
  Searcher searcher(target, options.objective, options.search, options.cache);
  DLA_ASSIGN_OR_RETURN(const std::vector<ir::Nest> nests,
                       BuildNests(graph, options.multiply, &searcher));
  const Result<PlanProblem> problem = PlanProblemOf(graph, nests, &searcher);
  if (!problem.ok()) return TooSmall(nests, target, problem.status());
  return PlanProblemJson(*problem);
}

}  // namespace dla::scheduler
