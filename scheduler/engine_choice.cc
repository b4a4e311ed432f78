#include "scheduler/engine_choice.h"

#include <algorithm>
#include <vector>

#include "ir/packed_groups.h"
#include "ir/vector_form.h"
#include "scheduler/predict.h"
#include "scheduler/residency.h"
#include "scheduler/work.h"

namespace dla::scheduler {
namespace {

// The engines' cycles for the whole nest in one step, without any waiting.
int64_t ComputeCycles(const ir::Nest& nest, const machine::Target& target) {
  std::vector<int64_t> lengths;
  for (const ir::Dimension& dimension : nest.dimensions) lengths.push_back(dimension.extent);
  const EngineWork work = SplitWork(nest, target.output_stage);
  int64_t cycles = 0;
  if (nest.anchor == ir::Anchor::kContraction) {
    const auto rate = target.array.rates.find(
        {nest.operands[ir::Nest::kInput].ReadType(), nest.operands[ir::Nest::kWeight].ReadType()});
    cycles += machine::ArrayCycles(target.array, rate->second, ExtentsOf(nest, lengths));
  }
  for (const VectorWork& vector : work.vector) {
    cycles += machine::VectorCycles(target.vector, vector.program, vector.shape.full,
                                    Points(vector.shape.full_dims, lengths),
                                    Points(vector.shape.reduced_dims, lengths));
  }
  return cycles;
}

double CostOf(const ir::Nest& nest, const SearchResult& result, const Searcher& searcher) {
  return AdditiveCost(result.predicted, nest, searcher.target(), searcher.objective());
}

// Below the cost of every mapping: the engines never wait, every element moves once.
double LeastCost(const ir::Nest& nest, const Searcher& searcher) {
  const machine::Target& target = searcher.target();
  Mapping nothing_stays;
  nothing_stays.operands.resize(nest.operands.size());
  int64_t bytes = CompulsoryBytes(nest, nothing_stays);
  if (nest.anchor == ir::Anchor::kContraction) {  // the zeros move, too
    const ir::Operand& weight = nest.operands[ir::Nest::kWeight];
    int64_t elements = 1;
    for (const ir::Axis& axis : weight.axes) elements *= axis.bound;
    bytes += TypeBytes(weight.type, elements - elements / ir::ZeroFactor(weight, nest));
  }
  machine::Counters least;
  least.traffic[0].load_bus_bytes = bytes;
  least.cycles = std::max(ComputeCycles(nest, target), machine::TransferCycles(target, 0, bytes));
  return AdditiveCost(least, nest, target, searcher.objective());
}

struct Form {
  ir::Nest nest;
  double least = 0;
};

// Other forms of the nest that keep the engines busy for less time, the most promising first.
std::vector<Form> OtherForms(const ir::Nest& nest, MultiplyBy by, const Searcher& searcher) {
  const machine::Target& target = searcher.target();
  const int64_t cycles = by == MultiplyBy::kBest ? ComputeCycles(nest, target) : INT64_MAX;
  std::vector<Form> forms;
  const auto add = [&](const std::optional<ir::Nest>& form) {
    if (!form || !Lacking(*form, target).empty()) return;
    if (ComputeCycles(*form, target) < cycles) forms.push_back({*form, LeastCost(*form, searcher)});
  };
  if (by != MultiplyBy::kPacked) add(ir::VectorForm(nest));
  if (by != MultiplyBy::kVector) {
    for (const int64_t count : ir::PackCounts(nest)) add(ir::PackGroups(nest, count));
  }
  std::stable_sort(forms.begin(), forms.end(),
                   [](const Form& a, const Form& b) { return a.least < b.least; });
  return forms;
}

}  // namespace

std::string Lacking(const ir::Nest& nest, const machine::Target& target) {
  if (nest.anchor == ir::Anchor::kContraction) {
    const ElementType input = nest.operands[ir::Nest::kInput].ReadType();
    const ElementType weight = nest.operands[ir::Nest::kWeight].ReadType();
    if (target.array.rates.count({input, weight}) == 0 ||
        target.array.accumulator.count(input) == 0) {
      std::string pairs;
      for (const auto& [types, rate] : target.array.rates) {
        pairs += Concat(pairs.empty() ? "" : ", ", TypeName(types.first), " by ",
                        TypeName(types.second));
      }
      return Concat("the array of '", target.name, "' does not multiply ", TypeName(input), " by ",
                    TypeName(weight), "; it does ", pairs);
    }
  }
  for (const VectorWork& work : SplitWork(nest, target.output_stage).vector) {
    for (const MicroInstruction& op : work.program.ops) {
      const OpClass op_class = Info(op.op).op_class;
      if (op_class == OpClass::kFree) continue;
      if (target.vector.op_cycles[static_cast<size_t>(op_class)] <= 0) {
        return Concat("the vector unit of '", target.name, "' has no '", OpClassName(op_class),
                      "'");
      }
    }
  }
  return "";
}

std::optional<MultiplyBy> ParseMultiplyBy(std::string_view text) {
  if (text == "best") return MultiplyBy::kBest;
  if (text == "array") return MultiplyBy::kArray;
  if (text == "packed") return MultiplyBy::kPacked;
  if (text == "vector") return MultiplyBy::kVector;
  return std::nullopt;
}

ir::Nest ChooseEngine(const ir::Nest& nest, MultiplyBy by, Searcher* searcher) {
  if (nest.anchor != ir::Anchor::kContraction || by == MultiplyBy::kArray) return nest;
  std::vector<Form> forms = OtherForms(nest, by, *searcher);
  if (forms.empty()) return nest;
  // The nest as it is goes first: of equals it is taken.
  if (by == MultiplyBy::kBest) forms.insert(forms.begin(), {nest, 0});
  const std::vector<int> nowhere(nest.operands.size(), -1);
  const std::vector<int64_t> nothing(searcher->target().memories.size(), 0);
  const Form* best = nullptr;
  double least = 0;
  for (const Form& form : forms) {
    if (best != nullptr && form.least >= least) break;
    const SearchResult* result = searcher->Find(form.nest, nowhere, nothing);
    if (result == nullptr) continue;
    const double cost = CostOf(form.nest, *result, *searcher);
    if (best != nullptr && cost >= least) continue;
    best = &form;
    least = cost;
  }
  return best == nullptr ? nest : best->nest;
}

}  // namespace dla::scheduler
