// A schedule: everything that was decided about a graph on a target, before code exists.
//
// Groups with their nests, mappings and predicted counts; which values stay on chip and where; an
// address for every buffer and every piece of DRAM. Code generation only writes it down;
// schedule_json.h prints it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "machine/counters.h"
#include "machine/target.h"
#include "scheduler/mapping.h"
#include "scheduler/objective.h"
#include "scheduler/residency_problem.h"
#include "scheduler/search.h"
#include "scheduler/slices.h"
#include "scheduler/through.h"

namespace dla::scheduler {

// An on-chip buffer of a group: of an operand, or of the accumulators (kAccumulator).
struct TileBuffer {
  int operand = 0;
  int memory = 0;
  int64_t address = 0;
  int64_t slot_bytes = 0;  // one tile, rounded up to the memory's alignment
  int slots = 1;
};

// The lines (of one axis of the root's dense buffer) of which a cascade keeps only the last few.
struct Ring {
  int64_t lines = 0;        // kept; 0: the whole value is
  int64_t bound = 0;        // of the value
  int64_t line_stride = 0;  // elements from line to line in the dense buffer

  bool operator==(const Ring&) const = default;
};

// A value that stays on chip from the group that makes (or first loads) it to the one that uses it.
struct Resident {
  ir::ValueId root = ir::kNoValue;
  int memory = 0;
  int64_t address = 0;
  int64_t bytes = 0;
  Ring ring;
  int first_group = 0;  // half-open interval of groups
  int end_group = 0;
  // The root whose place it takes: that value ends in the group with which this one begins, and
  // both have one address and size. kNoValue: none.
  ir::ValueId over = ir::kNoValue;
  Through through;
};

enum class DramKind : uint8_t { kInput, kOutput, kConstant, kPackedWeight, kTemporary, kSpill };

// A piece of DRAM: the buffer of a root value, a group's weights packed in tile order, or the room
// for a group's spilled partial sums. Addresses count within the kind's space (inputs, outputs,
// constants of both sorts, temporaries and spills).
struct DramRegion {
  DramKind kind = DramKind::kTemporary;
  std::string name;
  ir::ValueId root = ir::kNoValue;  // the value (for a packed weight: the weight)
  int group = -1;                   // kSpill, kPackedWeight: of several that share it, the first
  int64_t address = 0;
  int64_t bytes = 0;
  int first_group = 0;  // half-open interval of groups in which it is in use
  int end_group = 0;
};

struct ScheduledGroup {
  std::string name;
  std::vector<std::string> onnx_nodes;
  std::string op;
  ir::Nest nest;
  Mapping mapping;
  machine::Counters predicted;  // of the first inference
  machine::Counters steady;     // of later ones: without what is loaded once
  std::vector<TileBuffer> buffers;
  int64_t compulsory_bytes = 0;
  Certificate certificate;
  int64_t points = 0;     // boxes and orders that the search bounded; 0: the mapping was given
  int64_t evaluated = 0;  // mappings evaluated exactly
  int cascade = -1;       // index into Schedule::cascades; -1: none
  // How it overlaps with the group before (overlap.h): it begins while that one still stores, and
  // the first tiles of these operands (a mask) are loaded before. `predicted` has the cycles from
  // its start to that of the next group.
  bool joined = false;
  uint32_t prefetched = 0;
  int64_t alone_cycles = 0;  // between barriers
};

// Groups that follow one another and run as one loop over stripes.
struct Cascade {
  int first_group = 0;  // half-open interval of groups
  int end_group = 0;
  int64_t lines = 0;  // of the last group's stripes
};

// No schedule of these groups that holds whole values moves fewer bytes, and none whose groups
// compute as long as these takes fewer cycles. (traffic_bound.h says what is left of that where
// there are cascades.)
struct TrafficBound {
  int64_t compulsory_bytes = 0;  // inputs and constants that are read, and outputs, once each
  int64_t dram_bytes = 0;
  int64_t cycles = 0;         // groups may overlap if the schedule's may (`--prefetch`)
  int64_t alone_cycles = 0;   // groups do not overlap
  std::vector<double> price;  // by group: DRAM bytes saved by one further byte of scratchpad
};

// How it was decided what stays on chip.
struct ResidencySummary {
  ResidencyPolicy policy = ResidencyPolicy::kBest;
  int64_t inferences = 1;  // for so many in a row was it decided
  int given_up = 0;        // choices withdrawn because no addresses were found for them
  // kExact without cascades: in this order of the groups no choice of values costs less.
  bool complete = false;
  TrafficBound bound;
};

// Most bytes of values that groups make and read alive at one group: in the order of the schedule,
// and in that of the graph.
struct OrderSummary {
  int64_t peak_bytes = 0;
  int64_t graph_peak_bytes = 0;
};

struct Schedule {
  ir::Graph graph;                // node g is group g: in the order in which they run
  std::vector<Slicing> slicings;  // that made this graph out of the passes' one, in order
  machine::Target target;
  Objective objective = Objective::kBalanced;
  SearchOptions search;
  std::vector<ScheduledGroup> groups;
  std::vector<Cascade> cascades;
  std::vector<Resident> residents;
  ResidencySummary residency;
  OrderSummary order;
  std::vector<DramRegion> regions;
  std::vector<std::string> warnings;  // what was asked for and could not be had
};

// The nests of its groups.
std::vector<ir::Nest> NestsOf(const Schedule& schedule);

// A half-open interval of groups.
struct GroupSpan {
  int first = 0, end = 0;
};

// The cascade of a group, or the group alone.
GroupSpan CascadeOf(const Schedule& schedule, int group);

// How long a tile buffer of the group lives. In a cascade: through all of it if its tiles stay from
// stripe to stripe, else only while its own group runs, and in the group before or behind if the
// tiles are prefetched or still stored there.
GroupSpan LifeOf(const Schedule& schedule, int group, const TileBuffer& buffer);

// Do stores read this buffer (of an operand or kAccumulator)?
bool StoresFrom(const ScheduledGroup& group, int operand);

// Where operand `operand` (or kAccumulator) of a group lies on chip.
const TileBuffer* FindBuffer(const ScheduledGroup& group, int operand);

// The region of a root value, or of a group's spills (`group` >= 0); -1: none. FindPackedWeight
// (dram.h) finds that of a packed weight.
int FindRegion(const Schedule& schedule, DramKind kind, ir::ValueId root, int group);
int FindValueRegion(const Schedule& schedule, ir::ValueId root);

// What the schedule's objective minimises, of one group between barriers: see MinimisedValue.
double ValueOf(const ScheduledGroup& group, const Schedule& schedule);

// The whole program's predicted counts, of the first inference and of any later one.
machine::Counters Totals(const Schedule& schedule);
machine::Counters SteadyTotals(const Schedule& schedule);

// Is anything loaded in the first inference only?
bool LoadsOnce(const Schedule& schedule);

// Cycles if no group overlapped with another.
int64_t CyclesApart(const Schedule& schedule);

// Checks the schedule independently of how it was made: mappings legal, buffers within their
// scratchpads and classes, no two that live together overlapping, DRAM likewise. Lines of faults;
// empty: none.
std::string VerifySchedule(const Schedule& schedule);

}  // namespace dla::scheduler
