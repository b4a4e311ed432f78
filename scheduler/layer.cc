#include "scheduler/layer.h"

#include <vector>

namespace dla::scheduler {
namespace {

enum Dim { kN, kG, kM, kC, kE, kF, kR, kS };

ir::Axis Plain(Dim d, int64_t extent) {
  return {.terms = {{.dimension = d}}, .offset = 0, .bound = extent};
}

// Gives the axes dense strides.
void MakeDense(std::vector<ir::Axis>* axes) {
  int64_t stride = 1;
  for (size_t a = axes->size(); a-- > 0;) {
    (*axes)[a].stride = stride;
    stride *= (*axes)[a].bound;
  }
}

}  // namespace

ir::Nest NestOf(const Layer& l, ElementType type) {
  ir::Nest nest;
  nest.dimensions = {{"N", l.N}, {"G", l.G}, {"M", l.M}, {"C", l.C},
                     {"E", l.E}, {"F", l.F}, {"R", l.R}, {"S", l.S}};
  nest.anchor = ir::Anchor::kContraction;
  nest.program.ops = {{.op = MicroOp::kAccumulator}};
  const auto window = [&](Dim out, Dim tap, int64_t bound) {
    return ir::Axis{.terms = {{.dimension = out, .coefficient = l.stride},
                              {.dimension = tap, .coefficient = l.dilation}},
                    .offset = -l.pad,
                    .bound = bound};
  };
  ir::Operand input = {.cls = OperandClass::kInput, .type = type};
  input.axes = {Plain(kN, l.N), Plain(kG, l.G), Plain(kC, l.C), window(kE, kR, l.H),
                window(kF, kS, l.W)};
  ir::Operand weight = {.cls = OperandClass::kWeight, .type = type, .is_constant = true};
  weight.axes = {Plain(kG, l.G), Plain(kM, l.M), Plain(kC, l.C), Plain(kR, l.R), Plain(kS, l.S)};
  ir::Operand output = {.cls = OperandClass::kOutput, .type = type};
  output.axes = {Plain(kN, l.N), Plain(kG, l.G), Plain(kM, l.M), Plain(kE, l.E), Plain(kF, l.F)};
  MakeDense(&input.axes);
  MakeDense(&weight.axes);
  MakeDense(&output.axes);
  nest.operands = {input, weight, output};
  return nest;
}

}  // namespace dla::scheduler
