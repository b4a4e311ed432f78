#include "scheduler/searcher.h"

#include <algorithm>

#include "scheduler/predict.h"

namespace dla::scheduler {

int64_t UsableBytes(const machine::Memory& memory) {
  return memory.bytes / memory.align_bytes * memory.align_bytes;
}

std::vector<int64_t> CostKey(const ir::Nest& nest) {
  std::vector<int64_t> key = {static_cast<int64_t>(nest.anchor), nest.bias, nest.reduce_mask,
                              static_cast<int64_t>(nest.dimensions.size()),
                              static_cast<int64_t>(nest.operands.size())};
  key.push_back(nest.pass_dimension);
  for (const ir::Dimension& dimension : nest.dimensions) key.push_back(dimension.extent);
  for (const ir::Operand& operand : nest.operands) {
    key.insert(key.end(), {static_cast<int64_t>(operand.cls), static_cast<int64_t>(operand.type),
                           static_cast<int64_t>(operand.ReadType()), operand.is_constant,
                           operand.is_local, static_cast<int64_t>(operand.axes.size())});
    if (const auto& d = operand.diagonal) {
      key.insert(key.end(), {-2, d->channel_dimension, d->channels, d->depth_dimension, d->depths});
    }
    if (operand.gather) key.insert(key.end(), {-1, operand.gather->indices});
    for (const ir::Axis& axis : operand.axes) {
      key.insert(key.end(),
                 {axis.offset, axis.bound, axis.stride, static_cast<int64_t>(axis.terms.size())});
      for (const ir::Term& term : axis.terms) {
        key.insert(key.end(), {term.dimension, term.coefficient});
      }
    }
  }
  for (const MicroInstruction& op : nest.program.ops) {
    key.insert(key.end(), {static_cast<int64_t>(op.op), static_cast<int64_t>(op.type), op.operand,
                           op.argument[0], op.argument[1], op.argument[2]});
  }
  return key;
}

const SearchResult* Searcher::Find(const ir::Nest& nest, const std::vector<int>& resident_in,
                                   const std::vector<int64_t>& reserved_bytes) {
  SearchProblem problem = {
      .nest = &nest, .target = &target_, .objective = objective_, .options = options_};
  problem.resident_in = resident_in;
  std::vector<int64_t> key = CostKey(nest);
  for (size_t m = 0; m < target_.memories.size(); ++m) {
    problem.free_bytes.push_back(
        std::max<int64_t>(UsableBytes(target_.memories[m]) - reserved_bytes[m], 0));
  }
  key.insert(key.end(), resident_in.begin(), resident_in.end());
  key.insert(key.end(), problem.free_bytes.begin(), problem.free_bytes.end());
  auto [it, is_new] = found_.try_emplace(std::move(key));
  if (is_new) it->second = SearchMapping(problem);
  return it->second ? &*it->second : nullptr;
}

const SearchResult* Searcher::Keep(const ir::Nest& nest, const Mapping& mapping) {
  kept_.push_back({.mapping = mapping, .predicted = Predict(nest, mapping, target_)});
  return &kept_.back();
}

}  // namespace dla::scheduler
