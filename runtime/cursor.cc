#include "runtime/cursor.h"

#include <algorithm>

namespace dla::runtime {
namespace {

using machine::DimDesc;
using machine::Engine;
using machine::Group;
using machine::Instruction;

// Sets dimension `d` of the step to its block `block`.
void SetBlock(const Group& group, size_t d, int64_t block, bool has_loop, Step* step) {
  const DimDesc& dim = group.dims[d];
  const auto bit = static_cast<uint16_t>(1u << d);
  step->block[d] = block;
  step->start[d] = has_loop ? dim.start(block) : 0;
  step->length[d] = has_loop ? dim.length(block) : dim.extent;
  const bool first = !has_loop || block == 0;
  const bool last = !has_loop || block == dim.count() - 1;
  step->at_first = static_cast<uint16_t>(first ? step->at_first | bit : step->at_first & ~bit);
  step->at_last = static_cast<uint16_t>(last ? step->at_last | bit : step->at_last & ~bit);
}

std::vector<const Instruction*> Select(const std::vector<Instruction>& code, Engine engine) {
  std::vector<const Instruction*> selected;
  for (const Instruction& instruction : code) {
    if (instruction.engine == engine) selected.push_back(&instruction);
  }
  return selected;
}

}  // namespace

Step FirstStep(const Group& group, int64_t stripe) {
  Step step;
  for (size_t d = 0; d < group.dims.size(); ++d) SetBlock(group, d, 0, false, &step);
  for (const uint8_t d : group.loops) {
    SetBlock(group, d, d == group.stripe_dim ? stripe : 0, true, &step);
  }
  return step;
}

Step LastStep(const Group& group, int64_t stripe) {
  Step step = FirstStep(group, stripe);
  for (const uint8_t d : group.loops) {
    if (d != group.stripe_dim) SetBlock(group, d, group.dims[d].count() - 1, true, &step);
  }
  step.number = CountSteps(group) - 1;
  return step;
}

bool NextStep(const Group& group, Step* step) {
  for (size_t k = group.loops.size(); k-- > 0;) {
    const size_t d = group.loops[k];
    if (d == group.stripe_dim) return false;  // the outermost loop: another stripe
    if (step->block[d] + 1 < group.dims[d].count()) {
      SetBlock(group, d, step->block[d] + 1, true, step);
      for (size_t inner = k + 1; inner < group.loops.size(); ++inner) {
        SetBlock(group, group.loops[inner], 0, true, step);
      }
      ++step->number;
      return true;
    }
  }
  return false;
}

int64_t CountSteps(const Group& group) {
  int64_t count = 1;
  for (const uint8_t d : group.loops) {
    if (d != group.stripe_dim) count *= group.dims[d].count();
  }
  return count;
}

int64_t CountStripes(const Group& group) {
  const bool has_loop = !group.loops.empty() && group.loops[0] == group.stripe_dim;
  return has_loop ? group.dims[group.stripe_dim].count() : 1;
}

bool Holds(const machine::Predicate& p, const Step& step) {
  const unsigned off_first = ~unsigned{step.at_first};
  const unsigned off_last = ~unsigned{step.at_last};
  return (p.first & off_first) == 0 && (p.last & off_last) == 0 &&
         (p.not_first == 0 || (p.not_first & off_first) != 0) &&
         (p.not_last == 0 || (p.not_last & off_last) != 0);
}

Cursor::Cursor(const Group& group, Engine engine, int64_t stripe)
    : group_(&group),
      stripe_(stripe),
      code_{Select(group.prologue, engine), Select(group.body, engine),
            Select(group.epilogue, engine)},
      step_(FirstStep(group, stripe)) {
  Settle();
}

void Cursor::Advance() {
  ++position_;
  ++passed_;
  Settle();
}

void Cursor::Settle() {
  while (part_ != Part::kDone) {
    const Code& code = code_[static_cast<size_t>(part_)];
    while (position_ < code.size() && !Holds(code[position_]->predicate, step_)) ++position_;
    if (position_ < code.size()) return;
    position_ = 0;
    NextPart();
  }
}

void Cursor::NextPart() {
  switch (part_) {
    case Part::kPrologue:
      part_ = code_[static_cast<size_t>(Part::kBody)].empty() ? Part::kEpilogue : Part::kBody;
      break;
    case Part::kBody:
      if (!NextStep(*group_, &step_)) part_ = Part::kEpilogue;
      break;
    case Part::kEpilogue:
      part_ = Part::kDone;
      break;
    case Part::kDone:
      break;
  }
  if (part_ == Part::kEpilogue) step_ = LastStep(*group_, stripe_);
}

}  // namespace dla::runtime
