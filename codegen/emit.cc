#include "codegen/emit.h"

#include <algorithm>
#include <span>

#include "codegen/group_code.h"
#include "codegen/pack.h"
#include "ir/tensor.h"
#include "scheduler/axis_lengths.h"
#include "scheduler/dram.h"
#include "scheduler/packed_weight.h"
#include "scheduler/predict.h"
#include "scheduler/transfers.h"

namespace dla::codegen {
namespace {

using scheduler::kAccumulator;

size_t At(int i) { return static_cast<size_t>(i); }

class ProgramEmitter {
 public:
  explicit ProgramEmitter(const scheduler::Schedule& schedule)
      : graph_(schedule.graph), schedule_(schedule) {}

  Result<machine::Program> Run() {
    program_.target = schedule_.target;
    EmitRegions();
    for (const ir::ValueId v : graph_.inputs) program_.inputs.push_back(PortOf(v));
    for (const ir::ValueId v : graph_.outputs) program_.outputs.push_back(PortOf(v));
    for (int g = 0; g < static_cast<int>(schedule_.groups.size()); ++g) {
      DLA_RETURN_IF_ERROR(CheckLimits(schedule_.groups[At(g)]));
      EmitGroup(g);
    }
    EmitBuffers();
    return std::move(program_);
  }

 private:
  static machine::RegionKind KindOf(scheduler::DramKind kind) {
    switch (kind) {
      case scheduler::DramKind::kInput:
        return machine::RegionKind::kInput;
      case scheduler::DramKind::kOutput:
        return machine::RegionKind::kOutput;
      case scheduler::DramKind::kConstant:
      case scheduler::DramKind::kPackedWeight:
        return machine::RegionKind::kConstant;
      case scheduler::DramKind::kTemporary:
      case scheduler::DramKind::kSpill:
        return machine::RegionKind::kTemporary;
    }
    return machine::RegionKind::kTemporary;
  }

  void EmitRegions() {
    for (const scheduler::DramRegion& region : schedule_.regions) {
      program_.regions.push_back({.name = region.name,
                                  .kind = KindOf(region.kind),
                                  .address = region.address,
                                  .bytes = region.bytes});
    }
  }

  machine::Port PortOf(ir::ValueId v) const {
    const ir::Value& value = graph_.values[At(v)];
    const int region = scheduler::FindValueRegion(schedule_, v);
    DLA_CHECK(region >= 0, "no region for '", value.name, "'");
    return {.name = value.name,
            .type = value.type,
            .shape = value.shape,
            .region = static_cast<uint32_t>(region)};
  }

  static Status CheckLimits(const scheduler::ScheduledGroup& group) {
    const ir::Nest& nest = group.nest;
    const auto fills = static_cast<size_t>(
        std::count_if(group.mapping.operands.begin(), group.mapping.operands.end(),
                      [](const scheduler::OperandPlace& place) { return place.fill_bytes > 0; }));
    bool fits = nest.dimensions.size() + fills <= machine::kMaxDims &&
                nest.operands.size() + 1 + fills <= machine::kMaxOperands &&
                nest.program.ops.size() <= kMaxMicroOps;
    for (const ir::Operand& operand : nest.operands) {
      fits = fits && operand.axes.size() <= machine::kMaxAxes;
      for (const ir::Axis& axis : operand.axes) {
        fits = fits && axis.terms.size() <= machine::kMaxTerms;
      }
    }
    if (fits) return Status();
    return Unsupported("node '", group.name, "' (", group.op, ") needs more dimensions, axes or ",
                       "operands than the instruction set has");
  }

  void EmitGroup(int g) {
    const scheduler::ScheduledGroup& scheduled = schedule_.groups[At(g)];
    machine::Group group = {.name = scheduled.name, .onnx_nodes = scheduled.onnx_nodes};
    for (size_t d = 0; d < scheduled.nest.dimensions.size(); ++d) {
      const ir::Dimension& dimension = scheduled.nest.dimensions[d];
      group.dims.push_back({dimension.name, dimension.extent, scheduled.mapping.block[d],
                            scheduler::Blocks(scheduled.mapping).Lead(static_cast<int>(d)),
                            dimension.repeated});
    }
    if (scheduled.cascade >= 0) {
      group.cascade = scheduled.cascade;
      group.stripe_dim = static_cast<uint8_t>(scheduled.mapping.stripe.dimension);
    }
    for (int o = 0; o <= scheduled.nest.output(); ++o) {
      group.operands.push_back(DescribeOperand(g, o));
    }
    if (scheduled.nest.anchor == ir::Anchor::kContraction) {
      group.operands.push_back(DescribeAccumulators(g));
    }
    // Behind everything else, the values that stay in a scratchpad from which tiles are moved.
    for (int o = 0; o < scheduled.nest.output(); ++o) {
      if (scheduled.mapping.operands[At(o)].source >= 0) {
        group.operands.push_back(DescribeSource(g, o));
      }
    }
    // Then the values that are loaded whole, each as one row of elements.
    for (int o = 0; o < scheduled.nest.output(); ++o) {
      if (scheduled.mapping.operands[At(o)].fill_bytes > 0) DescribeFill(g, o, &group);
    }
    group.joined = scheduled.joined;
    EmitCode(schedule_, scheduled, &group);
    program_.groups.push_back(std::move(group));
    program_.predicted.push_back(scheduled.predicted);
    if (scheduler::LoadsOnce(schedule_)) program_.steady.push_back(scheduled.steady);
  }

