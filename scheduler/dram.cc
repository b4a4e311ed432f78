#include "scheduler/dram.h"

#include <algorithm>
#include <map>

#include "scheduler/packed_weight.h"
#include "scheduler/placement.h"
#include "scheduler/predict.h"
#include "scheduler/residency_candidates.h"
#include "scheduler/transfers.h"
#include "scheduler/value_flow.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// Which of the address spaces a region belongs to.
int SpaceOf(DramKind kind) {
  switch (kind) {
    case DramKind::kInput:
      return 0;
    case DramKind::kOutput:
      return 1;
    case DramKind::kConstant:
    case DramKind::kPackedWeight:
      return 2;
    case DramKind::kTemporary:
    case DramKind::kSpill:
      return 3;
  }
  return 3;
}
constexpr int kTemporarySpace = 3;

class DramLayout {
 public:
  explicit DramLayout(Schedule* schedule) : graph_(schedule->graph), schedule_(*schedule) {}

  Status Run() {
    AddPorts();
    for (int g = 0; g < static_cast<int>(schedule_.groups.size()); ++g) AddGroup(g);
    PlaceRegions();
    const auto limit = schedule_.target.dram.bytes;
    const int64_t footprint = DramFootprint(schedule_);
    if (limit && footprint > *limit) {
      return DoesNotFit("does not fit '", schedule_.target.name, "': the program needs ", footprint,
                        " bytes of DRAM, the target has ", *limit);
    }
    return Status();
  }

 private:
  void AddPorts() {
    const int groups = static_cast<int>(schedule_.groups.size());
    for (const ir::ValueId v : graph_.inputs) AddValue(v, DramKind::kInput, 0, groups);
    for (const ir::ValueId v : graph_.outputs) AddValue(v, DramKind::kOutput, 0, groups);
  }

  // In a cascade all groups run in turns: what one of them uses lives as long as all of them.
  void AddValue(ir::ValueId root, DramKind kind, int first, int end) {
    if (first < end) {
      const int last = CascadeOf(schedule_, end - 1).end;
      first = CascadeOf(schedule_, first).first;
      end = last;
    }
    const auto it = by_root_.find(root);
    if (it != by_root_.end()) {
      DramRegion& region = schedule_.regions[it->second];
      region.first_group = std::min(region.first_group, first);
      region.end_group = std::max(region.end_group, end);
      return;
    }
    by_root_[root] = schedule_.regions.size();
    schedule_.regions.push_back({.kind = kind,
                                 .name = graph_.values[At(root)].name,
                                 .root = root,
                                 .bytes = RootBytes(graph_, root),
                                 .first_group = first,
                                 .end_group = end});
  }

  void AddGroup(int g) {
    const ScheduledGroup& group = schedule_.groups[At(g)];
    for (int o = 0; o <= group.nest.output(); ++o) {
      const bool is_local = group.nest.operands[At(o)].is_local;
      if (StaysOnChip(group.mapping.operands[At(o)]) || is_local) continue;
      const ir::ValueId root = graph_.values[At(group.nest.operands[At(o)].value)].storage.root;
      if (IsPackedWeight(group.nest, o) && !group.mapping.operands[At(o)].resident) {
        AddPackedWeight(g, root, DenseBytes(group.nest.operands[At(o)]));
      } else {
        const bool constant = graph_.values[At(root)].constant != nullptr;
        AddValue(root, constant ? DramKind::kConstant : DramKind::kTemporary, g, g + 1);
      }
    }
    for (const Transfer& transfer : TransfersOf(group.nest, group.mapping)) {
      if (transfer.operand != kAccumulator || !transfer.is_store) continue;
      ir::Operand sums = group.nest.operands.back();
      sums.type = AccumulatorType(group.nest, schedule_.target);
      AddOwn(g, DramKind::kSpill, ir::kNoValue, DenseBytes(sums));
    }
  }

  void AddPackedWeight(int g, ir::ValueId root, int64_t bytes) {
    const int known = FindPackedWeight(schedule_, g);
    if (known < 0) return AddOwn(g, DramKind::kPackedWeight, root, bytes);
    schedule_.regions[At(known)].end_group = CascadeOf(schedule_, g).end;
  }

  void AddOwn(int g, DramKind kind, ir::ValueId root, int64_t bytes) {
    const std::string name = kind == DramKind::kSpill
                                 ? schedule_.groups[At(g)].name + " (partial sums)"
                                 : graph_.values[At(root)].name;
    schedule_.regions.push_back({.kind = kind,
                                 .name = name,
                                 .root = root,
                                 .group = g,
                                 .bytes = bytes,
                                 .first_group = CascadeOf(schedule_, g).first,
                                 .end_group = CascadeOf(schedule_, g).end});
  }

  void PlaceRegions() {
    int64_t next[kTemporarySpace] = {};
    PlacementProblem problem;
    std::vector<size_t> temporaries;
    for (size_t i = 0; i < schedule_.regions.size(); ++i) {
      DramRegion& region = schedule_.regions[i];
      const int space = SpaceOf(region.kind);
      if (space == kTemporarySpace) {
        temporaries.push_back(i);
        problem.buffers.push_back(
            {region.first_group, region.end_group, region.bytes, kRegionAlignBytes});
      } else {
        region.address = next[space];
        next[space] += RoundUp(region.bytes, kRegionAlignBytes);
      }
    }
    const PlacementSolution solution = PlaceLow(problem, {.method = PlaceMethod::kBestFit});
    for (size_t t = 0; t < temporaries.size(); ++t) {
      schedule_.regions[temporaries[t]].address = solution.offsets[t];
    }
  }

  const ir::Graph& graph_;
  Schedule& schedule_;
  std::map<ir::ValueId, size_t> by_root_;
};

}  // namespace

Status LayOutDram(Schedule* schedule) { return DramLayout(schedule).Run(); }

int64_t DramFootprint(const Schedule& schedule) {
  int64_t ends[kTemporarySpace + 1] = {};
  for (const DramRegion& region : schedule.regions) {
    int64_t& end = ends[SpaceOf(region.kind)];
    end = std::max(end, region.address + region.bytes);
  }
  int64_t footprint = 0;
  for (const int64_t end : ends) footprint += RoundUp(end, kRegionAlignBytes);
  return footprint;
}

int FindPackedWeight(const Schedule& schedule, int group) {
  const auto packed = [&](int g) {
    return PackedWeightOf(schedule.groups[At(g)].nest, schedule.groups[At(g)].mapping);
  };
  const ir::Nest& nest = schedule.groups[At(group)].nest;
  const ir::ValueId root = RootOf(schedule.graph, nest.operands[ir::Nest::kWeight]);
  for (size_t r = 0; r < schedule.regions.size(); ++r) {
    const DramRegion& region = schedule.regions[r];
    if (region.kind != DramKind::kPackedWeight || region.root != root) continue;
    if (region.group == group || packed(region.group) == packed(group)) return static_cast<int>(r);
  }
  return -1;
}

}  // namespace dla::scheduler
