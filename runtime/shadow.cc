#include "runtime/shadow.h"

#include <algorithm>
#include <ios>
#include <numeric>
#include <sstream>

namespace dla::runtime {
namespace {

using machine::Group;
using machine::Instruction;
using machine::kNone;
using machine::OperandDesc;
using machine::Program;
using machine::RegionKind;

// The largest unit of bytes that all elements in a memory consist of.
int64_t GranuleOf(const Program& program, size_t memory) {
  int64_t granule = 8;
  for (const Group& group : program.groups) {
    for (const OperandDesc& o : group.operands) {
      if (o.memory != memory) continue;
      granule = std::gcd(granule, std::gcd(ElementBytes(o), std::gcd(o.address, o.slot_bytes)));
    }
  }
  return granule;
}

bool IsWritten(RegionKind kind) {
  return kind == RegionKind::kTemporary || kind == RegionKind::kOutput;
}

int64_t RegionGranule(const Program& program, size_t region) {
  int64_t granule = 8;
  for (const Group& group : program.groups) {
    for (const OperandDesc& o : group.operands) {
      if (o.dram_layout == machine::DramLayout::kNone || o.region != region) continue;
      granule = std::gcd(granule, ElementBytes(o));
    }
  }
  return granule;
}

// Reduction points in `mask` of this step, and of all steps before it of the same output tile.
struct Products {
  int64_t now = 1, before = 0;
};
Products ProductsOf(const Group& group, uint16_t mask, const Step& step) {
  Products products;
  int64_t inner = 1;  // extents of the dimensions that are not walked yet
  const auto reduces = [mask](size_t d) { return (mask >> d & 1) != 0; };
  for (size_t d = 0; d < group.dims.size(); ++d) inner *= reduces(d) ? group.dims[d].extent : 1;
  for (const uint8_t d : group.loops) {
    if (!reduces(d)) continue;
    inner /= group.dims[d].extent;
    products.before += products.now * step.start[d] * inner;
    products.now *= step.length[d];
  }
  products.now *= inner;
  return products;
}

std::string Hex(int64_t value) {
  std::ostringstream out;
  out << "0x" << std::hex << value;
  return out.str();
}

}  // namespace

Shadow::Shadow(const Program& program) : program_(program), spaces_(program) {
  for (size_t m = 0; m < program.target.memories.size(); ++m) {
    scratchpads_.emplace_back(program.target.memories[m].bytes, GranuleOf(program, m));
  }
  for (size_t r = 0; r < program.regions.size(); ++r) {
    const bool written = IsWritten(program.regions[r].kind);
    regions_.emplace_back(written ? program.regions[r].bytes : 0, RegionGranule(program, r));
  }
}

Cell Shadow::CellOf(const OperandDesc& operand) {
  return {.space = spaces_.OfOperand(operand, group_)};
}

Status Shadow::ExpectInMemory(const OperandDesc& operand, int64_t address, const Cell& expected,
                              const char* reader) const {
  const Cell* found =
      scratchpads_[operand.memory].Differs(address, ElementBytes(operand), expected);
  if (found == nullptr) return Status();
  return Malformed(reader, " reads operand '", operand.value, "' at '",
                   program_.target.memories[operand.memory].name, "' ", Hex(address), ": expected ",
                   spaces_.Describe(expected), ", found ", spaces_.Describe(*found));
}

Status Shadow::Expect(const OperandDesc& operand, const Tile& tile, Cell expected,
                      const char* reader) const {
  for (const ElementRow& row : RowsOf(operand, tile)) {
    for (int64_t i = 0; i < row.count; ++i) {
      expected.element = row.element + i * row.element_step;
      DLA_RETURN_IF_ERROR(ExpectInMemory(operand, row.chip + i * row.chip_step, expected, reader));
    }
  }
  return Status();
}

void Shadow::Write(const OperandDesc& operand, const Tile& tile, Cell cell) {
  for (const ElementRow& row : RowsOf(operand, tile)) {
    for (int64_t i = 0; i < row.count; ++i) {
      cell.element = row.element + i * row.element_step;
      scratchpads_[operand.memory].Set(row.chip + i * row.chip_step, ElementBytes(operand), cell);
    }
  }
}

Status Shadow::Gather(const Group& group, const OperandDesc& operand, const Tile& tile,
                      const Step& step) {
  const OperandDesc& indices = group.operands[operand.gather->indices];
  DLA_RETURN_IF_ERROR(Expect(indices, TileOf(group, indices, step), CellOf(indices), "gather"));
  if (IsWritten(program_.regions[operand.region].kind)) {
    // As the same tile of each entry in turn: the identity of what lies in DRAM.
    OperandDesc entry = operand;
    entry.gather.reset();
    for (int64_t i = 0; i < operand.gather->bound; ++i) {
      entry.dram_base = operand.dram_base + i * operand.gather->stride;
      for (const ElementRow& row : RowsOf(entry, tile)) {
        for (int64_t k = 0; k < row.count; ++k) {
          const int64_t byte = row.element + k * row.element_step;
          if (regions_[operand.region].At(byte).space != Cell::kNothing) continue;
          return Malformed("gather from operand '", operand.value, "': byte ", byte, " of region '",
                           program_.regions[operand.region].name, "' was never stored");
        }
      }
    }
  }
  Write(operand, tile, CellOf(operand));
  return Status();
}

Status Shadow::Load(const Group& group, const OperandDesc& operand, const Tile& tile,
                    const Step& step) {
  if (operand.gather) return Gather(group, operand, tile, step);
  const bool written = IsWritten(program_.regions[operand.region].kind);
  const int64_t size = ElementBytes(operand);
  Cell cell = CellOf(operand);
  for (const ElementRow& row : RowsOf(operand, tile)) {
    for (int64_t i = 0; i < row.count; ++i) {
      cell.element = row.element + i * row.element_step;
      Cell loaded = cell;
      if (written) {
        loaded = regions_[operand.region].At(cell.element);
        // A spilled accumulator keeps its count; anything else must be the finished element.
        if (loaded.space == Cell::kNothing) {
          return Malformed("load of operand '", operand.value, "': byte ", cell.element,
                           " of region '", program_.regions[operand.region].name,
                           "' was never stored");
        }
      }
      scratchpads_[operand.memory].Set(row.chip + i * row.chip_step, size, loaded);
    }
  }
  return Status();
}

const OperandDesc* Shadow::LoadedInto(const Group& group, uint8_t stored) const {
  const OperandDesc& target = group.operands[stored];
  const OperandDesc* loaded = nullptr;
  const auto note = [&](uint8_t operand) {
    const OperandDesc& o = group.operands[operand];
    if (o.memory == target.memory && o.address == target.address) loaded = &o;
  };
  for (const Instruction& i : group.body) {
    const bool computes = i.op == machine::Opcode::kArray || i.op == machine::Opcode::kVector ||
                          i.op == machine::Opcode::kMove;
    if (computes) return nullptr;
    if (i.op == machine::Opcode::kLoad) note(i.operand);
  }
  for (const uint8_t operand : group.prefetch) note(operand);
  return loaded;
}

Status Shadow::Store(const Group& group, uint8_t number, const Step& step) {
  const OperandDesc& operand = group.operands[number];
  const Tile tile = TileOf(group, operand, step);
  const OperandDesc* loaded = LoadedInto(group, number);
  if (loaded != nullptr) {  // data passes through the buffer as it was loaded
    DLA_RETURN_IF_ERROR(Expect(*loaded, TileOf(group, *loaded, step), CellOf(*loaded), "store"));
  }
  const int64_t size = ElementBytes(operand);
  Cell expected = CellOf(operand);
  for (const ElementRow& row : RowsOf(operand, tile)) {
    for (int64_t i = 0; i < row.count; ++i) {
      expected.element = row.element + i * row.element_step;
      const int64_t address = row.chip + i * row.chip_step;
      if (operand.cls == OperandClass::kPartial) {
        // However many products it has; the next step that accumulates counts them.
        const Cell& found = scratchpads_[operand.memory].At(address);
        expected.partial = found.partial;
        expected.products = found.products;
      }
      if (loaded == nullptr) {
        DLA_RETURN_IF_ERROR(ExpectInMemory(operand, address, expected, "store"));
      }
      regions_[operand.region].Set(expected.element, size, expected);
    }
  }
  return Status();
}

Status Shadow::ReadProgram(const Group& group, const MicroProgram& program, const Step& step,
                           const char* reader) {
  for (const MicroInstruction& op : program.ops) {
    if (op.op != MicroOp::kLoad) continue;
    const OperandDesc& operand = group.operands[op.operand];
    DLA_RETURN_IF_ERROR(Expect(operand, TileOf(group, operand, step), CellOf(operand), reader));
  }
  return Status();
}

Status Shadow::Array(const Group& group, const ArrayPlan& plan, const Instruction& instruction,
                     const Step& step) {
  const char* reader = "array instruction";
  const auto read = [&](uint8_t number) {
    const OperandDesc& operand = group.operands[number];
    return Expect(operand, TileOf(group, operand, step), CellOf(operand), reader);
  };
  DLA_RETURN_IF_ERROR(read(instruction.operand));
  DLA_RETURN_IF_ERROR(read(instruction.operand2));
  const OperandDesc& accumulator = group.operands[instruction.operand3];
  const Tile tile = TileOf(group, accumulator, step);
  const Products products = ProductsOf(group, plan.reduction_mask, step);
  Cell cell = CellOf(accumulator);
  cell.partial = 1;
  cell.products = products.before;
  if ((plan.reduction_mask & ~unsigned{step.at_first}) == 0) {
    if (instruction.operand4 != kNone) DLA_RETURN_IF_ERROR(read(instruction.operand4));
  } else {
    DLA_RETURN_IF_ERROR(Expect(accumulator, tile, cell, reader));
  }
  cell.products += products.now;
  Write(accumulator, tile, cell);
  if ((plan.reduction_mask & ~unsigned{step.at_last}) != 0) return Status();
  DLA_RETURN_IF_ERROR(ReadProgram(group, group.programs[instruction.program], step, reader));
  const OperandDesc& output = group.operands[instruction.operand5];
  Write(output, TileOf(group, output, step), CellOf(output));
  return Status();
}

Status Shadow::Vector(const Group& group, const Instruction& instruction, const Step& step) {
  DLA_RETURN_IF_ERROR(
      ReadProgram(group, group.programs[instruction.program], step, "vector instruction"));
  const OperandDesc& output = group.operands[instruction.operand];
  Write(output, TileOf(group, output, step), CellOf(output));
  return Status();
}

Status Shadow::Move(const Group& group, const Instruction& instruction, const Step& step) {
  const OperandDesc& from = group.operands[instruction.operand];
  const OperandDesc& to = group.operands[instruction.operand2];
  DLA_RETURN_IF_ERROR(Expect(from, TileOf(group, from, step), CellOf(from), "move"));
  Write(to, TileOf(group, to, step), CellOf(to));
  return Status();
}

void Shadow::BeginRun() {
  std::vector<CellArray> before = scratchpads_;
  for (CellArray& cells : scratchpads_) cells.Clear();
  for (CellArray& cells : regions_) cells.Clear();
  ForEachKept(program_, [&](const OperandDesc& o) {
    scratchpads_[o.memory].Take(before[o.memory], o.address, o.address + o.slot_bytes);
  });
}

Status Shadow::Finish() const {
  for (const machine::Port& port : program_.outputs) {
    int64_t elements = 1;
    for (const int64_t extent : port.shape) elements *= extent;
    const int64_t bytes = TypeBytes(port.type, elements);
    if (!IsWritten(program_.regions[port.region].kind)) continue;
    for (int64_t byte = 0; byte < bytes; ++byte) {
      const Cell& cell = regions_[port.region].At(byte);
      if (cell.space != Cell::kNothing && cell.partial == 0) continue;
      return Malformed("output '", port.name, "': byte ", byte, " of ", bytes, " was never stored");
    }
  }
  return Status();
}

}  // namespace dla::runtime
