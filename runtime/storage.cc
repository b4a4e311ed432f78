#include "runtime/storage.h"

#include <algorithm>
#include <bit>
#include <cstring>

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
