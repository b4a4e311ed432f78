#include "runtime/group_plan.h"

#include <algorithm>

#include "machine/tile.h"
#include "runtime/kernels/convert.h"

namespace dla::runtime {
namespace {

using machine::Group;
using machine::Instruction;
using machine::kNone;
using machine::Opcode;
using machine::OperandDesc;
using machine::Target;

bool Has(uint16_t mask, size_t dim) { return (mask >> dim & 1) != 0; }

// The dimensions of the operand's axes in `mask`, in the order in which the axes name them.
std::vector<uint8_t> InAxisOrder(const OperandDesc& operand, uint16_t mask) {
  std::vector<uint8_t> dims;
  for (const machine::AxisDesc& axis : operand.axes) {
    for (const machine::TermDesc& term : axis.terms) {
      const bool known = std::find(dims.begin(), dims.end(), term.dim) != dims.end();
      if (Has(mask, term.dim) && !known) dims.push_back(term.dim);
    }
  }
  return dims;
}

Result<ArrayPlan> PlanArray(const Group& group, const Target& target,
                            const std::vector<uint16_t>& dims_of, const Instruction& instruction) {
  const OperandDesc& input = group.operands[instruction.operand];
  const OperandDesc& weight = group.operands[instruction.operand2];
  const OperandDesc& accumulator = group.operands[instruction.operand3];
  const OperandDesc& output = group.operands[instruction.operand5];
  const unsigned in = dims_of[instruction.operand];
  const unsigned wt = dims_of[instruction.operand2];
  const unsigned acc = dims_of[instruction.operand3];
  ArrayPlan plan;
  for (size_t d = 0; d < group.dims.size(); ++d) {
    const unsigned bit = 1u << d;
    const int users = ((in & bit) != 0) + ((wt & bit) != 0) + ((acc & bit) != 0);
    if (users == 1 && group.dims[d].extent > 1) {
      return Malformed("dimension '", group.dims[d].name,
                       "' belongs to one operand of the array instruction alone");
    }
  }
  const auto mask = [](unsigned bits) { return static_cast<uint16_t>(bits); };
  plan.groups = InAxisOrder(weight, mask(in & wt & acc));
  plan.pixels = InAxisOrder(accumulator, mask(in & acc & ~wt));
  plan.channels = InAxisOrder(weight, mask(wt & acc & ~in));
  plan.depth = InAxisOrder(weight, mask(in & wt & ~acc));
  plan.reduction_mask = mask((in | wt) & ~acc);
  plan.drain_in_place = accumulator.memory == output.memory &&
                        accumulator.address == output.address && accumulator.type == output.type;
  const auto rate = target.array.rates.find({input.ReadType(), weight.ReadType()});
  if (rate == target.array.rates.end()) {
    return Unsupported("the array of target '", target.name, "' has no rate for ",
                       TypeName(input.ReadType()), " x ", TypeName(weight.ReadType()));
  }
  plan.rate = rate->second;
  const auto energy = target.array.energy_pj_per_mac.find(input.ReadType());
  if (energy != target.array.energy_pj_per_mac.end()) plan.energy_pj_per_mac = energy->second;
  return plan;
}

// Iteration space of a program that writes `output`: the dimensions that it or a load needs.
Result<VectorPlan> PlanVector(const Group& group, const Target& target,
                              const std::vector<uint16_t>& dims_of, const Instruction& instruction,
                              uint8_t output) {
  const MicroProgram& program = group.programs[instruction.program];
  unsigned used = dims_of[output];
  for (const MicroInstruction& op : program.ops) {
    if (op.op == MicroOp::kLoad) used |= dims_of[op.operand];
    if (op.op == MicroOp::kIndex) used |= 1u << op.operand;
  }
  const unsigned reduced = instruction.reduce_dims != 0 ? unsigned{instruction.reduce_dims} & used
                                                        : used & ~unsigned{dims_of[output]};
  VectorPlan plan;
  plan.kept = InAxisOrder(group.operands[output], static_cast<uint16_t>(used & ~reduced));
  for (size_t d = 0; d < group.dims.size(); ++d) {
    const bool listed = std::find(plan.kept.begin(), plan.kept.end(), d) != plan.kept.end();
    const auto dim = static_cast<uint8_t>(d);
    if (Has(static_cast<uint16_t>(reduced), d)) plan.reduced.push_back(dim);
    if (Has(static_cast<uint16_t>(used & ~reduced), d) && !listed) plan.kept.push_back(dim);
  }
  std::vector<bool> operand_is_full;
  for (const uint16_t dims : dims_of) operand_is_full.push_back((dims & reduced) != 0);
  plan.full = FullValues(program, operand_is_full, reduced);
  for (const MicroInstruction& op : program.ops) {
    // Multiplications are those of the type in which the first factor is stored.
    if (op.op != MicroOp::kReduceDot) continue;
    const MicroInstruction& factor = program.ops[op.argument[0]];
    if (factor.op != MicroOp::kLoad) continue;
    const auto energy = target.array.energy_pj_per_mac.find(group.operands[factor.operand].type);
    if (energy != target.array.energy_pj_per_mac.end()) plan.energy_pj_per_mac = energy->second;
  }
  if (!plan.full.back() && (dims_of[output] & reduced) != 0) {
    return Malformed("operand '", group.operands[output].value,
                     "' varies along a reduction dimension, the program's result does not");
  }
  if (plan.full.back() && (dims_of[output] & reduced) != reduced) {
    return Malformed("the program's result varies along a reduction dimension, operand '",
                     group.operands[output].value, "' does not");
  }
  return plan;
}

Status CheckVectorTypes(const Group& group, const MicroProgram& program, uint8_t output) {
  std::vector<uint8_t> operands = {output};
  for (const MicroInstruction& op : program.ops) {
    if (op.op == MicroOp::kLoad) operands.push_back(op.operand);
  }
  for (const uint8_t o : operands) {
    if (HasValues(group.operands[o].type)) continue;
    return Unsupported("operand '", group.operands[o].value, "': vector programs on ",
                       TypeName(group.operands[o].type));
  }
  return Status();
}

Status PlanInstruction(const Group& group, const Target& target, const Instruction& instruction,
                       GroupPlan* plan) {
  if (instruction.op == Opcode::kArray) {
    DLA_ASSIGN_OR_RETURN(ArrayPlan array, PlanArray(group, target, plan->dims_of, instruction));
    plan->arrays.emplace(&instruction, std::move(array));
  }
  if (instruction.op != Opcode::kArray && instruction.op != Opcode::kVector) return Status();
  const bool drain = instruction.op == Opcode::kArray;
  if (instruction.program == kNone) return Malformed("an instruction lacks its program");
  const uint8_t output = drain ? instruction.operand5 : instruction.operand;
  DLA_RETURN_IF_ERROR(CheckVectorTypes(group, group.programs[instruction.program], output));
  DLA_ASSIGN_OR_RETURN(VectorPlan vector,
                       PlanVector(group, target, plan->dims_of, instruction, output));
  plan->vectors.emplace(&instruction, std::move(vector));
  return Status();
}

}  // namespace

Result<GroupPlan> PlanGroup(const Group& group, const Target& target) {
  GroupPlan plan;
  for (const OperandDesc& operand : group.operands)
    plan.dims_of.push_back(machine::DimsOf(operand));
  for (const auto* code : {&group.prologue, &group.body, &group.epilogue}) {
    for (const Instruction& instruction : *code) {
      const Status status = PlanInstruction(group, target, instruction, &plan);
      if (!status.ok()) return status.At("group '" + group.name + "'");
    }
  }
  return plan;
}

}  // namespace dla::runtime
