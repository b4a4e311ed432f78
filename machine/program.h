// The instruction set and the compiled program, as data.
//
// A program is a list of jobs for the machine's engines, one *group* after the other (a group is
// one layer with everything fused to it). A group declares its dimensions (extent and block) and
// its operands (where the tile lies in DRAM and on chip, as a function of the dimensions' current
// blocks) and has a piece of code:
//
//   prologue   straight line
//   loops      a perfect nest, outermost first; loop k runs over the blocks of one dimension
//   body       straight line, once a step (a step is one iteration of all loops)
//   epilogue   straight line
//
// Every instruction names the engine that executes it. Each engine walks the same loops at its own
// pace and executes only its own instructions, in order; loop and token instructions take no time.
// Tokens (counting semaphores between two engines) are the only synchronisation, besides the bus
// (below) and the barrier at the end of each group: the next group starts when all engines are done
// with this one (but see "Groups that overlap"). Token counts are zero at the borders of a group.
//
// Tile coordinates. In a step, dimension d covers [start_d, start_d + len_d) with
// start_d = block_index * block and len_d = min(block, extent - start_d); a dimension without a
// loop is covered whole. An axis of an operand then covers the indices from
// first = offset + sum of coefficient * start_d to
// last  = offset + sum of coefficient * (start_d + len_d - 1), both included, *clipped* to
// [0, bound). No remainder tile, halo or padding needs code of its own.
//
// A dimension with a `lead` has a longer first block: block 0 covers [0, block + lead), block k > 0
// [k * block + lead, (k + 1) * block + lead), both cut at the extent.
//
// Stripes. Groups that follow one another and have the same `cascade` run as one loop over stripes:
// in stripe s = 0, 1, ... each of them, in order, executes prologue, the steps in which its
// stripe_dim is at block s, and epilogue; a group with fewer blocks is left out of the later
// stripes. A group without a loop over its stripe_dim runs in stripe 0.
//
// Groups that overlap. Nothing of these two concerns groups of cascades.
// A group may `prefetch` operands: the load engine brings their tiles of its first step when it has
// executed the body of the group before, as one transfer with the ticket 4 * N + 1, N being that
// group's number of steps; bytes count as the group's own. They are in place when the first load of
// the group's first step is.
// A group that is `joined` to the one before begins as soon as the array, the vector and the move
// engine are done with that one and whatever was left to transfer when that one began is
// transferred; the load engine, the store engine and the bus finish what they have to do for it
// first. Elsewhere the barrier waits for all of them. The credits of a prologue are there when the
// group begins, and those that an epilogue takes back hold up no engine.
//
// Generation. The tile that operand o holds in a step has the number
//   generation = mixed-radix number of the block indices of the loops in o.generation_dims
// (outermost loop most significant, radix = the loop's count). It lies in ring slot
// generation % o.ring_slots, at address + slot * slot_bytes.
//
// On-chip layout of a tile:
//   kDense     element (i_0, i_1, ...) of the operand's axes at sum of (i_a - begin_a) *
//              local_stride_a, where begin_a = max(first_a, 0) (or 0 if the operand is `resident`:
//              the whole value lies there). An axis with a `ring` keeps only that many lines of
//              the value, line i where line i - ring was: i counts modulo ring.
//   kPanels    weights for the array. With G, M, K the clipped extents of the dimensions that
//              (input and output, output but not input, input but not output) depend on, in axis
//              order: for each g, for each panel of kPanelWidth consecutive m (the last one is
//              narrow), for each k, the panel's elements of that k. No padding. Every axis has one
//              term with coefficient 1 and offset 0, so nothing is clipped but the last block.
//
// DRAM side of an operand:
//   kNone      the operand never leaves the chip
//   kStrided   element (i_0, ...) at region offset base + sum of i_a * dram_stride_a (in elements)
//   kPacked    tiles one after the other, each without holes in its on-chip order: the tile with
//              begin_a, len_a (a = 0, 1, ...; bound_a the axis' bound) starts at element
//              base + sum over a of (product of len_j, j < a) * begin_a * (product of bound_j, j >
//              a)
// A packed transfer is one contiguous run. A strided one is as many maximal runs as there are when
// the axes that are longer than 1 are sorted by dram_stride and neighbours that join are collapsed.
//
// Runs. A program may run any number of times in a row, with a barrier in between. What operands
// that are `once` loaded stays on chip from the first run on, and nothing else is written there.
//
// The bus. `load` and `store` add a descriptor to the open transfer of their DMA engine; `bus`
// closes the transfer and hands it to the DRAM bus with the number (ticket)
// 4 * (step + lag) + slot. The bus serves the transfers of a group in the order of their tickets:
// a transfer waits until the other DMA engine has no smaller ticket left in this group. A transfer
// whose descriptors are all absent (predicate false, or clipped to nothing) passes without time.
// docs/MACHINE.md has the timing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "machine/constant_data.h"
#include "machine/counters.h"
#include "machine/target.h"
#include "support/element_type.h"
#include "support/micro_program.h"
#include "support/operand_class.h"