  // The axes with the strides of a dense tile.
  std::vector<machine::AxisDesc> AxesOf(const scheduler::ScheduledGroup& group,
                                        const ir::Operand& operand) const {
    std::vector<machine::AxisDesc> axes;
    for (const ir::Axis& axis : operand.axes) {
      machine::AxisDesc desc = {
          .offset = axis.offset, .bound = axis.bound, .dram_stride = axis.stride};
      for (const ir::Term& term : axis.terms) {
        desc.terms.push_back(
            {static_cast<uint8_t>(term.dimension), static_cast<int32_t>(term.coefficient)});
      }
      axes.push_back(std::move(desc));
    }
    int64_t stride = 1;
    for (size_t a = axes.size(); a-- > 0;) {
      axes[a].local_stride = stride;
      stride *= scheduler::LengthsOf(group.nest, operand.axes[a], group.mapping, -1).longest;
    }
    return axes;
  }

  machine::OperandDesc DescribeOperand(int g, int o) const {
    const scheduler::ScheduledGroup& group = schedule_.groups[At(g)];
    const ir::Operand& operand = group.nest.operands[At(o)];
    if (operand.is_local) return DescribeLocal(g, o);
    machine::OperandDesc desc = {.value = graph_.values[At(operand.value)].name,
                                 .cls = operand.cls,
                                 .type = operand.type,
                                 .read_as = operand.read_as,
                                 .axes = AxesOf(group, operand),
                                 .pad_value = operand.pad_value};
    const ir::ValueId root = graph_.values[At(operand.value)].storage.root;
    if (group.mapping.operands[At(o)].resident) {
      PlaceResident(g, root, operand, &desc);
      const scheduler::OperandPlace& place = group.mapping.operands[At(o)];
      const bool fills = place.through_dram && o != group.nest.output();
      if (fills && group.mapping.stripe.dimension >= 0) {
        desc.rolling_dims = static_cast<uint16_t>(1u << group.mapping.stripe.dimension);
      }
      return desc;
    }
    if (group.mapping.operands[At(o)].source >= 0) {
      PlaceTile(group, o, &desc);
      return desc;
    }
    const bool packed = scheduler::IsPackedWeight(group.nest, o);
    const int region = packed ? scheduler::FindPackedWeight(schedule_, g)
                              : scheduler::FindValueRegion(schedule_, root);
    DLA_CHECK(region >= 0, "no region for '", desc.value, "'");
    desc.dram_layout = packed ? machine::DramLayout::kPacked : machine::DramLayout::kStrided;
    desc.region = static_cast<uint32_t>(region);
    desc.dram_base = packed ? 0 : operand.base;
    if (operand.gather) {
      desc.gather = {.indices = static_cast<uint8_t>(operand.gather->indices),
                     .bound = operand.gather->bound,
                     .stride = operand.gather->stride};
    }
    if (packed) desc.local_layout = machine::LocalLayout::kPanels;
    if (const auto& diagonal = operand.diagonal) {
      desc.diagonal = {.channel_dim = static_cast<uint8_t>(diagonal->channel_dimension),
                       .depth_dim = static_cast<uint8_t>(diagonal->depth_dimension),
                       .channels = diagonal->channels,
                       .depths = diagonal->depths};
    }
    // A drained output lies where the accumulators lie, a moved value where it was loaded.
    int buffer = o;
    if (o == group.nest.output() && scheduler::DrainsInPlace(group.nest, group.mapping)) {
      buffer = kAccumulator;
    }
    if (group.nest.anchor == ir::Anchor::kMove && o == group.nest.output()) buffer = 0;
    PlaceTile(group, buffer, &desc);
    return desc;
  }

