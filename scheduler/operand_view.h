// What a transfer's operand is: one of the nest's, or kAccumulator. Internal to the cost model.
#pragma once

#include <cstddef>

#include "ir/nest.h"
#include "machine/target.h"
#include "scheduler/mapping.h"
#include "scheduler/packed_weight.h"
#include "scheduler/predict.h"
#include "scheduler/transfers.h"

namespace dla::scheduler {

inline size_t At(int i) { return static_cast<size_t>(i); }

inline const ir::Operand& OperandOf(const ir::Nest& nest, int operand) {
  return nest.operands[At(operand == kAccumulator ? nest.output() : operand)];
}

inline ElementType TypeOf(const ir::Nest& nest, const machine::Target& target, int operand) {
  return operand == kAccumulator ? AccumulatorType(nest, target) : nest.operands[At(operand)].type;
}

inline const OperandPlace& PlaceOf(const Mapping& mapping, int operand) {
  return operand == kAccumulator ? mapping.accumulator : mapping.operands[At(operand)];
}

inline OperandClass ClassOf(const ir::Nest& nest, int operand) {
  return operand == kAccumulator ? OperandClass::kPartial : nest.operands[At(operand)].cls;
}

inline uint32_t GatheredAxes(const ir::Nest& nest, int operand) {
  return operand == kAccumulator ? 0 : nest.GatheredAxes(operand);
}

inline bool IsPacked(const ir::Nest& nest, int operand) {
  return operand == kAccumulator || IsPackedWeight(nest, operand);
}

}  // namespace dla::scheduler
