#include "scheduler/transfers.h"

#include <bit>

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }
uint32_t Bit(int d) { return uint32_t{1} << d; }

// The cut loops from the outside up to and including the innermost one of `dims`, as a mask.
uint32_t OutsideOrAt(const Mapping& mapping, uint32_t dims) {
  uint32_t mask = 0;
  uint32_t result = 0;
  for (const int d : mapping.order) {
    mask |= Bit(d);
    if (dims & Bit(d)) result = mask;
  }
  return result;
}

int64_t ProductOfCounts(const ir::Nest& nest, const Mapping& mapping, uint32_t dims) {
  int64_t product = 1;
  for (const int d : mapping.order) {
    if (dims & Bit(d)) product *= BlockCount(nest, mapping, d);
  }
  return product;
}

bool IsFused(const ir::Nest& nest, int operand) {
  return nest.anchor == ir::Anchor::kContraction && operand > ir::Nest::kWeight &&
         operand != nest.bias && operand != nest.output();
}

// Its tiles stay where they were loaded to.
bool TilesStay(const Mapping& mapping, int operand) {
  const OperandPlace& place = mapping.operands[At(operand)];
  return place.kept || place.resident;
}

Transfer LoadOf(const ir::Nest& nest, const Mapping& mapping, int operand) {
  const uint32_t cut = CutMask(nest, mapping);
  const uint32_t reductions = ReductionMask(nest) & cut;
  const uint32_t dims = DependenceMask(nest, operand) & cut;
  const uint32_t outside = OutsideOrAt(mapping, dims);
  Transfer transfer = {.operand = operand, .overlaps = Overlaps(nest, mapping, operand)};
  if (mapping.operands[At(operand)].fill_bytes > 0) {
    transfer.first = cut;
    return transfer;
  }
  transfer.first = cut & ~outside;
  uint32_t repeats = outside & ~dims;
  if (operand == nest.bias) {
    transfer.first |= reductions;
    repeats &= ~reductions;
  } else if (IsFused(nest, operand)) {
    transfer.first &= ~reductions;
    transfer.last = reductions;
    repeats &= ~reductions;
  }
  if (TilesStay(mapping, operand)) {
    transfer.first |= repeats;
    repeats = 0;
  }
  transfer.times = ProductOfCounts(nest, mapping, repeats);
  return transfer;
}

void AddSpills(const ir::Nest& nest, const Mapping& mapping, std::vector<Transfer>* loads,
               std::vector<Transfer>* stores) {
  const uint32_t cut = CutMask(nest, mapping);
  const uint32_t dims = DependenceMask(nest, nest.output()) & cut;
  const uint32_t outside = OutsideOrAt(mapping, dims);
  const uint32_t revisiting = outside & ~dims;  // reduction loops outside the output's q
  if (revisiting == 0) return;
  Transfer transfer = {.operand = kAccumulator, .overlaps = Overlaps(nest, mapping, kAccumulator)};
  transfer.times = ProductOfCounts(nest, mapping, revisiting) - 1;
  Transfer load = transfer;
  load.first = cut & ~outside;
  load.not_first = revisiting;
  loads->push_back(load);
  Transfer store = transfer;
  store.is_store = true;
  store.last = cut & ~outside;
  store.not_last = revisiting;
  stores->push_back(store);
}

}  // namespace

bool HoldsIndices(const ir::Nest& nest, int operand) {
  for (const ir::Operand& other : nest.operands) {
    if (other.gather && other.gather->indices == operand) return true;
  }
  return false;
}

std::string GatherFault(const ir::Nest& nest, const Mapping& mapping) {
  for (int o = 0; o < nest.output(); ++o) {
    const ir::Operand& operand = nest.operands[At(o)];
    if (!operand.gather) continue;
    const int indices = operand.gather->indices;
    const OperandPlace& place = mapping.operands[At(o)];
    if (place.resident || place.source >= 0) return "a gathered operand is loaded from DRAM";
    if (mapping.operands[At(indices)].source >= 0) return "indices cannot be moved";
    const bool loaded = !mapping.operands[At(indices)].resident;
    if (loaded && Overlaps(nest, mapping, o) && !Overlaps(nest, mapping, indices)) {
      return "indices need as many buffers as what they choose";
    }
  }
  return "";
}

uint32_t CutMask(const ir::Nest& nest, const Mapping& mapping) {
  uint32_t mask = 0;
  for (size_t d = 0; d < nest.dimensions.size(); ++d) {
    if (mapping.block[d] < nest.dimensions[d].extent) mask |= uint32_t{1} << d;
  }
  return mask;
}

