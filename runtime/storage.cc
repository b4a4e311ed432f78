#include "runtime/storage.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "runtime/strided_copy.h"

namespace dla::runtime {

static_assert(std::endian::native == std::endian::little, "programs are little-endian");

using machine::DramLayout;
using machine::LocalLayout;
using machine::OperandDesc;
using machine::Region;
using machine::RegionKind;

namespace {

// Does the tile leave no holes on chip? Panels never do.
bool WithoutHoles(const OperandDesc& operand, const Tile& tile) {
  if (operand.local_layout == LocalLayout::kPanels) return true;
  int64_t stride = 1;
  for (size_t a = operand.axes.size(); a-- > 0;) {
    if (tile.length[a] != 1 && operand.axes[a].local_stride != stride) return false;
    stride *= tile.length[a];
  }
  return true;
}

// Strides of the tile in a packed form: without holes, in the order of the strides on chip.
AxisArray PackedStrides(const OperandDesc& operand, const Tile& tile) {
  std::array<size_t, machine::kMaxAxes> order;
  for (size_t a = 0; a < operand.axes.size(); ++a) order[a] = a;
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(operand.axes.size());
  std::stable_sort(order.begin(), end, [&operand](size_t a, size_t b) {
    return operand.axes[a].local_stride > operand.axes[b].local_stride;
  });
  AxisArray strides{};
  int64_t stride = 1;
  for (size_t i = operand.axes.size(); i-- > 0;) {
    if (tile.length[order[i]] == 1) continue;
    strides[order[i]] = stride;
    stride *= tile.length[order[i]];
  }
  return strides;
}

// The box between DRAM and chip; `to_chip` says which side is the target.
CopyBox BoxOf(const OperandDesc& operand, const Tile& tile, bool to_chip) {
  CopyBox box;
  const bool packed = operand.dram_layout == DramLayout::kPacked;
  const AxisArray packed_strides = packed ? PackedStrides(operand, tile) : AxisArray{};
  for (size_t a = 0; a < operand.axes.size(); ++a) {
    const int64_t dram = packed ? packed_strides[a] : operand.axes[a].dram_stride;
    const int64_t chip = operand.axes[a].local_stride;
    box.Add(tile.length[a], to_chip ? chip : dram, to_chip ? dram : chip);
  }
  return box;
}

int64_t ChipByte(const OperandDesc& operand, const Tile& tile) {
  const bool dense = operand.local_layout == LocalLayout::kDense;
  return tile.address + (dense ? LocalOffset(operand, tile) * ElementBytes(operand) : 0);
}

// A loop over the indices of a gathered tile; strides in elements.
struct GatherLoop {
  int64_t length = 1;
  int64_t to_stride = 0, from_stride = 0, index_stride = 0;
};

// The integer of that type, as one of 64 bits; sets `is_huge` where it does not fit.
int64_t IntegerAt(ElementType type, const uint8_t* at, bool* is_huge) {
  const auto read = [at](auto value) {
    std::memcpy(&value, at, sizeof(value));
    return value;
  };
  switch (type) {
    case ElementType::kI8:
      return read(int8_t{});
    case ElementType::kU8:
      return read(uint8_t{});
    case ElementType::kI16:
      return read(int16_t{});
    case ElementType::kU16:
      return read(uint16_t{});
    case ElementType::kI32:
      return read(int32_t{});
    case ElementType::kU32:
      return read(uint32_t{});
    default:
      break;
  }
  const int64_t value = read(int64_t{});
  *is_huge = type == ElementType::kU64 && value < 0;
  return value;
}

// The number of the entry that an index names; nothing if there is none.
std::optional<int64_t> EntryAt(ElementType type, const uint8_t* at, int64_t bound) {
  bool is_huge = false;
  const int64_t index = IntegerAt(type, at, &is_huge);
  if (is_huge || index < -bound || index >= bound) return std::nullopt;
  return index < 0 ? index + bound : index;
}

}  // namespace

Storage::Storage(const machine::Program& program) : program_(&program) {
  std::array<int64_t, 4> bytes{};
  for (const Region& region : program.regions) {
    int64_t& end = bytes[static_cast<size_t>(region.kind)];
    end = std::max(end, region.address + region.bytes);
  }
  for (size_t kind = 0; kind < bytes.size(); ++kind) {
    if (kind == static_cast<size_t>(RegionKind::kConstant)) continue;
    dram_[kind].resize(static_cast<size_t>(bytes[kind]));
  }
  for (const machine::Memory& memory : program.target.memories) {
    scratchpads_.emplace_back(static_cast<size_t>(memory.bytes));
  }
}

void Storage::ForgetRun() {
  constexpr uint8_t kLost = 0xff;  // no number, whatever the float type
  for (const RegionKind kind : {RegionKind::kOutput, RegionKind::kTemporary}) {
    std::vector<uint8_t>& space = dram_[static_cast<size_t>(kind)];
    std::fill(space.begin(), space.end(), kLost);
  }
  const std::vector<std::vector<uint8_t>> before = std::exchange(scratchpads_, {});
  for (const std::vector<uint8_t>& bytes : before) scratchpads_.emplace_back(bytes.size(), kLost);
  ForEachKept(*program_, [&](const OperandDesc& o) {
    const auto from = before[o.memory].begin() + o.address;
    std::copy(from, from + o.slot_bytes, scratchpads_[o.memory].begin() + o.address);
  });
}

const uint8_t* Storage::ReadRegion(uint32_t region) const {
  const Region& r = program_->regions[region];
  if (r.kind == RegionKind::kConstant) return program_->constants.bytes.data() + r.address;
  return dram_[static_cast<size_t>(r.kind)].data() + r.address;
}

uint8_t* Storage::WriteRegion(uint32_t region) {
  const Region& r = program_->regions[region];
  DLA_CHECK(r.kind != RegionKind::kConstant, r.name);
  return dram_[static_cast<size_t>(r.kind)].data() + r.address;
}

Status Storage::CheckBounds(const OperandDesc& operand, const Tile& tile, bool dram) const {
  const int64_t size = ElementBytes(operand);
  const bool strided = operand.dram_layout == DramLayout::kStrided;
  int64_t chip_last = operand.local_layout == LocalLayout::kDense ? 0 : tile.elements - 1;
  int64_t dram_last = strided ? 0 : tile.elements - 1;
  for (size_t a = 0; a < operand.axes.size(); ++a) {
    if (operand.local_layout == LocalLayout::kDense) {
      chip_last += (tile.length[a] - 1) * operand.axes[a].local_stride;
    }
    if (strided) dram_last += (tile.length[a] - 1) * operand.axes[a].dram_stride;
  }
  const machine::Memory& memory = program_->target.memories[operand.memory];
  const int64_t chip_begin = ChipByte(operand, tile);
  if (chip_begin < 0 || chip_begin + (chip_last + 1) * size > memory.bytes) {
    return Malformed("operand '", operand.value, "': bytes [", chip_begin, ", ",
                     chip_begin + (chip_last + 1) * size, ") leave memory '", memory.name,
                     "', which has ", memory.bytes);
  }
  if (!dram) return Status();
  if (operand.gather) dram_last += (operand.gather->bound - 1) * operand.gather->stride;
  const int64_t dram_begin = DramOffset(operand, tile);
  if (dram_begin < 0 || (dram_begin + dram_last + 1) * size > RegionBytes(operand.region)) {
    return Malformed("operand '", operand.value, "': elements [", dram_begin, ", ",
                     dram_begin + dram_last + 1, ") leave region '",
                     program_->regions[operand.region].name, "', which has ",
                     RegionBytes(operand.region), " bytes");
  }
  return Status();
}

Status Storage::Load(const OperandDesc& operand, const Tile& tile) {
  for (const Tile& piece : PiecesOf(operand, tile)) {
    DLA_RETURN_IF_ERROR(LoadPiece(operand, piece));
  }
  return Status();
}

Status Storage::LoadPiece(const OperandDesc& operand, const Tile& tile) {
  DLA_RETURN_IF_ERROR(CheckBounds(operand, tile, true));
  const int64_t size = ElementBytes(operand);
  uint8_t* to = Scratchpad(operand.memory) + ChipByte(operand, tile);
  const uint8_t* from = ReadRegion(operand.region) + DramOffset(operand, tile) * size;
  if (operand.dram_layout == DramLayout::kPacked && WithoutHoles(operand, tile)) {
    std::memcpy(to, from, static_cast<size_t>(tile.elements * size));
    return Status();
  }
  if (operand.local_layout == LocalLayout::kPanels) {
    return Malformed("operand '", operand.value, "': panels that are not packed in DRAM");
  }
  BoxOf(operand, tile, true).Run(to, from, size);
  return Status();
}

Status Storage::NoEntry(const OperandDesc& operand, const OperandDesc& indices,
                        const uint8_t* at) const {
  bool is_huge = false;
  const int64_t index = IntegerAt(indices.type, at, &is_huge);
  const auto name = [&](const OperandDesc& o) {  // of the value that it is a part of
    const bool known = o.dram_layout != DramLayout::kNone;
    return known ? program_->regions[o.region].name : o.value;
  };
  return Malformed("index ", is_huge ? Concat(static_cast<uint64_t>(index)) : std::to_string(index),
                   " in '", name(indices), "' is outside the ", operand.gather->bound,
                   " entries of '", name(operand), "'");
}

Status Storage::Gather(const machine::Group& group, const OperandDesc& operand, const Tile& tile,
                       const Step& step) {
  const machine::GatherDesc& gather = *operand.gather;
  const OperandDesc& indices = group.operands[gather.indices];
  const Tile index_tile = TileOf(group, indices, step);
  DLA_RETURN_IF_ERROR(CheckBounds(indices, index_tile, false));
  DLA_RETURN_IF_ERROR(CheckBounds(operand, tile, true));
  const int64_t size = ElementBytes(operand);
  const uint32_t gathered = GatheredAxes(group, operand);
  CopyBox entry;                  // what one index moves
  std::vector<GatherLoop> loops;  // over the indices of the tile
  for (size_t a = 0; a < operand.axes.size(); ++a) {
    const machine::AxisDesc& axis = operand.axes[a];
    if ((gathered >> a & 1U) == 0) {
      entry.Add(tile.length[a], axis.local_stride, axis.dram_stride);
      continue;
    }
    GatherLoop loop = {
        .length = tile.length[a], .to_stride = axis.local_stride, .from_stride = axis.dram_stride};
    for (const machine::AxisDesc& other : indices.axes) {
      if (other.terms == axis.terms) loop.index_stride = other.local_stride;
    }
    loops.push_back(loop);
  }
  uint8_t* to = Scratchpad(operand.memory) + ChipByte(operand, tile);
  const uint8_t* from = ReadRegion(operand.region) + DramOffset(operand, tile) * size;
  const uint8_t* list = Scratchpad(indices.memory) + ChipByte(indices, index_tile);
  std::vector<int64_t> position(loops.size(), 0);
  while (true) {
    int64_t to_element = 0, from_element = 0, index_element = 0;
    for (size_t i = 0; i < loops.size(); ++i) {
      to_element += position[i] * loops[i].to_stride;
      from_element += position[i] * loops[i].from_stride;
      index_element += position[i] * loops[i].index_stride;
    }
    const std::optional<int64_t> index =
        EntryAt(indices.type, list + index_element * ElementBytes(indices), gather.bound);
    if (!index) return NoEntry(operand, indices, list + index_element * ElementBytes(indices));
    CopyBox box = entry;
    box.Run(to + to_element * size, from + (from_element + *index * gather.stride) * size, size);
    size_t i = loops.size();
    while (i > 0 && ++position[i - 1] == loops[i - 1].length) position[--i] = 0;
    if (i == 0) return Status();
  }
}

Status Storage::Store(const OperandDesc& operand, const Tile& tile) {
  for (const Tile& piece : PiecesOf(operand, tile)) {
    DLA_RETURN_IF_ERROR(StorePiece(operand, piece));
  }
  return Status();
}

Status Storage::StorePiece(const OperandDesc& operand, const Tile& tile) {
  DLA_RETURN_IF_ERROR(CheckBounds(operand, tile, true));
  if (operand.local_layout == LocalLayout::kPanels) {
    return Malformed("operand '", operand.value, "': panels cannot be stored");
  }
  const RegionKind kind = program_->regions[operand.region].kind;
  if (kind == RegionKind::kConstant || kind == RegionKind::kInput) {
    return Malformed("operand '", operand.value, "': stored into region '",
                     program_->regions[operand.region].name, "', which is read only");
  }
  const int64_t size = ElementBytes(operand);
  const uint8_t* from = Scratchpad(operand.memory) + ChipByte(operand, tile);
  uint8_t* to = WriteRegion(operand.region) + DramOffset(operand, tile) * size;
  BoxOf(operand, tile, false).Run(to, from, size);
  return Status();
}

Status Storage::Move(const OperandDesc& from, const Tile& from_tile, const OperandDesc& to,
                     const Tile& to_tile) {
  DLA_RETURN_IF_ERROR(CheckBounds(from, from_tile, false));
  DLA_RETURN_IF_ERROR(CheckBounds(to, to_tile, false));
  const int64_t size = ElementBytes(to);
  if (from_tile.length != to_tile.length || ElementBytes(from) != size ||
      from.local_layout != LocalLayout::kDense || to.local_layout != LocalLayout::kDense) {
    return Malformed("operand '", from.value, "' and operand '", to.value,
                     "' of a move differ in shape, type or layout");
  }
  CopyBox box;
  for (size_t a = 0; a < to.axes.size(); ++a) {
    box.Add(to_tile.length[a], to.axes[a].local_stride, from.axes[a].local_stride);
  }
  box.Run(Scratchpad(to.memory) + ChipByte(to, to_tile),
          Scratchpad(from.memory) + ChipByte(from, from_tile), size);
  return Status();
}

}  // namespace dla::runtime
