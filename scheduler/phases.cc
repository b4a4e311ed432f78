#include "scheduler/phases.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "scheduler/transfers.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

// Dimensions over which the nest's vector program reduces.
uint32_t ReducedDims(const ir::Nest& nest) {
  if (nest.reduce_mask != 0) return nest.reduce_mask;
  uint32_t dims = 0;
  for (const MicroInstruction& op : nest.program.ops) {
    if (op.op == MicroOp::kLoad) dims |= DependenceMask(nest, op.operand);
    if (op.op == MicroOp::kIndex) dims |= uint32_t{1} << op.operand;
  }
  return dims & ReductionMask(nest);
}

// A constant: the neutral element of a reduction.
MicroInstruction Neutral(const MicroInstruction& reduction) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  MicroInstruction constant = {.op = MicroOp::kConst, .type = reduction.type};
  if (reduction.op == MicroOp::kReduceMax) constant.immediate[0] = -kInfinity;
  if (reduction.op == MicroOp::kReduceMin) constant.immediate[0] = kInfinity;
  if (reduction.op == MicroOp::kReduceProduct) constant.immediate[0] = 1;
  return constant;
}

// Sums of products as products and sums: a cut reduction runs over one value.
ir::Nest WithoutDots(ir::Nest nest) {
  std::vector<MicroInstruction> ops;
  std::vector<uint8_t> number;
  for (MicroInstruction op : nest.program.ops) {
    for (int a = 0; a < Info(op.op).arguments; ++a) op.argument[At(a)] = number[op.argument[At(a)]];
    if (op.op == MicroOp::kReduceDot) {
      op.op = MicroOp::kMul;
      ops.push_back(op);
      op.op = MicroOp::kReduceSum;
      op.argument = {static_cast<uint8_t>(ops.size() - 1)};
    }
    ops.push_back(op);
    number.push_back(static_cast<uint8_t>(ops.size() - 1));
  }
  nest.program.ops = std::move(ops);
  return nest;
}

class Cutter {
 public:
  explicit Cutter(const ir::Nest& nest)
      : nest_(nest), ops_(nest.program.ops), reduced_(ReducedDims(nest)), cut_(nest) {}

  std::optional<ir::Nest> Run() {
    FindLevels();
    if (reductions_.empty() || !AllFloat()) return std::nullopt;
    const int last_level = *std::max_element(level_.begin(), level_.end());
    const bool full_output = (DependenceMask(nest_, nest_.output()) & reduced_) != 0;
    const int passes = last_level + (full_output ? 1 : 0);
    if (passes > kMaxPasses) return std::nullopt;
    cut_.reduce_mask = reduced_;
    cut_.pass_dimension = static_cast<int>(cut_.dimensions.size());
    cut_.dimensions.push_back({"pass", passes});
    AddLocals();
    for (const size_t r : reductions_) AddReduction(r);
    cut_.phases.push_back({.kind = ir::Phase::Kind::kFinish,
                           .program = Slice(ops_.size() - 1),
                           .output = cut_.output(),
                           .pass = passes - 1});
    return cut_;
  }

 private:
  // Integers have no neutral element of minimum and maximum that a constant can name exactly.
  bool AllFloat() const {
    return std::all_of(reductions_.begin(), reductions_.end(),
                       [&](size_t r) { return IsFloat(ops_[r].type); });
  }

  void FindLevels() {
    for (size_t i = 0; i < ops_.size(); ++i) {
      int level = 0;
      for (int a = 0; a < Info(ops_[i].op).arguments; ++a) {
        level = std::max(level, level_[ops_[i].argument[At(a)]]);
      }
      if (Info(ops_[i].op).reduces) {
        ++level;
        reductions_.push_back(i);
      }
      level_.push_back(level);
    }
  }