uint32_t ReductionMask(const ir::Nest& nest) {
  const uint32_t all = (uint32_t{1} << nest.dimensions.size()) - 1;
  return all & ~DependenceMask(nest, nest.output());
}

uint32_t DependenceMask(const ir::Nest& nest, int operand) {
  const int o = operand == kAccumulator ? nest.output() : operand;
  uint32_t mask = 0;
  for (const ir::Axis& axis : nest.operands[At(o)].axes) {
    for (const ir::Term& term : axis.terms) mask |= Bit(term.dimension);
  }
  return mask;
}

uint32_t GenerationDims(const ir::Nest& nest, const Mapping& mapping, int operand) {
  const uint32_t cut = CutMask(nest, mapping);
  const uint32_t reductions = ReductionMask(nest) & cut;
  if (operand == nest.output() && DrainsInPlace(nest, mapping)) operand = kAccumulator;
  const uint32_t dims = DependenceMask(nest, operand) & cut;
  if (operand >= 0 && mapping.operands[At(operand)].kept) return dims;
  const uint32_t outside = OutsideOrAt(mapping, dims);
  const bool once_a_drain =
      operand != kAccumulator &&
      (operand == nest.bias || IsFused(nest, operand) || operand == nest.output());
  return once_a_drain ? outside & ~reductions : outside;
}

int RollingOf(const ir::Nest& nest, const Mapping& mapping, int operand) {
  // A resident is filled along the stripes of its cascade; elsewhere tiles do not overlap.
  if (operand >= 0 && mapping.operands[At(operand)].resident) return mapping.stripe.dimension;
  if (operand != ir::Nest::kInput || mapping.rolling < 0) return -1;
  const uint32_t dims = DependenceMask(nest, operand);
  int innermost = -1;
  for (const int d : mapping.order) {
    if (dims & Bit(d)) innermost = d;
  }
  return innermost == mapping.rolling ? mapping.rolling : -1;
}

int RingSlots(const ir::Nest& nest, const Mapping& mapping, int operand) {
  const OperandPlace& place =
      operand == kAccumulator || (operand == nest.output() && DrainsInPlace(nest, mapping))
          ? mapping.accumulator
          : mapping.operands[At(operand)];
  if (place.kept) {
    return static_cast<int>(ProductOfCounts(nest, mapping, GenerationDims(nest, mapping, operand)));
  }
  const bool is_local = operand >= 0 && nest.operands[At(operand)].is_local;
  if (place.resident || is_local || !place.is_double) return 1;
  return ProductOfCounts(nest, mapping, GenerationDims(nest, mapping, operand)) > 1 ? 2 : 1;
}

bool Overlaps(const ir::Nest& nest, const Mapping& mapping, int operand) {
  // Where a resident is filled or drained, nothing else lies.
  if (operand >= 0 && mapping.operands[At(operand)].resident) return true;
  return RingSlots(nest, mapping, operand) > 1 ||
         ProductOfCounts(nest, mapping, GenerationDims(nest, mapping, operand)) == 1;
}

bool CarriesOver(const ir::Nest& nest, const Mapping& mapping, int operand) {
  if (mapping.stripe.dimension < 0 || operand == kAccumulator || operand == nest.output()) {
    return false;
  }
  const uint32_t stripe = Bit(mapping.stripe.dimension);
  return (CutMask(nest, mapping) & stripe) != 0 &&
         (LoadOf(nest, mapping, operand).first & stripe) != 0;
}

std::vector<Transfer> TransfersOf(const ir::Nest& nest, const Mapping& mapping) {
  std::vector<Transfer> loads;
  std::vector<Transfer> stores;
  for (const bool gathered : {false, true}) {
    for (int o = 0; o < nest.output(); ++o) {
      const ir::Operand& operand = nest.operands[At(o)];
      const OperandPlace& place = mapping.operands[At(o)];
      if (operand.gather.has_value() != gathered) continue;
      if ((place.resident && !place.through_dram) || operand.is_local) continue;
      loads.push_back(LoadOf(nest, mapping, o));
      loads.back().is_move = place.source >= 0;
    }
  }
  if (nest.anchor == ir::Anchor::kContraction) AddSpills(nest, mapping, &loads, &stores);
  const OperandPlace& output = mapping.operands[At(nest.output())];
  if (!output.resident || output.through_dram) {
    Transfer store = {.operand = nest.output(), .is_store = true};
    store.overlaps = Overlaps(nest, mapping, nest.output());
    store.last = ReductionMask(nest) & CutMask(nest, mapping);
    stores.push_back(store);
  }
  loads.insert(loads.end(), stores.begin(), stores.end());
  return loads;
}

}  // namespace dla::scheduler
