// Cycles of one mapping of a layer on an ideal machine, by walking its steps.
//
// The same recurrence as PredictCycles (docs/MACHINE.md, "Steps"), for this folder's plain layers:
// no bursts, start-ups or latency. A step costs a few additions, because everything that depends
// only on which blocks are the last of their dimension is tabled.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "scheduler/search/layer_cost.h"

namespace dla::scheduler {

class StepWalk {
 public:
  StepWalk(const Layer& layer, const IdealMachine& machine);

  // Fixes the blocks; tables of their lengths are rebuilt.
  void SetBlocks(const LayerSizes& block, bool output_single);

  // Cycles of this order of the cut loops, outermost first, `count` of them; a rolling input rolls
  // along the innermost loop on which it depends if that is E or F. Ends early, with some value of
  // at least `limit`, once that many are certain.
  int64_t Cycles(const int* order, int count, bool rolls, int64_t limit);

  // Compute cycles of all steps together.
  int64_t ComputeCycles() const { return compute_; }
  // Loads of the first step and stores of the last one cannot overlap with anything.
  int64_t FirstLoadCycles() const;
  int64_t LastStoreCycles() const;

 private:
  struct Dim {
    int64_t count = 1;
    std::array<int64_t, 2> length{};  // of a full block, of the last one
  };
  int64_t Length(uint32_t last, int d) const {
    return dims_[static_cast<size_t>(d)].length[last >> d & 1U];
  }
  int64_t TileCycles(uint32_t last) const;
  void BuildLines(const WindowAxis& axis, int out, int tap, std::vector<int64_t>* lines,
                  std::vector<int64_t>* fresh) const;

  const Layer& l_;
  const IdealMachine& m_;
  LayerSizes extent_, block_{};
  bool output_single_ = false;
  std::array<Dim, kLayerDims> dims_;
  uint32_t cut_ = 0;
  int64_t compute_ = 0;
  // By which dimensions are at their last block; uncut ones always are.
  std::array<int64_t, 256> tile_cycles_{}, weight_{}, output_{}, planes_{};
  // Lines of tile [tap * count + block]; `fresh`: those that the tile before did not have.
  std::vector<int64_t> rows_, fresh_rows_, columns_, fresh_columns_;
};

}  // namespace dla::scheduler