namespace dla::machine {

// Before the constants: GCC 12 takes an enumerator for a shadow of a constant of the same name.
enum class LocalLayout : uint8_t { kDense, kPanels };
enum class DramLayout : uint8_t { kNone, kStrided, kPacked };

inline constexpr int kMaxDims = 16;      // dimensions of a group
inline constexpr int kMaxAxes = 16;      // axes of an operand
inline constexpr int kMaxTerms = 3;      // terms of an axis
inline constexpr int kMaxOperands = 32;  // operands of a group
inline constexpr int kMaxTokens = 16;    // tokens of a group
inline constexpr int kMaxRingSlots = 64;
inline constexpr int64_t kPanelWidth = 16;
inline constexpr uint8_t kNone = 255;  // "no operand", "no program"

enum class Engine : uint8_t { kLoad, kStore, kMove, kArray, kVector, kHost };
inline constexpr int kEngineCount = 6;
std::string_view EngineName(Engine engine);  // "load", "store", "move", "array", "vector", "host"

// When an instruction of a body executes: all four conditions hold. Bit d of a mask stands for
// dimension d of the group; a dimension without a loop is both at its first and its last block.
struct Predicate {
  uint16_t first = 0;      // all of these dimensions are at their first block
  uint16_t last = 0;       // all of these are at their last block
  uint16_t not_first = 0;  // not all of these are at their first block (0: no condition)
  uint16_t not_last = 0;   // not all of these are at their last block (0: no condition)
  bool operator==(const Predicate&) const = default;
};

enum class Opcode : uint8_t {
  kWait,    // engine, token, count: takes `count` from the token, waiting until it has them
  kSignal,  // engine, token, count: adds `count`
  kLoad,    // operand (DRAM -> chip), engine load
  kStore,   // operand (chip -> DRAM), engine store
  kBus,     // engine load or store, lag, slot: closes the open transfer
  kMove,    // operand (source, resident) -> operand2 (tile), engine move: copies the tile
  kArray,   // operand = input, operand2 = weight, operand3 = accumulator, operand4 = bias or kNone,
            // operand5 = drained output, program = drain program; engine array
  kVector,  // operand = output, program; engine vector
};
inline constexpr int kOpcodeCount = 8;

// Array. Computes acc[...] += sum over the reduction dimensions of input * weight for the tile.
// A dimension that the accumulator does not depend on is a reduction dimension. When all of them
// are at their first block the accumulators are set first (to the bias, else 0), else they
// accumulate. When all of them are at their last block the drain runs: for each point of the
// output tile the drain program (first operation kAccumulator; all others are output-stage
// operations) gives the element of operand5. Operand5 may lie exactly where the accumulators lie,
// also with smaller elements (then both are dense, and the tile shrinks where it is), or be the
// accumulators themselves: a vector instruction goes on from there.
//
// Vector. Runs the program over the points of the tile (all dimensions of the group, or, if
// `predicate`d on the reduction dimensions behind an array, the output's points: dimensions that
// neither output nor any loaded operand depends on do not count). Reduction dimensions of the
// vector program are its `reduce_dims` or, where these are 0, those that its loads depend on and
// its output does not.
struct Instruction {
  Opcode op = Opcode::kWait;
  Engine engine = Engine::kLoad;
  Predicate predicate;
  uint8_t token = 0;
  uint8_t count = 1;
  uint8_t lag = 0;   // kBus
  uint8_t slot = 0;  // kBus
  uint8_t operand = kNone, operand2 = kNone, operand3 = kNone, operand4 = kNone, operand5 = kNone;
  uint8_t program = kNone;  // index into the group's programs
  // kVector: dimensions that the program's reductions run over; 0: those that its loads depend on
  // and its output does not. Values of the program are `full` if they depend on one of these.
  uint16_t reduce_dims = 0;
  bool operator==(const Instruction&) const = default;
};

struct DimDesc {
  std::string name;
  int64_t extent = 1;
  int64_t block = 1;  // 1 <= block <= extent
  int64_t lead = 0;   // by so much is the first block longer; block + lead <= extent
  // The first indices, which another group computes, too: their MACs are not nominal.
  int64_t repeated = 0;  // <= extent
  bool operator==(const DimDesc&) const = default;
  // Where block `index` begins.
  int64_t start(int64_t index) const { return index == 0 ? 0 : index * block + lead; }
  int64_t length(int64_t index) const {
    const int64_t full = index == 0 ? block + lead : block;
    return full < extent - start(index) ? full : extent - start(index);
  }
  int64_t count() const {
    const int64_t rest = extent - lead;
    return rest / block + (rest % block != 0 ? 1 : 0);
  }
  // How many of the `length` indices from `start` on are repeated.
  int64_t RepeatedIn(int64_t start, int64_t length) const {
    return std::clamp<int64_t>(repeated - start, 0, length);
  }
};

struct TermDesc {
  uint8_t dim = 0;
  int32_t coefficient = 1;  // > 0
  bool operator==(const TermDesc&) const = default;
};

struct AxisDesc {
  std::vector<TermDesc> terms;
  int64_t offset = 0;
  int64_t bound = 1;
  int64_t dram_stride = 0;   // elements
  int64_t local_stride = 0;  // elements (kDense)
  // Of a resident operand: the lines of this axis that lie on chip, when these are not all of them
  // (a tile has at most so many); 0: all.
  int64_t ring = 0;
  bool operator==(const AxisDesc&) const = default;
};

// A gathered operand: its entries along one axis of the value are chosen by an operand of integers
// that lies on chip. Element (i_0, ...) lies in DRAM at base + index * stride + sum of i_a *
// dram_stride_a, index being what the operand `indices` holds for the same point, plus `bound` if
// it is negative. An index outside [-bound, bound) ends the program. The load engine reads the
// indices when the bus serves the load. Every index is a run of its own.
struct GatherDesc {
  uint8_t indices = 0;  // operand of the group
  int64_t bound = 1;
  int64_t stride = 1;  // elements
  bool operator==(const GatherDesc&) const = default;
};

// Block-diagonal weights: an element counts where channel / channels == depth / depths, the indices
// (not those of the tile) along two dimensions. Whatever lies elsewhere in the tile the array
// reads, but does not multiply with.
struct DiagonalDesc {
  uint8_t channel_dim = 0;  // of weight and accumulator
  uint8_t depth_dim = 0;    // of input and weight
  int64_t channels = 1;     // > 0
  int64_t depths = 1;       // > 0
  bool operator==(const DiagonalDesc&) const = default;
};

struct OperandDesc {
  std::string value;  // the ONNX value it is or belongs to, for reports and messages
  OperandClass cls = OperandClass::kVector;
  ElementType type = ElementType::kF32;  // of the tile on chip and of the stored form alike
  // The type to which the array rounds an element of its input or weight before it multiplies,
  // where that is not `type`. Rates, accumulators and energy go by it.
  std::optional<ElementType> read_as;
  std::vector<AxisDesc> axes;
  double pad_value = 0;
  // DRAM side
  DramLayout dram_layout = DramLayout::kNone;
  uint32_t region = 0;
  int64_t dram_base = 0;  // elements from the region's start
  std::optional<GatherDesc> gather;
  std::optional<DiagonalDesc> diagonal;  // the weight of array instructions only
  // On-chip side
  uint8_t memory = 0;
  LocalLayout local_layout = LocalLayout::kDense;
  bool resident = false;  // the whole value lies on chip; ring_slots == 1
  int64_t address = 0;    // bytes
  int64_t slot_bytes = 0;
  uint8_t ring_slots = 1;
  uint16_t generation_dims = 0;  // mask of dimensions
  // A load brings only the lines that the tile of the block before in these dimensions did not
  // have: it fills a resident operand line by line.
  uint16_t rolling_dims = 0;
  // Loads of it happen in the first run only: what they bring (constants) stays for the later ones.
  bool once = false;
  bool operator==(const OperandDesc&) const = default;