  // A running value for each reduction: the dimensions of the program that are not reduced over.
  void AddLocals() {
    uint32_t dims = DependenceMask(nest_, nest_.output());
    for (const MicroInstruction& op : ops_) {
      if (op.op == MicroOp::kLoad) dims |= DependenceMask(nest_, op.operand);
      if (op.op == MicroOp::kIndex) dims |= uint32_t{1} << op.operand;
    }
    ir::Operand local = {.cls = OperandClass::kVector, .is_local = true};
    int64_t stride = 1;
    for (size_t d = nest_.dimensions.size(); d-- > 0;) {
      if (((dims & ~reduced_) >> d & 1U) == 0) continue;
      const int64_t extent = nest_.dimensions[d].extent;
      local.axes.insert(
          local.axes.begin(),
          {.terms = {{.dimension = static_cast<int>(d)}}, .bound = extent, .stride = stride});
      stride *= extent;
    }
    if (local.axes.empty()) local.axes.push_back({.stride = 1});
    for (const size_t r : reductions_) {
      local_[r] = nest_.output() + static_cast<int>(local_.size());
      local.type = ops_[r].type;
      local.type = ops_[r].type;
      cut_.operands.insert(cut_.operands.end() - 1, local);
    }
  }

  void AddReduction(size_t r) {
    const int pass = level_[r] - 1;
    cut_.phases.push_back(
        {ir::Phase::Kind::kBegin, MicroProgram{{Neutral(ops_[r])}}, local_[r], pass});
    MicroProgram program = Slice(ops_[r].argument[0]);
    MicroInstruction reduce = ops_[r];
    reduce.argument[0] = static_cast<uint8_t>(program.ops.size() - 1);
    program.ops.push_back(reduce);
    const uint8_t tile = static_cast<uint8_t>(program.ops.size() - 1);
    program.ops.push_back(
        {.op = MicroOp::kLoad, .type = reduce.type, .operand = static_cast<uint8_t>(local_[r])});
    program.ops.push_back({.op = CombiningOp(reduce.op),
                           .type = reduce.type,
                           .argument = {tile, static_cast<uint8_t>(tile + 1)}});
    cut_.phases.push_back({ir::Phase::Kind::kAccumulate, program, local_[r], pass});
  }

  // The operations that value `last` needs, earlier reductions replaced by their running values.
  MicroProgram Slice(size_t last) const {
    std::vector<bool> needed(ops_.size(), false);
    needed[last] = true;
    for (size_t i = last + 1; i-- > 0;) {
      if (!needed[i] || Info(ops_[i].op).reduces) continue;
      for (int a = 0; a < Info(ops_[i].op).arguments; ++a) needed[ops_[i].argument[At(a)]] = true;
    }
    MicroProgram slice;
    std::vector<uint8_t> number(ops_.size(), 0);
    for (size_t i = 0; i <= last; ++i) {
      if (!needed[i]) continue;
      MicroInstruction op = ops_[i];
      if (Info(op.op).reduces) {
        op = {.op = MicroOp::kLoad, .type = op.type, .operand = static_cast<uint8_t>(local_.at(i))};
      }
      for (int a = 0; a < Info(op.op).arguments; ++a) {
        op.argument[At(a)] = number[op.argument[At(a)]];
      }
      number[i] = static_cast<uint8_t>(slice.ops.size());
      slice.ops.push_back(op);
    }
    return slice;
  }

  const ir::Nest& nest_;
  const std::vector<MicroInstruction>& ops_;
  const uint32_t reduced_;
  ir::Nest cut_;
  std::vector<int> level_;  // of each value: how many reductions lie behind one another up to it
  std::vector<size_t> reductions_;
  std::map<size_t, int> local_;  // operand of each reduction's running value
};

}  // namespace

std::optional<ir::Nest> CutReductions(const ir::Nest& nest) {
  if (nest.anchor != ir::Anchor::kVector || nest.pass_dimension >= 0) return std::nullopt;
  const ir::Nest plain = WithoutDots(nest);
  if (plain.program.ops.size() > static_cast<size_t>(kMaxMicroOps)) return std::nullopt;
  return Cutter(plain).Run();
}

}  // namespace dla::scheduler
