// Builds the nest of a group from strided loops.
//
// An operator's nest function names its loops (outermost first) and gives every operand its stride
// along each of them (0: it does not depend on the loop); windows of convolutions and pooling are
// added as axes of their own. Build() drops loops of extent 1 and merges neighbours that all
// operands walk contiguously, so that dense element-wise work has one dimension, then numbers the
// micro-program's operands. Fused operations are appended in order.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/micro_writer.h"
#include "ir/nest.h"
#include "ir/op.h"

namespace dla::ir {

class NestBuilder {
 public:
  NestBuilder(const Graph& graph, const Node& node, Anchor anchor);

  // A loop; `keep`: neither dropped nor merged. Returns its number.
  int AddLoop(const std::string& name, int64_t extent, bool keep = false);
  // The same, named by a letter and the number of the axis.
  int AddNumberedLoop(const char* letter, size_t axis, int64_t extent, bool keep = false) {
    return AddLoop(Concat(letter, axis), extent, keep);
  }
  // An operand that starts at its value's storage offset. Returns its number.
  int AddOperand(ValueId value, OperandClass cls, std::vector<int64_t> strides);
  // A windowed axis behind the operand's plain axes; its terms name (kept) loops by number.
  void AddWindowAxis(int operand, Axis axis, double pad_value);

  // Operand `operand` is gathered by operand `indices` (ir/nest.h). Its strides along the loops of
  // the indices are as if all indices were the same.
  void SetGather(int operand, const Gather& gather);

  // How axis a of outputs[0] is walked: one loop, or two where an axis is split (outer, inner).
  struct OutputAxis {
    int outer = -1;  // -1: not split
    int inner = 0;
    // The index is outer * repeat + inner (both loops kept) in one axis of the operand, instead of
    // an axis for each loop; 0: no such axis.
    int64_t repeat = 0;
  };
  // Adds the operands of fused operations (class kVector), then the output (always last).
  // Constants of one element become immediates. `unit_loop`s: kept loops of extent 1 that
  // stand for no axis of the value; the output gets an axis for each.
  void AddFusedAndOutput(const std::vector<OutputAxis>& axes, OperandClass output_class,
                         int unit_loop = -1, int other_unit_loop = -1);
  // The strides over the loops of a value broadcast to outputs[0].
  std::vector<int64_t> OutputStrides(ValueId value, const std::vector<OutputAxis>& axes) const;

  // The program, for the anchor's part. Index(k) in it means loop k.
  MicroWriter writer() { return MicroWriter(&nest_.program); }
  // Appends an operation with these arguments, returns the number of its value.
  int Emit(MicroOp op, int a = 0, int b = 0);
  // Emits kLoad for the operands from `first_operand` up to the output. Vector programs begin
  // with it; contractions call it after kAccumulator, for the operands behind the bias.
  // Indices (`except`) are read by the load engine, not by the program.
  void EmitLoads(int first_operand, int except = -1);
  // Number of the value that operand k was loaded into.
  int Loaded(int operand) const { return loaded_[static_cast<size_t>(operand)]; }
  // Appends the fused operations, the first of which works on `value`.
  void EmitFused(int value);
  // The value that stands at a position of node.inputs: loaded, or an immediate.
  int InputValue(int position);

  void set_bias(int operand) { nest_.bias = operand; }
  // Reductions run over this loop although the output has it, too. Such loops merge only with each
  // other.
  void AddReduceLoop(int loop) { loops_[static_cast<size_t>(loop)].reduced = true; }

  // Registers that node.inputs[position] is this operand (for anchors that are element-wise).
  void BindInput(int position, int operand);

  Result<Nest> Build();

 private:
  int AddAlongOutput(ValueId value, OperandClass cls, const std::vector<OutputAxis>& axes);

  struct LoopAxis {
    std::string name;
    int64_t extent;
    bool keep;
    bool reduced = false;
  };
  struct PendingAxis {
    int operand;
    Axis axis;
  };
  bool CanMerge(size_t outer, size_t inner) const;
  // Gives the new number of each loop.
  std::vector<int> MergeLoops();
  void MakeAxes();
  void FinishProgram(const std::vector<int>& loop_numbers);

  const Graph& graph_;
  const Node& node_;
  Nest nest_;
  std::vector<LoopAxis> loops_;
  std::vector<std::vector<int64_t>> strides_;  // [operand][loop]
  std::vector<PendingAxis> windows_;
  std::vector<int> loaded_;          // [operand]
  std::vector<int> input_operand_;   // [position of node.inputs], -1: none
  std::vector<int> input_constant_;  // [position]: value number of the immediate, -1: none yet
};

}  // namespace dla::ir
