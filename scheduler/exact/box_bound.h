// Lower bounds of what all mappings cost whose block sizes lie in a box.
//
// docs/SCHEDULER.md ("The exact search") has the arguments of every rule. At a box of one vector of
// block sizes bytes are exact for each order class.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/nest.h"
#include "scheduler/axis_lengths.h"
#include "scheduler/exact/size_tree.h"
#include "scheduler/footprint.h"
#include "scheduler/memory_assignment.h"
#include "scheduler/search.h"
#include "scheduler/work.h"

namespace dla::scheduler {

inline constexpr size_t kMostDims = 16;
inline constexpr size_t kMostOperands = 16;  // and the accumulators

// A box: by dimension, a node of its tree of sizes.
using Box = std::array<int, kMostDims>;

// How often each operand moves in some order of the loops.
struct Repeats {
  std::array<int64_t, kMostOperands> times{};
  int64_t visits = 1;  // of each tile of the output
};

class BoxBounds {
 public:
  explicit BoxBounds(const SearchProblem& problem);

  const SearchSizes& sizes() const { return sizes_; }
  const std::vector<SizeTree>& trees() const { return trees_; }

  // Fixes the box: everything below is about it.
  void SetBox(const Box& box);

  bool IsPoint() const { return is_point_; }
  // Do the smallest tiles fit, with as few buffers as are allowed?
  bool Fits();

  // Order classes: any order of the loops costs at least what some class does. Calls visit(Cost).
  template <typename Visit>
  void ForEachClass(const Visit& visit) {
    for (const OrderClass& order_class : classes_) {
      if (!CanBe(order_class)) continue;
      const Repeats repeats = RepeatsOf(order_class.once);
      visit(Bound(repeats, LeastSerial(repeats)));
    }
  }

  // Cycles of the transfers that cannot overlap with the engines, with the latency of their loads:
  // those through single buffers, and of the others the first loads and the last store.
  // Bit o of `single`: operand o has one buffer and more than one tile; the accumulators' bit is
  // behind the operands'. The output's own bit says whether finished results leave from a single
  // buffer, the accumulators' whether partial sums do.
  double SerialOf(const Repeats& repeats, uint32_t single) const;
  Cost Bound(const Repeats& repeats, double serial) const;

  // Of a box of one vector of block sizes.
  const std::vector<int64_t>& block() const { return block_; }
  const std::vector<int64_t>& count() const { return count_; }
  uint32_t cut() const { return cut_; }
  int64_t compute_cycles() const { return compute_; }
  std::span<const BufferNeed> Needs(uint32_t single);
  // Calls visit(single) for the sets of single buffers that SearchOptions::buffers allows (bits as
  // SerialOf's), a subset before its supersets, until that returns true.
  template <typename Visit>
  void ForEachSingles(const Visit& visit) const {
    const uint32_t always = may_be_double_ & must_be_single_;
    const uint32_t free = may_be_double_ & ~(must_be_single_ | must_be_double_);
    for (uint32_t some = 0;; some = (some - free) & free) {
      if (visit(always | some) || some == free) return;
    }
  }
  Repeats RepeatsIn(std::span<const int> order) const;

 private:
  struct Operand {
    uint32_t dims = 0;
    bool moves = false;         // over the bus
    bool linked = false;        // over a link
    bool once_a_drain = false;  // reductions do not repeat it
    std::vector<AxisTable> axes;
    Footprint footprint;
    int64_t element_bytes = 1;
    bool packed = false;
    uint32_t gathered = 0;   // axes
    int row_axis = -1;       // contiguous in DRAM
    bool scattered = false;  // no two elements are neighbours in DRAM
    double least_pj = 0;     // of a byte in the memories that may hold it
  };
  struct Moved {  // what the box makes of an operand
    double payload = 0, bus = 0, tiles = 0;
    double first_bytes = 0, last_bytes = 0;
    int64_t tile_bytes = 0;
    double spill_bus = 0, spill_payload = 0;  // of the accumulators, on the output
  };
  // Least folds, or least cycles of streaming, over a box of at most two dimensions.
  struct RoleTable {
    std::vector<int> dims;
    std::vector<int64_t> least;
    std::vector<size_t> stride;
  };

  // The orders whose innermost loop is one of `dims`, on which the operands of `once` do not
  // depend.
  struct OrderClass {
    uint32_t once = 0;
    uint32_t dims = 0;  // 0: no loop at all
  };

  void ListClasses();
  bool CanBe(const OrderClass& order_class) const;
  Repeats RepeatsOf(uint32_t once) const;
  // Of what is not `single`, in the first and in the last step.
  double EndsOf(uint32_t single) const;
  double LeastSerial(const Repeats& repeats);
  void FindSingles();
  void SetBufferRule();
  uint32_t MostSingles() const { return may_be_double_ & ~must_be_double_; }
  void SetOperand(size_t o);
  double BusBytesOf(size_t o);
  int64_t ExactBusBytes(size_t o, const Footprint& footprint);
  double TransferCycles(double tiles, double bus) const {
    return tiles * startup_ + bus / bytes_per_cycle_;
  }
  int64_t CountProduct(uint32_t dims) const;
  void SetCompute();
  int64_t ArrayLeast();
  int64_t VectorLeast() const;
  int64_t LastStepLeast();
  void BuildRoles();
  template <typename PerTile>
  RoleTable BuildRole(uint32_t dims, const PerTile& per_tile) const;
  template <typename PerTile>
  int64_t RoleLeast(const RoleTable& table, uint32_t dims, const PerTile& per_tile) const;
  double FixedEnergy() const;
  double EnergyLeast(const Repeats& repeats, double bus) const;
  bool AllPoints(uint32_t dims) const;

  const SearchProblem& problem_;
  const ir::Nest& nest_;
  const machine::Target& target_;
  SearchSizes sizes_;
  std::vector<SizeTree> trees_;
  std::vector<Operand> operands_;
  Footprint spill_footprint_;
  int64_t partial_bytes_ = 1;
  std::vector<OrderClass> classes_;
  const bool weighs_energy_;
  EngineWork work_;
  uint32_t reductions_ = 0;
  uint32_t row_dims_ = 0, col_dims_ = 0, stream_dims_ = 0, group_dims_ = 0;
  uint32_t pixel_dims_ = 0, channel_dims_ = 0, depth_dims_ = 0;
  int64_t skew_ = 0;
  machine::Rational rate_;
  RoleTable rows_, cols_, stream_;
  double bytes_per_cycle_ = 1, startup_ = 0, latency_ = 0;
  double fixed_pj_ = 0;    // arithmetic, what vector programs read and write, drains
  double partial_pj_ = 0;  // of a byte of accumulators
  MemoryChoices memories_;

  Box box_{};
  bool is_point_ = false;
  uint32_t cut_ = 0;            // dimensions that are cut for certain
  uint32_t may_be_double_ = 0;  // buffers of which there could be two; bits as SerialOf's
  uint32_t must_be_single_ = 0, must_be_double_ = 0;  // where there could be two
  std::vector<int64_t> block_, count_, last_;
  std::vector<Moved> moved_;
  std::vector<BufferNeed> needs_;
  std::vector<AxisLengths> lengths_;
  std::vector<const AxisLengths*> views_;
  std::vector<uint32_t> singles_;  // the least sets of single buffers with which the box may fit
  bool singles_known_ = false;
  int64_t compute_ = 0;
  int64_t last_step_ = 0;  // compute of the last step
  int64_t row_folds_ = 1, col_folds_ = 1;
};

}  // namespace dla::scheduler
