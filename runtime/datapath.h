// The array, vector and move engines: what one instruction computes, counts and takes.
//
// They read and write scratchpads only. runtime/README.md defines every count.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/counters.h"
#include "machine/program.h"
#include "runtime/cursor.h"
#include "runtime/group_plan.h"
#include "runtime/kernels/contraction.h"
#include "runtime/kernels/staging.h"
#include "runtime/kernels/vector_program.h"
#include "runtime/storage.h"
#include "support/status.h"

namespace dla::runtime {

// What an instruction left behind, besides data.
struct Work {
  int64_t cycles = 0;
  double mac_energy_pj = 0;
  double peak_array_cycles = 0;
  // Finite numbers that became infinities: results as they were stored, operands of the array as
  // they were read.
  int64_t overflows = 0, read_overflows = 0;
};

class Datapath {
 public:
  // `storage` is null where no values are wanted (timed mode).
  Datapath(const machine::Program& program, Storage* storage)
      : program_(program), storage_(storage) {}

  // `instruction` belongs to `group`; adds what it does to `counters`.
  Result<Work> Execute(const machine::Group& group, const GroupPlan& plan,
                       const machine::Instruction& instruction, const Step& step,
                       machine::Counters* counters);

 private:
  Result<Work> Run(const machine::Group& group, const GroupPlan& plan,
                   const machine::Instruction& instruction, const Step& step,
                   machine::Counters* counters);
  Result<Work> Array(const machine::Group& group, const GroupPlan& plan,
                     const machine::Instruction& instruction, const Step& step,
                     machine::Counters* counters);
  Result<Work> Vector(const machine::Group& group, const GroupPlan& plan,
                      const machine::Instruction& instruction, const Step& step,
                      machine::Counters* counters);
  Result<Work> Move(const machine::Group& group, const machine::Instruction& instruction,
                    const Step& step, machine::Counters* counters);

  Status Contract(const machine::Group& group, const ArrayPlan& plan,
                  const machine::Instruction& instruction, const Step& step, bool initialise);
  void InitialiseAccumulators(const machine::Group& group, const machine::Instruction& instruction,
                              const Step& step);
  // `accumulator`: the operand that kAccumulator reads, or kNone.
  void RunProgram(const machine::Group& group, const VectorPlan& plan, const MicroProgram& program,
                  uint8_t accumulator, uint8_t output, const Step& step);
  View Stage(const machine::Group& group, uint8_t operand, const Step& step,
             Reused<uint8_t>* buffer);
  // An operand of the array (0: input, 1: weight) as f32, rounded to the type it is read as; panels
  // keep their order.
  View StageRead(const machine::Group& group, uint8_t operand, const Step& step, size_t buffer);

  const machine::Program& program_;
  Storage* storage_;
  int64_t overflows_ = 0, read_overflows_ = 0;  // of the current instruction
  ContractionWorkspace contraction_workspace_;
  VectorWorkspace vector_workspace_;
  std::array<Reused<uint8_t>, machine::kMaxOperands> staging_;
  std::array<Reused<float>, 2> rounded_;
};

}  // namespace dla::runtime