  // The resident value from which the move engine takes the tiles of operand o.
  machine::OperandDesc DescribeSource(int g, int o) const {
    const scheduler::ScheduledGroup& group = schedule_.groups[At(g)];
    const ir::Operand& operand = group.nest.operands[At(o)];
    machine::OperandDesc desc = {.value = graph_.values[At(operand.value)].name,
                                 .cls = WriterClass(g, operand),
                                 .type = operand.type,
                                 .read_as = operand.read_as,
                                 .axes = AxesOf(group, operand),
                                 .pad_value = operand.pad_value};
    PlaceResident(g, graph_.values[At(operand.value)].storage.root, operand, &desc);
    return desc;
  }

  // All of the value of which operand o is (a part), along a dimension of its own.
  void DescribeFill(int g, int o, machine::Group* group) const {
    const scheduler::ScheduledGroup& scheduled = schedule_.groups[At(g)];
    const scheduler::OperandPlace& place = scheduled.mapping.operands[At(o)];
    machine::OperandDesc desc = group->operands[At(o)];
    const int64_t elements = place.fill_bytes / TypeBytes(desc.type, 1);
    desc.axes = {{.terms = {{static_cast<uint8_t>(group->dims.size()), 1}},
                  .bound = elements,
                  .dram_stride = 1,
                  .local_stride = 1}};
    desc.address -= TypeBytes(desc.type, desc.dram_base);
    desc.dram_base = 0;
    desc.slot_bytes = place.fill_bytes;
    desc.pad_value = 0;
    desc.read_as = std::nullopt;
    desc.once = place.once;
    group->dims.push_back({Concat("whole ", o), elements, elements});
    group->operands.push_back(std::move(desc));
  }

  // The class under which the group before wrote the value: its scratchpad holds that.
  OperandClass WriterClass(int g, const ir::Operand& operand) const {
    const ir::ValueId root = graph_.values[At(operand.value)].storage.root;
    for (int writer = g; writer-- > 0;) {
      const ir::Operand& output = schedule_.groups[At(writer)].nest.operands.back();
      if (graph_.values[At(output.value)].storage.root == root) return output.cls;
    }
    return operand.cls;
  }

  // A running value: it never leaves the chip.
  machine::OperandDesc DescribeLocal(int g, int o) const {
    const scheduler::ScheduledGroup& group = schedule_.groups[At(g)];
    const ir::Operand& operand = group.nest.operands[At(o)];
    machine::OperandDesc desc = {.value = NameOfBuffer(group, o),
                                 .cls = operand.cls,
                                 .type = operand.type,
                                 .axes = AxesOf(group, operand)};
    PlaceTile(group, o, &desc);
    return desc;
  }

  machine::OperandDesc DescribeAccumulators(int g) const {
    const scheduler::ScheduledGroup& group = schedule_.groups[At(g)];
    const ir::Operand& output = group.nest.operands.back();
    machine::OperandDesc desc = {.value = graph_.values[At(output.value)].name,
                                 .cls = OperandClass::kPartial,
                                 .type = scheduler::AccumulatorType(group.nest, schedule_.target),
                                 .axes = AxesOf(group, output)};
    const int region =
        scheduler::FindRegion(schedule_, scheduler::DramKind::kSpill, ir::kNoValue, g);
    if (region >= 0) {
      desc.dram_layout = machine::DramLayout::kPacked;
      desc.region = static_cast<uint32_t>(region);
    }
    PlaceTile(group, kAccumulator, &desc);
    return desc;
  }

  static void PlaceTile(const scheduler::ScheduledGroup& group, int operand,
                        machine::OperandDesc* desc) {
    const scheduler::TileBuffer* buffer = scheduler::FindBuffer(group, operand);
    if (buffer == nullptr) {
      // Every tile of the operand is clipped to nothing (a window that only sees padding).
      desc->memory = static_cast<uint8_t>(operand == kAccumulator
                                              ? group.mapping.accumulator.memory
                                              : group.mapping.operands[At(operand)].memory);
      return;
    }
    desc->memory = static_cast<uint8_t>(buffer->memory);
    desc->address = buffer->address;
    desc->slot_bytes = buffer->slot_bytes;
    desc->ring_slots = static_cast<uint8_t>(buffer->slots);
    desc->generation_dims =
        static_cast<uint16_t>(scheduler::GenerationDims(group.nest, group.mapping, operand));
  }

