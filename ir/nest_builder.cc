#include "ir/nest_builder.h"

#include <algorithm>

#include "ir/kernels/strided.h"

namespace dla::ir {

NestBuilder::NestBuilder(const Graph& graph, const Node& node, Anchor anchor)
    : graph_(graph),
      node_(node),
      input_operand_(node.inputs.size(), -1),
      input_constant_(node.inputs.size(), -1) {
  nest_.anchor = anchor;
}

int NestBuilder::AddLoop(const std::string& name, int64_t extent, bool keep) {
  loops_.push_back({name, extent, keep});
  return static_cast<int>(loops_.size()) - 1;
}

int NestBuilder::AddOperand(ValueId value, OperandClass cls, std::vector<int64_t> strides) {
  const Value& v = graph_.values[Idx(value)];
  DLA_CHECK(v.storage.root != kNoValue, "'", v.name, "' has no storage");
  Operand operand;
  operand.value = value;
  operand.cls = cls;
  operand.type = v.StoredType();
  operand.base = v.storage.offset;
  nest_.operands.push_back(operand);
  strides_.push_back(std::move(strides));
  loaded_.push_back(-1);
  return static_cast<int>(nest_.operands.size()) - 1;
}

void NestBuilder::AddWindowAxis(int operand, Axis axis, double pad_value) {
  windows_.push_back({operand, std::move(axis)});
  nest_.operands[Idx(operand)].pad_value = pad_value;
}

void NestBuilder::SetGather(int operand, const Gather& gather) {
  nest_.operands[Idx(operand)].gather = gather;
}

std::vector<int64_t> NestBuilder::OutputStrides(ValueId value,
                                                const std::vector<OutputAxis>& axes) const {
  const Value& v = graph_.values[Idx(value)];
  const Shape& shape = graph_.values[Idx(node_.outputs[0])].shape;
  Shape along = BroadcastStrides(v.shape, v.storage.strides, shape);
  const size_t lead = shape.size() - v.shape.size();
  for (size_t i = lead; i < shape.size(); ++i) {
    // An axis of extent 1 that is not broadcast belongs to the operand: a kept loop over it must
    // not look like a reduction (a loop that is one has another extent than the output's axis).
    if (shape[i] == 1 && loops_[Idx(axes[i].inner)].extent == 1) {
      along[i] = std::max<int64_t>(1, v.storage.strides[i - lead]);
    }
  }
  std::vector<int64_t> strides(loops_.size(), 0);
  for (size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].repeat > 0) continue;
    if (axes[a].outer >= 0) {
      strides[Idx(axes[a].outer)] = along[a] * loops_[Idx(axes[a].inner)].extent;
    }
    strides[Idx(axes[a].inner)] = along[a];
  }
  return strides;
}

void NestBuilder::BindInput(int position, int operand) { input_operand_[Idx(position)] = operand; }

void NestBuilder::AddFusedAndOutput(const std::vector<OutputAxis>& axes, OperandClass output_class,
                                    int unit_loop, int other_unit_loop) {
  for (const FusedOp& op : node_.fused) {
    for (const int position : op.inputs) {
      if (position < 0 || input_operand_[Idx(position)] >= 0) continue;
      const ValueId value = node_.inputs[Idx(position)];
      if (ImmediateOf(graph_, value)) continue;
      BindInput(position, AddAlongOutput(value, OperandClass::kVector, axes));
    }
  }
  const int output = AddAlongOutput(node_.outputs[0], output_class, axes);
  std::vector<int64_t>& strides = strides_[Idx(output)];
  if (unit_loop >= 0) strides[Idx(unit_loop)] = 1;
  if (other_unit_loop >= 0) strides[Idx(other_unit_loop)] = 1;
}

int NestBuilder::AddAlongOutput(ValueId value, OperandClass cls,
                                const std::vector<OutputAxis>& axes) {
  const int operand = AddOperand(value, cls, OutputStrides(value, axes));
  const Value& v = graph_.values[Idx(value)];
  const size_t lead = axes.size() - v.shape.size();
  for (size_t a = lead; a < axes.size(); ++a) {
    const int64_t extent = v.shape[a - lead];
    if (axes[a].repeat == 0 || extent == 1) continue;  // an extent of 1 is broadcast
    windows_.push_back({operand,
                        {.terms = {{axes[a].outer, axes[a].repeat}, {axes[a].inner, 1}},
                         .offset = 0,
                         .bound = extent,
                         .stride = v.storage.strides[a - lead]}});
  }
  return operand;
}

int NestBuilder::Emit(MicroOp op, int a, int b) {
  if (Info(op).arguments == 2) return writer().Op(op, a, b);
  if (Info(op).arguments == 1) return writer().Op(op, a);
  nest_.program.ops.push_back({.op = op});
  return static_cast<int>(nest_.program.ops.size()) - 1;
}

void NestBuilder::EmitLoads(int first_operand, int except) {
  for (int k = first_operand; k < nest_.output(); ++k) {
    if (k == except) continue;
    loaded_[Idx(k)] = writer().Load(k, nest_.operands[Idx(k)].type);
  }
}

int NestBuilder::InputValue(int position) {
  if (input_operand_[Idx(position)] >= 0) return Loaded(input_operand_[Idx(position)]);
  int& constant = input_constant_[Idx(position)];
  if (constant < 0) {
    const ValueId id = node_.inputs[Idx(position)];
    const auto number = ImmediateOf(graph_, id);
    DLA_CHECK(number.has_value(), "operand ", position, " of '", node_.name, "' is not bound");
    constant = writer().Const(ValueType(graph_.values[Idx(id)].type), *number);
  }
  return constant;
}

