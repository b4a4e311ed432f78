#include "scheduler/mapping_fault.h"

#include <algorithm>

#include "scheduler/predict.h"
#include "scheduler/transfers.h"
#include "support/status.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

std::string BlockFault(const ir::Nest& nest, const Mapping& mapping) {
  if (mapping.block.size() != nest.dimensions.size()) return "another number of dimensions";
  for (size_t d = 0; d < mapping.block.size(); ++d) {
    const int64_t block = mapping.block[d], extent = nest.dimensions[d].extent;
    const int dimension = static_cast<int>(d);
    const bool is_pass = dimension == nest.pass_dimension;
    const bool good =
        is_pass ? block == 1
                : block >= 1 && (block == extent || (block < extent && MayCut(nest, dimension)));
    if (!good) return Concat("block ", block, " of ", nest.dimensions[d].name);
  }
  return "";
}

// Each cut dimension once; with passes these outside of what is reduced over.
std::string OrderFault(const ir::Nest& nest, const Mapping& mapping) {
  uint32_t seen = 0;
  int rank = 0;
  for (const int d : mapping.order) {
    if (d < 0 || At(d) >= nest.dimensions.size() || (seen >> d & 1U) != 0) return "its order";
    seen |= uint32_t{1} << d;
    if (nest.pass_dimension < 0) continue;
    const int next = d == nest.pass_dimension ? 1 : (nest.reduce_mask >> d & 1U) != 0 ? 2 : 0;
    if (next < rank) return "its order of passes";
    rank = next;
  }
  return seen == CutMask(nest, mapping) ? "" : "its order";
}

std::string PlaceFault(const SearchProblem& problem, const OperandPlace& place, OperandClass cls,
                       int resident_in) {
  const auto& memories = problem.target->memories;
  if (place.memory < 0 || At(place.memory) >= memories.size()) return "a scratchpad";
  if (!memories[At(place.memory)].Holds(cls)) return "a scratchpad that does not hold its operand";
  if (place.through_dram || place.kept) return "an operand of a cascade";
  const bool stays = resident_in >= 0 && memories[At(resident_in)].Holds(cls);
  if (place.resident != stays || (stays && place.memory != resident_in)) return "its residents";
  const int source = stays ? -1 : resident_in;
  if (place.source != source) return "the source of an operand";
  if (source < 0) return "";
  const bool linked = problem.target->FindLink(source, place.memory) != nullptr;
  return linked && place.is_double ? "" : "the link of an operand";
}

std::string PlacesFault(const SearchProblem& problem, const Mapping& mapping) {
  const ir::Nest& nest = *problem.nest;
  if (mapping.operands.size() != nest.operands.size()) return "another number of operands";
  if (mapping.stripe.dimension >= 0) return "its stripes";
  for (size_t o = 0; o < nest.operands.size(); ++o) {
    const std::string fault =
        PlaceFault(problem, mapping.operands[o], nest.operands[o].cls, problem.resident_in[o]);
    if (!fault.empty()) return fault;
  }
  if (nest.anchor == ir::Anchor::kMove && mapping.operands.back() != mapping.operands.front()) {
    return "the places of a move";
  }
  if (nest.anchor != ir::Anchor::kContraction) return "";
  return PlaceFault(problem, mapping.accumulator, OperandClass::kPartial, -1);
}

std::string RoomFault(const SearchProblem& problem, const Mapping& mapping) {
  const ir::Nest& nest = *problem.nest;
  std::vector<int64_t> free = problem.free_bytes;
  const int first = nest.anchor == ir::Anchor::kContraction ? kAccumulator : 0;
  for (int o = first; o <= nest.output(); ++o) {
    const int memory =
        o == kAccumulator ? mapping.accumulator.memory : mapping.operands[At(o)].memory;
    free[At(memory)] -= BufferBytes(nest, mapping, *problem.target, o);
  }
  const bool fits = std::all_of(free.begin(), free.end(), [](int64_t bytes) { return bytes >= 0; });
  return fits ? "" : "its buffers, which do not fit";
}

}  // namespace

bool MayCut(const ir::Nest& nest, int dimension) {
  if (dimension == nest.pass_dimension) return false;
  const bool reduced = nest.IsReduction(dimension) || (nest.reduce_mask >> dimension & 1U) != 0;
  return nest.anchor == ir::Anchor::kContraction || !reduced || nest.pass_dimension >= 0;
}

bool KeepsTo(BufferRule rule, const ir::Nest& nest, const Mapping& mapping) {
  if (rule == BufferRule::kBest) return true;
  Mapping doubled = mapping;
  for (OperandPlace& place : doubled.operands) place.is_double = true;
  doubled.accumulator.is_double = true;
  const int first = nest.anchor == ir::Anchor::kContraction ? kAccumulator : 0;
  // What is moved has one buffer for both.
  const int end = nest.anchor == ir::Anchor::kMove ? nest.output() : nest.output() + 1;
  for (int o = first; o < end; ++o) {
    const bool is_linked = o >= 0 && mapping.operands[At(o)].source >= 0;
    if (is_linked || RingSlots(nest, doubled, o) < 2) continue;
    const bool is_made = o == kAccumulator || o == nest.output();
    const bool two = rule == BufferRule::kDouble || (rule == BufferRule::kInputsDouble && !is_made);
    if ((RingSlots(nest, mapping, o) == 2) != two) return false;
  }
  return true;
}

std::string MappingFault(const SearchProblem& problem, const Mapping& mapping) {
  const ir::Nest& nest = *problem.nest;
  std::string fault = BlockFault(nest, mapping);
  if (fault.empty()) fault = OrderFault(nest, mapping);
  if (fault.empty()) fault = PlacesFault(problem, mapping);
  if (fault.empty() && !KeepsTo(problem.options.buffers, nest, mapping)) fault = "its buffers";
  if (fault.empty()) fault = RoomFault(problem, mapping);
  return fault.empty() ? GatherFault(nest, mapping) : fault;
}

}  // namespace dla::scheduler
