#include "scheduler/scheduler.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "ir/op.h"
#include "scheduler/capacity.h"
#include "scheduler/dram.h"
#include "scheduler/phases.h"
#include "scheduler/placement.h"
#include "scheduler/predict.h"
#include "scheduler/residency.h"
#include "scheduler/searcher.h"
#include "scheduler/transfers.h"
#include "scheduler/work.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// Does the target do this nest? An empty text, or what it lacks.
std::string Lacking(const ir::Nest& nest, const machine::Target& target) {
  if (nest.anchor == ir::Anchor::kContraction) {
    const ElementType input = nest.operands[ir::Nest::kInput].ReadType();
    const ElementType weight = nest.operands[ir::Nest::kWeight].ReadType();
    if (target.array.rates.count({input, weight}) == 0 ||
        target.array.accumulator.count(input) == 0) {
      std::string pairs;
      for (const auto& [types, rate] : target.array.rates) {
        pairs += Concat(pairs.empty() ? "" : ", ", TypeName(types.first), " by ",
                        TypeName(types.second));
      }
      return Concat("the array of '", target.name, "' does not multiply ", TypeName(input), " by ",
                    TypeName(weight), "; it does ", pairs);
    }
  }
  for (const VectorWork& work : SplitWork(nest, target.output_stage).vector) {
    for (const MicroInstruction& op : work.program.ops) {
      const OpClass op_class = Info(op.op).op_class;
      if (op_class == OpClass::kFree) continue;
      if (target.vector.op_cycles[static_cast<size_t>(op_class)] <= 0) {
        return Concat("the vector unit of '", target.name, "' has no '", OpClassName(op_class),
                      "'");
      }
    }
  }
  return "";
}

Result<std::vector<ir::Nest>> BuildNests(const ir::Graph& graph, const machine::Target& target) {
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
                                       const ResidencyPlan& plan) {
  std::vector<ScheduledGroup> groups;
  for (size_t g = 0; g < nests.size(); ++g) {
    const ir::Node& node = graph.nodes[g];
    ScheduledGroup group = {.name = node.name,
                            .onnx_nodes = node.onnx_nodes,
                            .op = node.op,
                            .nest = nests[g],
                            .mapping = plan.mappings[g]->mapping,
                            .predicted = plan.mappings[g]->predicted};
    group.compulsory_bytes = CompulsoryBytes(group.nest, group.mapping);
    group.points = plan.mappings[g]->points;
    group.evaluated = plan.mappings[g]->evaluated;
    groups.push_back(std::move(group));
  }
  return groups;
}

// Lists the tile buffers of a group, without addresses.
void ListBuffers(const machine::Target& target, ScheduledGroup* group) {
  const int accumulators = group->nest.anchor == ir::Anchor::kContraction ? 1 : 0;
  for (int o = -accumulators; o <= group->nest.output(); ++o) {
    const int64_t bytes = BufferBytes(group->nest, group->mapping, target, o);
    if (bytes == 0) continue;
    const int slots = RingSlots(group->nest, group->mapping, o);
    const int memory = o == kAccumulator ? group->mapping.accumulator.memory
                                         : group->mapping.operands[At(o)].memory;
    group->buffers.push_back(
        {.operand = o, .memory = memory, .slot_bytes = bytes / slots, .slots = slots});
  }
}

void ListResidents(const ir::Graph& graph, const ResidencyPlan& plan, Schedule* schedule) {
  for (size_t g = 0; g < plan.result_in.size(); ++g) {
    if (plan.result_in[g] < 0) continue;
    schedule->residents.push_back({.root = plan.handed_over[g],
                                   .memory = plan.result_in[g],
                                   .bytes = RootBytes(graph, plan.handed_over[g]),
                                   .first_group = static_cast<int>(g),
                                   .end_group = static_cast<int>(g) + 2});
  }
}

