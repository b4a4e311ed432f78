#include "scheduler/cascade.h"

#include <algorithm>

#include "machine/program.h"
#include "scheduler/predict.h"
#include "scheduler/searcher.h"
#include "scheduler/transfers.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// One attempt to fit a chain of known geometry.
class Fitting {
 public:
  Fitting(const ir::Graph& graph, const std::vector<ir::Nest>& nests, const machine::Target& target,
          const StripeGeometry& geometry, const std::map<ir::ValueId, int>& whole_in,
          const std::vector<int64_t>& reserved_bytes)
      : graph_(graph), nests_(nests), target_(target), geometry_(geometry), whole_in_(whole_in) {
    for (size_t m = 0; m < target.memories.size(); ++m) {
      free_.push_back(UsableBytes(target.memories[m]) - reserved_bytes[m]);
    }
  }

  bool Run(CascadePlan* plan) {
    for (const RingValue& ring : geometry_.rings) {
      if (!PlaceRing(ring)) return false;
    }
    for (int g = geometry_.first_group; g < geometry_.end_group; ++g) {
      mappings_.push_back(Start(g));
      if (!PlaceOperands(g)) return false;
    }
    for (int g = geometry_.first_group; g < geometry_.end_group; ++g) {
      if (!Cut(g)) return false;
    }
    if (!FitsTogether()) return false;
    for (int g = geometry_.first_group; g < geometry_.end_group; ++g) {
      plan->predicted.push_back(Predict(NestOf(g), MappingOf(g), target_));
    }
    plan->mappings = std::move(mappings_);
    plan->rings = std::move(rings_);
    return true;
  }

 private:
  const ir::Nest& NestOf(int g) const { return nests_[At(g)]; }
  Mapping& MappingOf(int g) { return mappings_[At(g - geometry_.first_group)]; }

  // The memory that holds the classes and has most room; -1: none has these bytes.
  int MostRoom(const std::vector<OperandClass>& classes, int64_t bytes) const {
    int best = -1;
    for (size_t m = 0; m < free_.size(); ++m) {
      const machine::Memory& memory = target_.memories[m];
      const bool holds = std::all_of(classes.begin(), classes.end(),
                                     [&](OperandClass cls) { return memory.Holds(cls); });
      if (!holds || RoundUp(bytes, memory.align_bytes) > free_[m]) continue;
      if (best < 0 || free_[m] > free_[At(best)]) best = static_cast<int>(m);
    }
    return best;
  }

  // In a memory that holds the classes under which its members make and read it.
  bool PlaceRing(const RingValue& ring) {
    std::vector<OperandClass> classes;
    for (int g = geometry_.first_group; g < geometry_.end_group; ++g) {
      for (const ir::Operand& operand : NestOf(g).operands) {
        if (RootOf(graph_, operand) == ring.root) classes.push_back(operand.cls);
      }
    }
    const int memory = MostRoom(classes, ring.bytes);
    if (memory < 0) return false;
    free_[At(memory)] -= RoundUp(ring.bytes, target_.memories[At(memory)].align_bytes);
    rings_.push_back({.root = ring.root,
                      .memory = memory,
                      .bytes = ring.bytes,
                      .ring = ring.ring,
                      .first_group = geometry_.first_group,
                      .end_group = geometry_.end_group});
    return true;
  }

  // Nothing cut but the stripes.
  Mapping Start(int g) const {
    const ir::Nest& nest = NestOf(g);
    const MemberStripes& member = geometry_.members[At(g - geometry_.first_group)];
    Mapping mapping;
    for (const ir::Dimension& d : nest.dimensions) mapping.block.push_back(d.extent);
    mapping.stripe = member.stripe;
    mapping.block[At(member.stripe.dimension)] = member.block;
    if (BlockCount(nest, mapping, member.stripe.dimension) > 1) {
      mapping.order.push_back(member.stripe.dimension);
    }
    mapping.operands.resize(nest.operands.size());
    return mapping;
  }