  ElementType ReadType() const { return read_as.value_or(type); }
};

// One group: its tables and its code.
struct Group {
  std::string name;                     // the anchor's ONNX node
  std::vector<std::string> onnx_nodes;  // everything that became part of it
  std::vector<DimDesc> dims;
  std::vector<uint8_t> loops;     // dimensions that have a loop, outermost first
  int32_t cascade = -1;           // number of the cascade that it belongs to; -1: none
  uint8_t stripe_dim = kNone;     // of a cascade's group: the dimension that is cut into stripes
  bool joined = false;            // begins while the group before still stores
  std::vector<uint8_t> prefetch;  // operands whose first tiles are loaded before it begins
  std::vector<OperandDesc> operands;
  std::vector<MicroProgram> programs;
  std::vector<Instruction> prologue, body, epilogue;
  bool operator==(const Group&) const = default;
};

enum class RegionKind : uint8_t { kInput, kOutput, kConstant, kTemporary };

// A piece of DRAM. Regions do not overlap, except temporaries that never live together.
struct Region {
  std::string name;
  RegionKind kind = RegionKind::kTemporary;
  int64_t address = 0;  // bytes; the space of the region's kind, which starts at 0 for each kind
  int64_t bytes = 0;
  bool operator==(const Region&) const = default;
};

// A graph input or output: dense ONNX order in its region.
struct Port {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  uint32_t region = 0;
  bool operator==(const Port&) const = default;
};

// The lifetime of an on-chip buffer, for `dladump map` and the memory checks.
struct BufferUse {
  std::string name;  // value or operand
  uint8_t memory = 0;
  int64_t address = 0;
  int64_t bytes = 0;
  int32_t first_group = 0;  // half-open interval of groups
  int32_t end_group = 0;
  bool operator==(const BufferUse&) const = default;
};

enum class ValuePlace : uint8_t { kNowhere, kRegion, kMemory };

// What became of a value that the model's nodes compute, for `dlarun --dump`. One that lies
// somewhere is whole right after `group` (-1: before the first one) and may be overwritten later.
struct ValueDesc {
  std::string name;
  std::string node;  // the ONNX node that computes it
  ValuePlace place = ValuePlace::kNowhere;
  // Of a value that lies nowhere: the group that it became part of, -1 if the compiler computed it
  // or nothing needs it. Its remaining fields mean nothing.
  int32_t group = -1;
  ElementType type = ElementType::kF32;  // of its elements where they lie
  std::vector<int64_t> shape;
  uint32_t space = 0;            // the region or memory
  int64_t base = 0;              // bytes from the region's or memory's start
  std::vector<int64_t> strides;  // elements, one an axis
  bool operator==(const ValueDesc&) const = default;
};

struct Program {
  std::string producer;      // "dlac 0.1.0"
  std::string command_line;  // options that shaped the program; no paths
  Target target;
  std::vector<Region> regions;
  std::vector<Port> inputs, outputs;
  std::vector<Group> groups;
  std::vector<Counters> predicted;  // one a group, what the compiler says it will count
  std::vector<Counters> steady;     // the same of later runs; empty: they count what the first does
  std::vector<BufferUse> buffers;
  std::vector<ValueDesc> values;  // in the model's order
  // The constant space: bytes of all kConstant regions at their addresses. In a program that was
  // read from a file this is a view of the mapped file.
  ConstantData constants;
};

}  // namespace dla::machine
