#include "runtime/shadow_cells.h"

#include <algorithm>

#include "support/status.h"

namespace dla::runtime {

using machine::DramLayout;
using machine::LocalLayout;
using machine::OperandDesc;

uint32_t Spaces::OfOperand(const OperandDesc& operand, int32_t group) {
  if (operand.gather) {
    return Named(Concat(operand.value, "' gathered by operand ", int{operand.gather->indices},
                        " of group ", group, ", '"));
  }
  if (operand.dram_layout != DramLayout::kNone) return operand.region + 1;
  if (operand.resident) {
    const int64_t buffer = BufferOf(operand, group);
    if (buffer >= 0) return kFirstBuffer + static_cast<uint32_t>(buffer);
  }
  return Named(operand.value);
}

uint32_t Spaces::Named(const std::string& name) {
  const auto [entry, is_new] =
      named_.emplace(name, kFirstName + static_cast<uint32_t>(names_.size()));
  if (is_new) names_.push_back(name);
  return entry->second;
}

int64_t Spaces::BufferOf(const OperandDesc& operand, int32_t group) const {
  // In the group in which a value takes the place of another both are there: the name decides.
  int64_t best = -1;
  std::pair<bool, int32_t> most = {false, 0};
  for (size_t i = 0; i < program_.buffers.size(); ++i) {
    const machine::BufferUse& b = program_.buffers[i];
    const std::pair key(b.name == operand.value, b.end_group - b.first_group);
    if (b.memory != operand.memory || operand.address < b.address ||
        operand.address >= b.address + b.bytes || group < b.first_group || group >= b.end_group ||
        key <= most) {
      continue;
    }
    most = key;
    best = static_cast<int64_t>(i);
  }
  return best;
}

std::string Spaces::Describe(const Cell& cell) const {
  if (cell.space == Cell::kNothing) return "nothing (never written)";
  std::string where;
  if (cell.space >= kFirstName) {
    where = Concat("element ", cell.element, " of '", names_[cell.space - kFirstName], "'");
  } else if (cell.space >= kFirstBuffer) {
    where = Concat("what lies at ", cell.element, " in the buffer of '",
                   program_.buffers[cell.space - kFirstBuffer].name, "'");
  } else {
    where =
        Concat("byte ", cell.element, " of region '", program_.regions[cell.space - 1].name, "'");
  }
  if (cell.partial == 0) return where;
  return Concat("a partial sum of ", cell.products, " products for ", where);
}

namespace {

// Of a gathered tile only the chip knows what it holds.
DramLayout LayoutOf(const OperandDesc& operand) {
  return operand.gather ? DramLayout::kNone : operand.dram_layout;
}

// Element strides of the axes as in Cell::element: bytes in DRAM, or row-major in the value.
AxisArray ElementSteps(const OperandDesc& operand, const Tile& tile) {
  AxisArray steps{};
  int64_t inner = 1;
  for (size_t a = operand.axes.size(); a-- > 0;) {
    switch (LayoutOf(operand)) {
      case DramLayout::kNone:
        steps[a] = operand.resident ? operand.axes[a].dram_stride * ElementBytes(operand) : inner;
        inner *= operand.axes[a].bound;
        break;
      case DramLayout::kStrided:
        steps[a] = operand.axes[a].dram_stride * ElementBytes(operand);
        break;
      case DramLayout::kPacked:
        steps[a] = inner * ElementBytes(operand);
        inner *= tile.length[a];
        break;
    }
  }
  return steps;
}

int64_t FirstElement(const OperandDesc& operand, const Tile& tile, const AxisArray& steps) {
  if (LayoutOf(operand) != DramLayout::kNone) {
    return DramOffset(operand, tile) * ElementBytes(operand);
  }
  int64_t element = operand.resident ? tile.address : 0;
  for (size_t a = 0; a < operand.axes.size(); ++a) element += tile.begin[a] * steps[a];
  return element;
}

// Of a tile that does not go round a ring.
std::vector<ElementRow> RowsOfPiece(const OperandDesc& operand, const Tile& tile) {
  const int64_t size = ElementBytes(operand);
  const AxisArray steps = ElementSteps(operand, tile);
  ElementRow row{.chip = tile.address,
                 .chip_step = size,
                 .element = FirstElement(operand, tile, steps),
                 .element_step = size,
                 .count = tile.elements};
  // Panels are one row: their order on chip is that of their packed form.
  if (operand.local_layout == LocalLayout::kPanels) return {row};
  row.chip += LocalOffset(operand, tile) * size;
  row.count = 1;
  std::vector<ElementRow> rows = {row};
  for (size_t a = 0; a < operand.axes.size(); ++a) {
    const int64_t chip_step = operand.axes[a].local_stride * size;
    if (a + 1 == operand.axes.size()) {
      for (ElementRow& r : rows) {
        r = {r.chip, chip_step, r.element, steps[a], tile.length[a]};
      }
      break;
    }
    std::vector<ElementRow> more;
    for (const ElementRow& r : rows) {
      for (int64_t i = 0; i < tile.length[a]; ++i) {
        more.push_back({r.chip + i * chip_step, 0, r.element + i * steps[a], 0, 1});
      }
    }
    rows = std::move(more);
  }
  return rows;
}

}  // namespace

std::vector<ElementRow> RowsOf(const OperandDesc& operand, const Tile& tile) {
  if (tile.elements == 0) return {};
  std::vector<ElementRow> rows;
  for (const Tile& piece : PiecesOf(operand, tile)) {
    const std::vector<ElementRow> more = RowsOfPiece(operand, piece);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

void CellArray::Set(int64_t offset, int64_t bytes, const Cell& cell) {
  const auto first = cells_.begin() + offset / granule_;
  std::fill(first, first + bytes / granule_, cell);
}

void CellArray::Take(const CellArray& from, int64_t begin, int64_t end) {
  std::copy(from.cells_.begin() + begin / granule_, from.cells_.begin() + end / granule_,
            cells_.begin() + begin / granule_);
}

const Cell* CellArray::Differs(int64_t offset, int64_t bytes, const Cell& expected) const {
  for (int64_t i = offset / granule_; i < (offset + bytes) / granule_; ++i) {
    const Cell& cell = cells_[static_cast<size_t>(i)];
    if (!(cell == expected)) return &cell;
  }
  return nullptr;
}

}  // namespace dla::runtime