  // Which operands lie in rings, whole, in buffers that stay, or in tiles of a stripe.
  bool PlaceOperands(int g) {
    const ir::Nest& nest = NestOf(g);
    Mapping& mapping = MappingOf(g);
    mapping.accumulator.is_double = false;
    for (int o = 0; o <= nest.output(); ++o) {
      OperandPlace& place = mapping.operands[At(o)];
      const ir::Operand& operand = nest.operands[At(o)];
      const ir::ValueId root = RootOf(graph_, operand);
      place.is_double = false;
      const auto whole = whole_in_.find(root);
      if (whole != whole_in_.end()) {
        if (!target_.memories[At(whole->second)].Holds(operand.cls)) return false;
        place.resident = true;
        place.memory = whole->second;
      } else if (const int ring = RingOf(root); ring >= 0) {
        const RingValue& value = geometry_.rings[At(ring)];
        place.resident = true;
        place.memory = rings_[At(ring)].memory;
        place.through_dram = o == nest.output() ? value.stored : value.filler == g;
      } else if (o != nest.output() && !nest.DependsOn(o, mapping.stripe.dimension)) {
        place.kept = true;
        const int64_t bytes = TileBytes(nest, mapping, target_, o);
        place.memory = MostRoom({operand.cls}, bytes);
        if (place.memory < 0) return false;
        free_[At(place.memory)] -= BufferBytes(nest, mapping, target_, o);
      }
    }
    return true;
  }

  int RingOf(ir::ValueId root) const {
    for (size_t r = 0; r < geometry_.rings.size(); ++r) {
      if (geometry_.rings[r].root == root) return static_cast<int>(r);
    }
    return -1;
  }

  // The dimensions of the output outside its lines, outermost first: channels or groups of them.
  std::vector<int> Cuttable(int g) {
    const ir::Nest& nest = NestOf(g);
    const Mapping& mapping = MappingOf(g);
    std::vector<int> dims;
    for (const ir::Axis& axis : nest.operands.back().axes) {
      for (const ir::Term& term : axis.terms) {
        const bool reduced = (nest.reduce_mask >> term.dimension & 1u) != 0;
        if (term.dimension == mapping.stripe.dimension || reduced) continue;
        if (nest.dimensions[At(term.dimension)].extent > 1) dims.push_back(term.dimension);
      }
    }
    return dims;
  }

  // Cuts one more dimension, in as few blocks as let the stripe's tiles fit beside what stays.
  bool Cut(int g) {
    const Mapping whole = MappingOf(g);
    if (PlaceTiles(g)) return true;
    for (const int d : Cuttable(g)) {
      const int64_t extent = NestOf(g).dimensions[At(d)].extent;
      int64_t before = extent;
      for (int64_t count = 2; count <= std::min<int64_t>(extent, machine::kMaxRingSlots); ++count) {
        const int64_t block = CeilDiv(extent, count);
        if (block == before) continue;
        before = block;
        MappingOf(g) = whole;
        MappingOf(g).block[At(d)] = block;
        MappingOf(g).order.push_back(d);
        if (PlaceTiles(g)) return true;
      }
    }
    return false;
  }

