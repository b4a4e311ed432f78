// What the engines do in a step: time and counts, by kind of step. Internal to the cost model.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/nest.h"
#include "machine/counters.h"
#include "machine/target.h"
#include "scheduler/mapping.h"
#include "scheduler/work.h"

namespace dla::scheduler {

// One kind of step: the lengths of all dimensions and what is nominal of them (the indices that are
// not repeated), which dimensions are at their first and last block, and how many steps are of this
// kind.
struct StepClass {
  std::vector<int64_t> lengths, nominal;
  uint32_t first = 0, last = 0;
  int64_t count = 1;
};

// Visits all kinds of steps of the mapping; together they have all its steps.
void ForEachStepClass(const ir::Nest& nest, const Mapping& mapping,
                      const std::function<void(const StepClass&)>& visit);

// All dimensions of `all` are in `state`.
inline bool Holds(uint32_t all, uint32_t state) { return (all & ~state) == 0; }

// Time and effects of the engines in the steps of one kind.
class StepWork {
 public:
  StepWork(const ir::Nest& nest, const Mapping& mapping, const machine::Target& target);

  // Compute time of a step with these lengths, at the first and last blocks of these dimensions.
  int64_t Cycles(std::span<const int64_t> lengths, uint32_t first, uint32_t last) const;
  // Adds what all steps of the kind do.
  void Count(const StepClass& step, machine::Counters* counters) const;

 private:
  template <typename F>
  int64_t Bounded(int64_t cycles, F count) const;
  void Read(int operand, int64_t elements, machine::Counters* counters) const;
  void Write(int operand, int64_t elements, machine::Counters* counters) const;
  void CountArray(const StepClass& step, machine::Counters* counters) const;
  void CountVector(const StepClass& step, const VectorWork& work,
                   machine::Counters* counters) const;

  const ir::Nest& nest_;
  const Mapping& mapping_;
  const machine::Target& target_;
  EngineWork work_;
  uint32_t reductions_ = 0;
  machine::Rational rate_;
  bool limited_ = false;  // some memory has a rate
};

}  // namespace dla::scheduler
