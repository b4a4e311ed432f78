// Where an engine stands in the code of a group.
//
// Each engine walks prologue, loops, body and epilogue at its own pace and sees only its own
// instructions whose predicates hold. The coordinates of the current blocks (start and length of
// every dimension) belong to the cursor. In the prologue they are those of the first step, in the
// epilogue those of the last.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "machine/program.h"

namespace dla::runtime {

// One step of a group's loops: which part of each dimension it covers.
struct Step {
  int64_t number = 0;                               // 0, 1, ... in loop order, in its stripe
  std::array<int64_t, machine::kMaxDims> block{};   // block index
  std::array<int64_t, machine::kMaxDims> start{};   // block index * block size
  std::array<int64_t, machine::kMaxDims> length{};  // min(block size, extent - start)
  uint16_t at_first = 0;                            // mask: dimensions at their first block
  uint16_t at_last = 0;                             // mask: dimensions at their last block
};

// The first or the last step of the group; of a cascade's group in the given stripe.
Step FirstStep(const machine::Group& group, int64_t stripe);
Step LastStep(const machine::Group& group, int64_t stripe);
// Moves on to the next step; false (and `step` unchanged) behind the last one.
bool NextStep(const machine::Group& group, Step* step);
// Of a cascade's group: in each stripe.
int64_t CountSteps(const machine::Group& group);
// Of a cascade's group: the stripes in which it runs; of others: 1.
int64_t CountStripes(const machine::Group& group);

bool Holds(const machine::Predicate& predicate, const Step& step);

class Cursor {
 public:
  Cursor(const machine::Group& group, machine::Engine engine, int64_t stripe);

  bool done() const { return part_ == Part::kDone; }
  bool in_prologue() const { return part_ == Part::kPrologue; }
  bool behind_body() const { return part_ == Part::kEpilogue || done(); }
  const machine::Instruction& instruction() const {
    return *code_[static_cast<size_t>(part_)][position_];
  }
  const Step& step() const { return step_; }
  // Number of instructions passed; two cursors of one engine with equal counts stand together.
  int64_t passed() const { return passed_; }
  void Advance();

 private:
  enum class Part { kPrologue, kBody, kEpilogue, kDone };
  using Code = std::vector<const machine::Instruction*>;

  // Moves from `position_` on to the next instruction whose predicate holds.
  void Settle();
  void NextPart();

  const machine::Group* group_;
  int64_t stripe_;
  std::array<Code, 3> code_;  // indexed by Part: the engine's own instructions
  Part part_ = Part::kPrologue;
  size_t position_ = 0;
  int64_t passed_ = 0;
  Step step_;
};

}  // namespace dla::runtime
