#include "scheduler/searcher.h"

#include <algorithm>

#include "scheduler/mapping_fault.h"
#include "scheduler/predict.h"
#include "scheduler/reuse.h"

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
  // What is repeated changes no mapping, but the counters that go with it.
  for (size_t d = 0; d < nest.dimensions.size(); ++d) {
    const int64_t repeated = nest.dimensions[d].repeated;
    if (repeated != 0) key.insert(key.end(), {-3, static_cast<int64_t>(d), repeated});
  }
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

Searcher::Searcher(const machine::Target& target, Objective objective, const SearchOptions& options,
                   MappingCache* cache)
    : target_(target), objective_(objective), options_(options), cache_(cache) {
  if (cache_ == nullptr) return;
  SearchOptions answers = options_;
  if (answers.way == SearchWay::kReuse) answers.way = SearchWay::kExact;
  context_ = cache_->ContextOf(target, objective, answers);
}

// A mapping is taken if it is legal here and costs what it cost where it was found.
std::optional<SearchResult> Searcher::FromCache(const SearchProblem& problem,
                                                const std::vector<int64_t>& question) {
  const MappingCache::Answers& answers = cache_->AnswersIn(context_);
  const auto it = answers.find(question);
  if (it == answers.end()) return std::nullopt;
  const MappingCache::Answer& answer = it->second;
  std::string fault = MappingFault(problem, answer.mapping);
  if (fault.empty()) {
    SearchResult result = {.mapping = answer.mapping,
                           .predicted = Predict(*problem.nest, answer.mapping, target_),
                           .certificate = answer.certificate,
                           .points = answer.points,
                           .evaluated = answer.evaluated};
    const bool same = result.predicted.cycles == answer.cycles &&
                      result.predicted.dram_bus_bytes() == answer.bus_bytes;
    if (same) return result;
    fault = "it does not cost what is said";
  } else {
    fault = Concat("it is not legal (", fault, ")");
  }
  cache_->Refuse(context_, question, fault);
  return std::nullopt;
}

std::optional<SearchResult> Searcher::Answer(const SearchProblem& problem,
                                             const std::vector<int64_t>& question) {
  if (options_.way == SearchWay::kNone) return DefaultMapping(problem);
  if (cache_ == nullptr) return SearchMapping(problem);
  if (options_.way == SearchWay::kReuse) {
    return ReuseMapping(problem, cache_->AnswersIn(context_), &cache_->use());
  }
  if (std::optional<SearchResult> found = FromCache(problem, question)) {
    ++cache_->use().found;
    return found;
  }
  ++cache_->use().searched;
  std::optional<SearchResult> result = SearchMapping(problem);
  if (!result) return result;
  MappingCache::Answer answer = {.kind = KindOf(*problem.nest, problem.resident_in),
                                 .mapping = result->mapping,
                                 .certificate = result->certificate,
                                 .points = result->points,
                                 .evaluated = result->evaluated,
                                 .cycles = result->predicted.cycles,
                                 .bus_bytes = result->predicted.dram_bus_bytes()};
  for (const ir::Dimension& dimension : problem.nest->dimensions) {
    answer.extents.push_back(dimension.extent);
  }
  cache_->Add(context_, question, std::move(answer));
  return result;
}

const SearchResult* Searcher::Find(const ir::Nest& nest, const std::vector<int>& resident_in,
                                   const std::vector<int64_t>& reserved_bytes) {
  const SearchResult* found = FindWith(options_.buffers, nest, resident_in, reserved_bytes);
  if (found != nullptr || options_.buffers == BufferRule::kBest) return found;
  const std::vector<int> none(nest.operands.size(), -1);
  const std::vector<int64_t> nothing(target_.memories.size(), 0);
  if (FindWith(options_.buffers, nest, none, nothing) != nullptr) return nullptr;
  return FindWith(BufferRule::kBest, nest, resident_in, reserved_bytes);
}

const SearchResult* Searcher::FindWith(BufferRule buffers, const ir::Nest& nest,
                                       const std::vector<int>& resident_in,
                                       const std::vector<int64_t>& reserved_bytes) {
  SearchProblem problem = {
      .nest = &nest, .target = &target_, .objective = objective_, .options = options_};
  problem.options.buffers = buffers;
  problem.resident_in = resident_in;
  std::vector<int64_t> key = CostKey(nest);
  for (size_t m = 0; m < target_.memories.size(); ++m) {
    problem.free_bytes.push_back(
        std::max<int64_t>(UsableBytes(target_.memories[m]) - reserved_bytes[m], 0));
  }
  key.insert(key.end(), resident_in.begin(), resident_in.end());
  key.insert(key.end(), problem.free_bytes.begin(), problem.free_bytes.end());
  if (buffers != options_.buffers) key.push_back(static_cast<int64_t>(buffers));
  auto [it, is_new] = found_.try_emplace(std::move(key));
  if (is_new) it->second = Answer(problem, it->first);
  return it->second ? &*it->second : nullptr;
}

const SearchResult* Searcher::Keep(const ir::Nest& nest, const Mapping& mapping) {
  kept_.push_back({.mapping = mapping, .predicted = Predict(nest, mapping, target_)});
  return &kept_.back();
}

}  // namespace dla::scheduler