void NestBuilder::EmitFused(int value) {
  std::vector<int> chain = {value};
  for (const FusedOp& op : node_.fused) {
    std::vector<int> arguments;
    for (const int input : op.inputs) {
      arguments.push_back(input >= 0 ? InputValue(input)
                                     : chain[chain.size() - static_cast<size_t>(-input)]);
    }
    MicroWriter writer(&nest_.program);
    chain.push_back(FindOperator(op.op)->emit(op.attributes, arguments, &writer));
  }
}

bool NestBuilder::CanMerge(size_t outer, size_t inner) const {
  if (loops_[outer].keep || loops_[inner].keep) return false;
  if (loops_[outer].reduced != loops_[inner].reduced) return false;
  return std::all_of(strides_.begin(), strides_.end(), [&](const std::vector<int64_t>& strides) {
    return strides[outer] == strides[inner] * loops_[inner].extent;
  });
}

// Drops loops of extent 1 and merges neighbours; `loops_` and `strides_` shrink together. Window
// axes name loops by number, so those are renumbered.
std::vector<int> NestBuilder::MergeLoops() {
  for (std::vector<int64_t>& strides : strides_) strides.resize(loops_.size(), 0);
  std::vector<int> number(loops_.size());
  std::vector<LoopAxis> loops;
  std::vector<size_t> sources;
  for (size_t i = 0; i < loops_.size(); ++i) {
    number[i] = static_cast<int>(loops.size());
    if (loops_[i].extent == 1 && !loops_[i].keep) continue;
    if (!sources.empty() && !loops.back().keep && CanMerge(sources.back(), i)) {
      loops.back().extent *= loops_[i].extent;
      loops.back().name = loops_[i].name;
      sources.back() = i;
      continue;
    }
    loops.push_back(loops_[i]);
    sources.push_back(i);
  }
  if (loops.empty()) {
    loops.push_back({"d0", 1, true});
    for (std::vector<int64_t>& strides : strides_) strides = {1};
  } else {
    for (std::vector<int64_t>& strides : strides_) {
      std::vector<int64_t> kept;
      for (const size_t source : sources) kept.push_back(strides[source]);
      strides = std::move(kept);
    }
  }
  for (PendingAxis& window : windows_) {
    for (Term& term : window.axis.terms) term.dimension = number[Idx(term.dimension)];
  }
  loops_ = std::move(loops);
  return number;
}

void NestBuilder::MakeAxes() {
  for (const LoopAxis& loop : loops_) nest_.dimensions.push_back({loop.name, loop.extent});
  for (size_t k = 0; k < nest_.operands.size(); ++k) {
    std::vector<Axis>& axes = nest_.operands[k].axes;
    const std::optional<Gather>& gather = nest_.operands[k].gather;
    for (size_t d = 0; d < loops_.size(); ++d) {
      const bool gathers = gather && strides_[Idx(gather->indices)][d] != 0;
      if (strides_[k][d] == 0 && !gathers) continue;
      axes.push_back({.terms = {{static_cast<int>(d), 1}},
                      .offset = 0,
                      .bound = loops_[d].extent,
                      .stride = strides_[k][d]});
    }
  }
  for (PendingAxis& window : windows_) {
    nest_.operands[Idx(window.operand)].axes.push_back(std::move(window.axis));
  }
  for (Operand& operand : nest_.operands) {
    // A single element: one axis that no dimension moves.
    if (operand.axes.empty()) operand.axes.push_back({.terms = {}, .stride = 1});
  }
  for (size_t d = 0; d < loops_.size(); ++d) {
    if (loops_[d].reduced) nest_.reduce_mask |= uint32_t{1} << d;
  }
}

// Indices name loops by their new numbers; where nothing is left to reduce, reductions are copies.
void NestBuilder::FinishProgram(const std::vector<int>& loop_numbers) {
  bool reduces = nest_.reduce_mask != 0;
  for (size_t d = 0; d < nest_.dimensions.size(); ++d) {
    reduces = reduces || nest_.IsReduction(static_cast<int>(d));
  }
  for (MicroInstruction& op : nest_.program.ops) {
    if (op.op == MicroOp::kIndex) op.operand = static_cast<uint8_t>(loop_numbers[op.operand]);
    if (Info(op.op).reduces && !reduces) op.op = MicroOp::kCopy;
  }
}

Result<Nest> NestBuilder::Build() {
  const std::vector<int> loop_numbers = MergeLoops();
  MakeAxes();
  FinishProgram(loop_numbers);
  if (nest_.program.ops.size() > Idx(kMaxMicroOps)) {
    return Unsupported("its micro-program has ", nest_.program.ops.size(), " operations; ",
                       kMaxMicroOps, " are possible");
  }
  // Names are unique: a second dimension of the same name gets a number.
  for (size_t i = 0; i < nest_.dimensions.size(); ++i) {
    int same = 0;
    const std::string name = nest_.dimensions[i].name;
    for (size_t j = i + 1; j < nest_.dimensions.size(); ++j) {
      if (nest_.dimensions[j].name == name) {
        nest_.dimensions[j].name = name + std::to_string(++same);
      }
    }
  }
  return std::move(nest_);
}

}  // namespace dla::ir
