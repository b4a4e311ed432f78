// `--check`: follows every element through DRAM and scratchpads and compares what an engine reads
// with what the program means it to read.
//
// Reading something never written, overwritten, or of another tile is an error that names group,
// instruction, operand, address, what was expected and what was found. Accumulators must belong to
// the tile that is computed and hold exactly the products of the steps before. At the end every
// byte of every output must have been stored.
#pragma once

#include <cstdint>
#include <vector>

#include "machine/program.h"
#include "runtime/cursor.h"
#include "runtime/group_plan.h"
#include "runtime/shadow_cells.h"
#include "runtime/tile.h"
#include "support/status.h"

namespace dla::runtime {

class Shadow {
 public:
  explicit Shadow(const machine::Program& program);

  // Another run begins: what was not loaded once is lost.
  void BeginRun();
  // What follows belongs to the group with this number.
  void BeginGroup(int32_t group) { group_ = group; }
  // What one executed instruction reads and writes. Called in the order of execution.
  Status Load(const machine::Group& group, const machine::OperandDesc& operand, const Tile& tile,
              const Step& step);
  Status Store(const machine::Group& group, uint8_t operand, const Step& step);
  Status Array(const machine::Group& group, const ArrayPlan& plan,
               const machine::Instruction& instruction, const Step& step);
  Status Vector(const machine::Group& group, const machine::Instruction& instruction,
                const Step& step);
  Status Move(const machine::Group& group, const machine::Instruction& instruction,
              const Step& step);
  // Were all outputs stored?
  Status Finish() const;

 private:
  // Identity of the operand's elements; `element` is filled in row by row.
  Cell CellOf(const machine::OperandDesc& operand);
  Status Expect(const machine::OperandDesc& operand, const Tile& tile, Cell expected,
                const char* reader) const;
  Status ExpectInMemory(const machine::OperandDesc& operand, int64_t address, const Cell& expected,
                        const char* reader) const;
  void Write(const machine::OperandDesc& operand, const Tile& tile, Cell cell);
  // The load of a gathered tile: its indices are there, and every entry that they could name.
  Status Gather(const machine::Group& group, const machine::OperandDesc& operand, const Tile& tile,
                const Step& step);
  // The operand that was loaded into the buffer of `stored`, if no engine of the group writes it.
  const machine::OperandDesc* LoadedInto(const machine::Group& group, uint8_t stored) const;
  Status ReadProgram(const machine::Group& group, const MicroProgram& program, const Step& step,
                     const char* reader);

  const machine::Program& program_;
  Spaces spaces_;
  int32_t group_ = 0;
  std::vector<CellArray> scratchpads_;
  std::vector<CellArray> regions_;  // of temporaries and outputs; others are empty
};

}  // namespace dla::runtime