  // Memories for the tiles that live for one stripe; what buffers that stay gained or lost by the
  // cut is taken from the room.
  bool PlaceTiles(int g) {
    const ir::Nest& nest = NestOf(g);
    Mapping& mapping = MappingOf(g);
    const std::vector<int64_t> before = free_;
    if (!TakeKept(g)) return false;
    const std::vector<int64_t> kept = free_;
    bool fits = true;
    const auto take = [&](OperandClass cls, int operand, OperandPlace* place) {
      const int64_t bytes = TileBytes(nest, mapping, target_, operand);
      place->memory = MostRoom({cls}, bytes);
      fits = fits && place->memory >= 0;
      if (fits) free_[At(place->memory)] -= BufferBytes(nest, mapping, target_, operand);
    };
    const bool contracts = nest.anchor == ir::Anchor::kContraction;
    if (contracts) take(OperandClass::kPartial, kAccumulator, &mapping.accumulator);
    for (int o = 0; o <= nest.output() && fits; ++o) {
      OperandPlace& place = mapping.operands[At(o)];
      if (place.resident || place.kept) continue;
      const OperandClass cls = nest.operands[At(o)].cls;
      const bool in_place = o == nest.output() && contracts &&
                            target_.memories[At(mapping.accumulator.memory)].Holds(cls);
      if (in_place) {
        place.memory = mapping.accumulator.memory;
      } else {
        take(cls, o, &place);
      }
    }
    free_ = fits ? kept : before;
    return fits;
  }

  // The buffers that stay, as they are with the cut; they were reserved without.
  bool TakeKept(int g) {
    const ir::Nest& nest = NestOf(g);
    const Mapping& mapping = MappingOf(g);
    const Mapping whole = Start(g);
    std::vector<int64_t> room = free_;
    for (int o = 0; o < nest.output(); ++o) {
      const OperandPlace& place = mapping.operands[At(o)];
      if (!place.kept) continue;
      Mapping uncut = whole;
      uncut.operands = mapping.operands;
      room[At(place.memory)] += BufferBytes(nest, uncut, target_, o);
      if (RingSlots(nest, mapping, o) > machine::kMaxRingSlots) return false;
      room[At(place.memory)] -= BufferBytes(nest, mapping, target_, o);
      if (room[At(place.memory)] < 0) return false;
    }
    free_ = room;
    return true;
  }

  // Every member's tiles beside all that stays: later members may have taken more than was there.
  bool FitsTogether() {
    for (int g = geometry_.first_group; g < geometry_.end_group; ++g) {
      const ir::Nest& nest = NestOf(g);
      const Mapping& mapping = MappingOf(g);
      std::vector<int64_t> room = free_;
      for (int o = kAccumulator; o <= nest.output(); ++o) {
        if (o == kAccumulator && nest.anchor != ir::Anchor::kContraction) continue;
        const OperandPlace& place =
            o == kAccumulator ? mapping.accumulator : mapping.operands[At(o)];
        if (!place.kept) room[At(place.memory)] -= BufferBytes(nest, mapping, target_, o);
      }
      if (*std::min_element(room.begin(), room.end()) < 0) return false;
    }
    return true;
  }

  const ir::Graph& graph_;
  const std::vector<ir::Nest>& nests_;
  const machine::Target& target_;
  const StripeGeometry& geometry_;
  const std::map<ir::ValueId, int>& whole_in_;
  std::vector<int64_t> free_;  // by memory, beside the rings and what else stays
  std::vector<Resident> rings_;
  std::vector<Mapping> mappings_;
};

}  // namespace

std::optional<CascadePlan> CascadePlanner::Plan(GroupSpan groups, int64_t lines,
                                                const std::map<ir::ValueId, int>& whole_in,
                                                const std::vector<int64_t>& reserved_bytes) const {
  std::vector<bool> whole(graph_.values.size(), false);
  for (const auto& [root, memory] : whole_in) whole[At(root)] = true;
  const auto geometry = PlanStripes(graph_, nests_, flows_, groups, lines, whole);
  if (!geometry) return std::nullopt;
  CascadePlan plan = {
      .cascade = {.first_group = groups.first, .end_group = groups.end, .lines = lines}};
  Fitting fitting(graph_, nests_, target_, *geometry, whole_in, reserved_bytes);
  if (!fitting.Run(&plan)) return std::nullopt;
  return plan;
}

bool CascadePlanner::IsChain(GroupSpan groups) const {
  const std::vector<bool> none(graph_.values.size(), false);
  return PlanStripes(graph_, nests_, flows_, groups, 1, none).has_value();
}

}  // namespace dla::scheduler