// Addresses in one scratchpad for all residents and tile buffers; false if no placement was found.
bool PlaceMemory(int memory, const PlacementOptions& options, Schedule* schedule) {
  const machine::Memory& m = schedule->target.memories[At(memory)];
  PlacementProblem problem = {.capacity_bytes = UsableBytes(m)};
  std::vector<int64_t*> addresses;
  for (Resident& resident : schedule->residents) {
    if (resident.memory != memory) continue;
    problem.buffers.push_back(
        {resident.first_group, resident.end_group, resident.bytes, m.align_bytes});
    addresses.push_back(&resident.address);
  }
  for (size_t g = 0; g < schedule->groups.size(); ++g) {
    for (TileBuffer& buffer : schedule->groups[g].buffers) {
      if (buffer.memory != memory) continue;
      const int64_t first = static_cast<int64_t>(g);
      problem.buffers.push_back(
          {first, first + 1, buffer.slot_bytes * buffer.slots, m.align_bytes});
      addresses.push_back(&buffer.address);
    }
  }
  const std::optional<PlacementSolution> solution = Place(problem, options).solution;
  if (!solution) return false;
  DLA_CHECK(Validate(problem, *solution) == PlacementFault::kNone, "placement in ", m.name);
  for (size_t i = 0; i < addresses.size(); ++i) *addresses[i] = solution->offsets[i];
  return true;
}

// Places every scratchpad; -1, or the memory for which no placement was found.
int PlaceAll(const PlacementOptions& options, Schedule* schedule) {
  for (int m = 0; m < static_cast<int>(schedule->target.memories.size()); ++m) {
    if (!PlaceMemory(m, options, schedule)) return m;
  }
  return -1;
}

// The group whose resident result is given up after `memory` could not be placed: the largest one.
int LargestResident(const Schedule& schedule, int memory) {
  const Resident* largest = nullptr;
  for (const Resident& resident : schedule.residents) {
    if (resident.memory != memory) continue;
    if (largest == nullptr || resident.bytes > largest->bytes) largest = &resident;
  }
  DLA_CHECK(largest != nullptr, "tile buffers alone were not placed");
  return largest->first_group;
}

Status TooSmall(const std::vector<ir::Nest>& nests, const machine::Target& target,
                const Status& which) {
  return DoesNotFit("does not fit '", target.name, "': ", which.message(),
                    " has no tile that is small enough; ", WhatWouldFit(nests, target));
}

}  // namespace

Result<Schedule> MakeSchedule(const ir::Graph& graph, const machine::Target& target,
                              const ScheduleOptions& options) {
  DLA_ASSIGN_OR_RETURN(const std::vector<ir::Nest> nests, BuildNests(graph, target));
  Searcher searcher(target, options.objective);
  ResidencyRules rules = {.given = options.given};
  if (options.residency == ResidencyPolicy::kNone) {
    for (int g = 0; g < static_cast<int>(nests.size()); ++g) rules.forbidden.insert(g);
  }
  while (true) {
    Result<ResidencyPlan> plan = PlanResidency(graph, nests, rules, &searcher, options.progress);
    if (!plan.ok()) {
      if (plan.status().code() != ErrorCode::kDoesNotFit) return plan.status();
      return TooSmall(nests, target, plan.status());
    }
    Schedule schedule = {.target = target, .objective = options.objective};
    schedule.groups = MakeGroups(graph, nests, *plan);
    for (ScheduledGroup& group : schedule.groups) ListBuffers(target, &group);
    ListResidents(graph, *plan, &schedule);
    const int memory = PlaceAll(options.placement, &schedule);
    if (memory >= 0) {
      rules.forbidden.insert(LargestResident(schedule, memory));
      continue;
    }
    DLA_RETURN_IF_ERROR(LayOutDram(graph, &schedule));
    const std::string faults = VerifySchedule(schedule);
    DLA_CHECK(faults.empty(), "schedule: ", faults);
    return schedule;
  }
}

}  // namespace dla::scheduler
