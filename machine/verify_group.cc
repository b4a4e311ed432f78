// Dimensions, loops and operands of a group: ranges first, then where tiles lie.
#include <algorithm>
#include <cmath>

#include "machine/tile.h"
#include "machine/verifier.h"
#include "machine/verify_parts.h"
#include "support/checked.h"

namespace dla::machine {
namespace {

constexpr int64_t kMaxPoints = int64_t{1} << 60;

// The stripes of a cascade are blocks of the outermost loop, if they are several.
void VerifyStripes(const Group& group, const std::string& where, Faults* faults) {
  if (group.cascade < 0) {
    if (group.cascade < -1 || group.stripe_dim != kNone) {
      faults->Add(where, "has stripes, but belongs to no cascade");
    }
    return;
  }
  const auto loop = std::find(group.loops.begin(), group.loops.end(), group.stripe_dim);
  if (group.stripe_dim >= group.dims.size()) {
    faults->Add(where, "its stripes are of dimension ", static_cast<int>(group.stripe_dim), " of ",
                group.dims.size());
  } else if (loop != group.loops.end() && loop != group.loops.begin()) {
    faults->Add(where, "the loop over its stripes is not the outermost one");
  }
}

void VerifyDims(const Group& group, const std::string& where, Faults* faults) {
  const size_t before = faults->count();
  if (group.dims.size() > kMaxDims) {
    faults->Add(where, "has ", group.dims.size(), " dimensions; at most ", kMaxDims);
    return;
  }
  uint32_t looped = 0;
  for (const uint8_t dim : group.loops) {
    if (dim >= group.dims.size()) {
      faults->Add(where, "a loop runs over dimension ", static_cast<int>(dim), " of ",
                  group.dims.size());
    } else if ((looped >> dim & 1) != 0) {
      faults->Add(where, "dimension '", group.dims[dim].name, "' has two loops");
    } else {
      looped |= 1u << dim;
    }
  }
  int64_t points = 1;
  bool good = true;
  for (size_t d = 0; d < group.dims.size(); ++d) {
    const DimDesc& dim = group.dims[d];
    const std::string text = Concat(where, ": dimension '", dim.name, "'");
    if (dim.extent < 1 || dim.extent > kMaxExtent || dim.block < 1 || dim.block > dim.extent) {
      faults->Add(text, "extent ", dim.extent, " in blocks of ", dim.block, " is impossible");
      good = false;
    } else if (dim.lead < 0 || dim.lead > dim.extent - dim.block) {
      faults->Add(text, "a lead of ", dim.lead, " leaves no block of ", dim.block, " in ",
                  dim.extent);
      good = false;
    } else if (dim.repeated < 0 || dim.repeated > dim.extent) {
      faults->Add(text, dim.repeated, " of its ", dim.extent, " indices cannot be repeated");
      good = false;
    } else if ((looped >> d & 1) == 0 && dim.block != dim.extent) {
      faults->Add(text, "has no loop, but its block ", dim.block, " is not its extent ",
                  dim.extent);
    }
    good = good && dim.extent <= kMaxPoints / points;
    if (good) points *= dim.extent;
  }
  VerifyStripes(group, where, faults);
  if (!good) faults->Add(where, "has more than 2^60 points, or impossible dimensions");
  if (faults->count() == before && !StepCount(group))
    faults->Add(where, "has more than 2^40 steps");
}

// The numbers of one axis: nothing may overflow later.
bool IsAxisSane(const Group& group, const AxisDesc& axis, uint32_t* dims_seen,
                const std::string& where, Faults* faults) {
  if (axis.terms.size() > kMaxTerms) {
    faults->Add(where, "has ", axis.terms.size(), " terms; at most ", kMaxTerms);
    return false;
  }
  if (axis.offset < -kMaxExtent || axis.offset > kMaxExtent || axis.bound < 1 ||
      axis.bound > kMaxExtent || axis.dram_stride < 0 || axis.dram_stride > kMaxExtent ||
      axis.local_stride < 0 || axis.local_stride > kMaxExtent) {
    faults->Add(where, "offset ", axis.offset, ", bound ", axis.bound, " or strides ",
                axis.dram_stride, " and ", axis.local_stride, " are out of range");
    return false;
  }
  if (axis.ring < 0 || axis.ring > axis.bound) {
    faults->Add(where, "a ring of ", axis.ring, " lines does not suit a bound of ", axis.bound);
    return false;
  }
  int64_t reach = 0;
  for (const TermDesc& term : axis.terms) {
    if (term.dim >= group.dims.size() || term.coefficient < 1) {
      faults->Add(where, "has a term of ", term.coefficient, " times dimension ",
                  static_cast<int>(term.dim));
      return false;
    }
    if ((*dims_seen >> term.dim & 1) != 0) {
      faults->Add(where, "dimension '", group.dims[term.dim].name, "' is in the operand twice");
      return false;
    }
    *dims_seen |= 1u << term.dim;
    const auto product = CheckedMul(term.coefficient, group.dims[term.dim].extent);
    if (!product || *product > kMaxPoints - reach) {
      faults->Add(where, "its indices overflow");
      return false;
    }
    reach += *product;
  }
  return true;
}

// Rings are of residents, one axis at most, and long enough for every tile.
void VerifyRings(const Group& group, const OperandDesc& operand, const std::string& where,
                 Faults* faults) {
  int rings = 0;
  for (const AxisDesc& axis : operand.axes) {
    if (axis.ring == 0) continue;
    ++rings;
    if (LongestExtent(group, axis) > axis.ring) {
      faults->Add(where, "its longest tile has ", LongestExtent(group, axis),
                  " lines, its ring has ", axis.ring);
    }
  }
  if (rings > 1 || (rings == 1 && !operand.resident)) {
    faults->Add(where, "has ", rings, " rings", operand.resident ? "" : " and is not resident");
  }
  if ((operand.rolling_dims >> group.dims.size()) != 0) {
    faults->Add(where, "it rolls along a dimension that there is not");
  }
}

// No two elements of the longest tile share a place: sorted by stride, each stride steps over
// everything with a smaller one.
bool HasDistinctPlaces(const Group& group, const OperandDesc& operand) {
  std::vector<std::pair<int64_t, int64_t>> axes;  // stride, extent
  for (const AxisDesc& axis : operand.axes) {
    const int64_t extent = operand.resident ? LinesOnChip(axis) : LongestExtent(group, axis);
    if (extent > 1) axes.emplace_back(axis.local_stride, extent);
  }
  std::sort(axes.begin(), axes.end());
  int64_t reach = 1;
  for (const auto& [stride, extent] : axes) {
    if (stride < reach) return false;
    reach += stride * (extent - 1);  // TileElements has shown that this does not overflow
  }
  return true;
}

void VerifyPanels(const Group& group, const OperandDesc& operand, const std::string& where,
                  Faults* faults) {
  if (operand.cls != OperandClass::kWeight) {
    faults->Add(where, "lies in panels, but is of class '", ClassName(operand.cls), "'");
  }
  if (operand.resident) faults->Add(where, "lies in panels and is resident");
  for (const AxisDesc& axis : operand.axes) {
    if (axis.terms.size() != 1 || axis.terms[0].coefficient != 1 || axis.offset != 0 ||
        axis.bound != group.dims[axis.terms[0].dim].extent) {
      faults->Add(where, "lies in panels, but an axis is not just one whole dimension");
      return;
    }
  }
}

void VerifyPlace(const Program& program, const Group& group, const OperandDesc& operand,
                 const std::string& where, Faults* faults) {
  if (operand.memory >= program.target.memories.size()) {
    faults->Add(where, "there is no memory ", static_cast<int>(operand.memory));
    return;
  }
  const Memory& memory = program.target.memories[operand.memory];
  const std::string in_memory = "memory '" + memory.name + "'";
  if (!memory.Holds(operand.cls)) {
    faults->Add(where, in_memory, " does not hold class '", ClassName(operand.cls), "'");
  }
  const int64_t slots = operand.ring_slots;
  if (slots < 1 || slots > kMaxRingSlots || (operand.resident && slots != 1)) {
    faults->Add(where, "has ", slots, " ring slots", operand.resident ? " and is resident" : "");
    return;
  }
  if ((operand.generation_dims >> group.dims.size()) != 0) {
    faults->Add(where, "its generation names a dimension that there is not");
  }
  VerifyRings(group, operand, where, faults);
  const auto elements = TileElements(group, operand);
  if (!elements || *elements > kMaxExtent) {
    faults->Add(where, "its tile is impossibly large");
    return;
  }
  if (*elements == 0) return;  // all tiles are clipped to nothing: it takes no room
  // Buffers begin at multiples of the memory's alignment. A resident operand may be a part of one
  // (a piece of a concatenation), from any element on.
  const int64_t element_bytes = TypeBytes(operand.type, 1);
  const int64_t unit =
      operand.resident ? element_bytes : std::max<int64_t>(memory.align_bytes, element_bytes);
  if (operand.address < 0 || operand.slot_bytes < 1 || operand.slot_bytes > memory.bytes / slots ||
      operand.address > memory.bytes - slots * operand.slot_bytes) {
    faults->Add(where, slots, " slots of ", operand.slot_bytes, " bytes from address ",
                operand.address, " do not fit into ", in_memory, " of ", memory.bytes, " bytes");
  } else if (operand.address % unit != 0 || (slots > 1 && operand.slot_bytes % unit != 0)) {
    faults->Add(where, "address ", operand.address, " or slots of ", operand.slot_bytes,
                " bytes are not aligned to ", unit, " bytes");
  }
  if (TypeBytes(operand.type, *elements) > operand.slot_bytes) {
    faults->Add(where, "its longest tile has ", TypeBytes(operand.type, *elements),
                " bytes, its slot ", operand.slot_bytes);
  }
  if (operand.local_layout == LocalLayout::kPanels) {
    VerifyPanels(group, operand, where, faults);
  } else if (!HasDistinctPlaces(group, operand)) {
    faults->Add(where, "elements of its tile share a place");
  }
}

// Is the axis just one whole dimension, or none?
bool IsWholeDimension(const Group& group, const AxisDesc& axis) {
  if (axis.terms.empty()) return axis.offset == 0;
  return axis.terms.size() == 1 && axis.terms[0].coefficient == 1 && axis.offset == 0 &&
         axis.bound == group.dims[axis.terms[0].dim].extent;
}

void VerifyGather(const Group& group, const OperandDesc& operand, const std::string& where,
                  Faults* faults) {
  const GatherDesc& gather = *operand.gather;
  if (gather.indices >= group.operands.size()) {
    faults->Add(where, "is gathered by operand ", static_cast<int>(gather.indices), " of ",
                group.operands.size());
    return;
  }
  const OperandDesc& indices = group.operands[gather.indices];
  const std::string by = OperandText(group, gather.indices);
  if (gather.bound < 1 || gather.bound > kMaxExtent || gather.stride < 0 ||
      gather.stride > kMaxExtent) {
    faults->Add(where, "is gathered with bound ", gather.bound, " and stride ", gather.stride);
  }
  if (operand.resident || operand.dram_layout != DramLayout::kStrided ||
      operand.local_layout != LocalLayout::kDense) {
    faults->Add(where, "is gathered, but not from strided DRAM into a dense tile");
  }
  if (indices.gather || IsFloat(indices.type) || indices.type == ElementType::kBool ||
      TypeBits(indices.type) < 8 || indices.local_layout != LocalLayout::kDense) {
    faults->Add(where, "is gathered by ", by, ", which does not hold a dense tile of integers");
  }
  bool whole = indices.axes.size() <= kMaxAxes;
  unsigned chosen = 0;
  for (const AxisDesc& axis : indices.axes) {
    for (const TermDesc& term : axis.terms) {
      whole = whole && term.dim < group.dims.size();
      if (whole) chosen |= 1u << term.dim;
    }
    whole = whole && IsWholeDimension(group, axis);
  }
  for (const AxisDesc& axis : operand.axes) {
    for (const TermDesc& term : axis.terms) {
      if ((chosen >> term.dim & 1) != 0) whole = whole && IsWholeDimension(group, axis);
    }
  }
  if (!whole || (chosen & ~unsigned{DimsOf(operand)}) != 0) {
    faults->Add(where, "and its indices, ", by, ", do not cover the same whole dimensions");
  }
}

// Only the array reads panels (CheckDense), and only as weights.
void VerifyDiagonal(const Group& group, const OperandDesc& operand, const std::string& where,
                    Faults* faults) {
  const DiagonalDesc& diagonal = *operand.diagonal;
  const unsigned dims = DimsOf(operand);
  const auto has = [&](uint8_t d) { return d < group.dims.size() && (dims >> d & 1) != 0; };
  if (operand.local_layout != LocalLayout::kPanels) {
    faults->Add(where, "is block-diagonal, but does not lie in panels");
  }
  if (!has(diagonal.channel_dim) || !has(diagonal.depth_dim) ||
      diagonal.channel_dim == diagonal.depth_dim) {
    faults->Add(where, "is block-diagonal over dimensions ", static_cast<int>(diagonal.channel_dim),
                " and ", static_cast<int>(diagonal.depth_dim), ", which are not two of its own");
  } else if (diagonal.channels < 1 || diagonal.depths < 1 || diagonal.channels > kMaxExtent ||
             diagonal.depths > kMaxExtent) {
    faults->Add(where, "is block-diagonal with blocks of ", diagonal.channels, " by ",
                diagonal.depths);
  }
}

// Elements from the region's start to behind the last one that a transfer may touch.
std::optional<int64_t> DramElements(const OperandDesc& operand) {
  int64_t elements = 1;
  if (operand.gather) {
    const auto reach = CheckedMul(operand.gather->bound - 1, operand.gather->stride);
    if (!reach || *reach > kMaxExtent) return std::nullopt;
    elements += *reach;
  }
  for (const AxisDesc& axis : operand.axes) {
    const auto next = operand.dram_layout == DramLayout::kPacked
                          ? CheckedMul(elements, axis.bound)
                          : CheckedMul(axis.bound - 1, axis.dram_stride);
    if (!next) return std::nullopt;
    if (operand.dram_layout == DramLayout::kPacked) {
      elements = *next;
    } else {
      const auto sum = CheckedAdd(elements, *next);
      if (!sum) return std::nullopt;
      elements = *sum;
    }
  }
  return CheckedAdd(elements, operand.dram_base);
}

void VerifyDram(const Program& program, const OperandDesc& operand, const std::string& where,
                Faults* faults) {
  if (operand.dram_layout == DramLayout::kNone) return;
  if (operand.region >= program.regions.size()) {
    faults->Add(where, "there is no region ", operand.region);
    return;
  }
  const Region& region = program.regions[operand.region];
  const auto elements = operand.dram_base < 0 ? std::nullopt : DramElements(operand);
  // Elements of less than a byte: compare in bits.
  const int64_t bits = TypeBits(operand.type);
  if (!elements || *elements > region.bytes * 8 / bits) {
    faults->Add(where, "base ", operand.dram_base, " and ",
                elements ? Concat(*elements - operand.dram_base) : std::string("too many"),
                " elements of ", TypeName(operand.type), " do not fit into region '", region.name,
                "' of ", region.bytes, " bytes");
  }
}

}  // namespace

void VerifyGroupTables(const Program& program, const Group& group, const std::string& where,
                       Faults* faults) {
  const size_t before = faults->count();
  VerifyDims(group, where, faults);
  if (group.operands.size() > kMaxOperands) {
    faults->Add(where, "has ", group.operands.size(), " operands; at most ", kMaxOperands);
  }
  if (faults->count() != before) return;
  for (size_t o = 0; o < group.operands.size() && !faults->full(); ++o) {
    const OperandDesc& operand = group.operands[o];
    const std::string text = where + ": " + OperandText(group, static_cast<int>(o));
    uint32_t dims_seen = 0;
    bool sane = operand.axes.size() <= kMaxAxes;
    if (!sane) faults->Add(text, "has ", operand.axes.size(), " axes; at most ", kMaxAxes);
    for (size_t a = 0; a < operand.axes.size() && sane; ++a) {
      sane = IsAxisSane(group, operand.axes[a], &dims_seen, Concat(text, ": axis ", a), faults);
    }
    if (std::isnan(operand.pad_value)) faults->Add(text, "its pad value is not a number");
    if (!sane) continue;
    if (operand.gather) VerifyGather(group, operand, text, faults);
    if (operand.diagonal) VerifyDiagonal(group, operand, text, faults);
    VerifyPlace(program, group, operand, text, faults);
    VerifyDram(program, operand, text, faults);
  }
}

}  // namespace dla::machine