  void PlaceResident(int g, ir::ValueId root, const ir::Operand& operand,
                     machine::OperandDesc* desc) const {
    const auto it = std::find_if(schedule_.residents.begin(), schedule_.residents.end(),
                                 [&](const scheduler::Resident& r) {
                                   return r.root == root && r.first_group <= g && g < r.end_group;
                                 });
    DLA_CHECK(it != schedule_.residents.end(), "'", desc->value, "' is not resident");
    const int64_t base_bytes = TypeBytes(operand.type, operand.base);
    desc->resident = true;
    desc->memory = static_cast<uint8_t>(it->memory);
    desc->address = it->address + base_bytes;
    desc->slot_bytes = it->bytes - base_bytes;
    const scheduler::Ring& ring = it->ring;
    for (machine::AxisDesc& axis : desc->axes) {
      axis.local_stride = axis.dram_stride;
      if (ring.lines == 0) continue;
      DLA_CHECK(operand.base == 0, "a part of '", desc->value, "' lies in a ring");
      if (axis.dram_stride == ring.line_stride && axis.bound == ring.bound) {
        axis.ring = ring.lines;
      } else if (axis.dram_stride > ring.line_stride) {
        axis.local_stride = axis.dram_stride / ring.bound * ring.lines;
      }
    }
    // Where DRAM has the value, too, that is what its elements are known by.
    const int region = scheduler::FindValueRegion(schedule_, root);
    if (region < 0) return;
    desc->dram_layout = machine::DramLayout::kStrided;
    desc->region = static_cast<uint32_t>(region);
    desc->dram_base = operand.base;
  }

  std::string NameOfBuffer(const scheduler::ScheduledGroup& group, int operand) const {
    const std::string& output = graph_.values[At(group.nest.operands.back().value)].name;
    if (operand == kAccumulator) return output + " (partial sums)";
    if (group.nest.operands[At(operand)].is_local) return output + " (running value)";
    return graph_.values[At(group.nest.operands[At(operand)].value)].name;
  }

  void EmitBuffers() {
    for (const scheduler::Resident& r : schedule_.residents) {
      program_.buffers.push_back({.name = graph_.values[At(r.root)].name,
                                  .memory = static_cast<uint8_t>(r.memory),
                                  .address = r.address,
                                  .bytes = r.bytes,
                                  .first_group = r.first_group,
                                  .end_group = r.end_group});
    }
    for (size_t g = 0; g < schedule_.groups.size(); ++g) {
      const scheduler::ScheduledGroup& group = schedule_.groups[g];
      for (const scheduler::TileBuffer& b : group.buffers) {
        const scheduler::GroupSpan life = scheduler::LifeOf(schedule_, static_cast<int>(g), b);
        program_.buffers.push_back({.name = NameOfBuffer(group, b.operand),
                                    .memory = static_cast<uint8_t>(b.memory),
                                    .address = b.address,
                                    .bytes = b.slot_bytes * b.slots,
                                    .first_group = life.first,
                                    .end_group = life.end});
      }
    }
  }

  const ir::Graph& graph_;
  const scheduler::Schedule& schedule_;
  machine::Program program_;
};

}  // namespace

Result<machine::Program> Emit(const scheduler::Schedule& schedule) {
  return ProgramEmitter(schedule).Run();
}

Status AppendConstant(const scheduler::Schedule& schedule, size_t region,
                      const machine::ByteSink& append) {
  const scheduler::DramRegion& r = schedule.regions[region];
  const ir::Value& value = schedule.graph.values[At(r.root)];
  std::vector<uint8_t> converted;
  std::span<const uint8_t> stored;
  if (value.StoredType() == value.type) {  // from where it lies, without a copy
    stored = {value.constant->bytes, static_cast<size_t>(value.constant->size_bytes)};
  } else {
    converted = ir::StoredConstant(value);
    stored = converted;
  }
  if (r.kind != scheduler::DramKind::kPackedWeight) return append(stored);
  const scheduler::ScheduledGroup& group = schedule.groups[At(r.group)];
  return PackWeights(group.nest, group.mapping, stored, append);
}

std::vector<uint8_t> ConstantSpace(const scheduler::Schedule& schedule,
                                   const machine::Program& program) {
  std::vector<uint8_t> space;
  for (size_t r = 0; r < program.regions.size(); ++r) {
    if (program.regions[r].kind != machine::RegionKind::kConstant) continue;
    space.resize(static_cast<size_t>(program.regions[r].address));
    const Status status = AppendConstant(schedule, r, [&](std::span<const uint8_t> bytes) {
      space.insert(space.end(), bytes.begin(), bytes.end());
      return Status();
    });
    DLA_CHECK(status.ok(), status.message());
  }
  return space;
}

}  // namespace dla::codegen
