#include "scheduler/engine_choice.h"

#include <vector>

#include "ir/vector_form.h"
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

ir::Nest ChooseEngine(const ir::Nest& nest, Searcher* searcher) {
  const machine::Target& target = searcher->target();
  const std::optional<ir::Nest> vector = ir::VectorForm(nest);
  if (!vector || !Lacking(*vector, target).empty()) return nest;
  // The array is rarely slower; only then is it worth a search.
  if (ComputeCycles(*vector, target) >= ComputeCycles(nest, target)) return nest;
  const std::vector<int> nowhere(nest.operands.size(), -1);
  const std::vector<int64_t> nothing(target.memories.size(), 0);
  const SearchResult* on_vector = searcher->Find(*vector, nowhere, nothing);
  if (on_vector == nullptr) return nest;
  const SearchResult* on_array = searcher->Find(nest, nowhere, nothing);
  const bool is_better = on_array == nullptr || CostOf(*vector, *on_vector, *searcher) <
                                                    CostOf(nest, *on_array, *searcher);
  return is_better ? *vector : nest;
}

}  // namespace dla::scheduler
