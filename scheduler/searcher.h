// Searches with a memory: layers of the same shape are searched once, with a cache over all
// compilations.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "scheduler/mapping_cache.h"
#include "scheduler/search.h"

namespace dla::scheduler {

class Searcher {
 public:
  // `cache` may be null; SearchWay::kReuse needs one.
  Searcher(const machine::Target& target, Objective objective, const SearchOptions& options,
           MappingCache* cache = nullptr);

  // The best mapping of the nest when operand o is resident in memory resident_in[o] (-1: not) and
  // `reserved_bytes` of each scratchpad are taken; null if nothing fits. The result stays valid as
  // long as the searcher. A nest that no mapping with the buffers asked for fits into the whole
  // scratchpads may have any buffers.
  const SearchResult* Find(const ir::Nest& nest, const std::vector<int>& resident_in,
                           const std::vector<int64_t>& reserved_bytes);

  // A mapping that was not searched, with its prediction; valid as long as the searcher.
  const SearchResult* Keep(const ir::Nest& nest, const Mapping& mapping);

  const machine::Target& target() const { return target_; }
  Objective objective() const { return objective_; }

 private:
  const SearchResult* FindWith(BufferRule buffers, const ir::Nest& nest,
                               const std::vector<int>& resident_in,
                               const std::vector<int64_t>& reserved_bytes);
  std::optional<SearchResult> Answer(const SearchProblem& problem,
                                     const std::vector<int64_t>& question);
  std::optional<SearchResult> FromCache(const SearchProblem& problem,
                                        const std::vector<int64_t>& question);

  const machine::Target& target_;
  Objective objective_;
  SearchOptions options_;
  MappingCache* cache_;
  std::string context_;  // of the cache's answers
  std::map<std::vector<int64_t>, std::optional<SearchResult>> found_;
  std::deque<SearchResult> kept_;
};

// Everything of a nest that a mapping's cost depends on, as numbers: equal keys, equal costs.
std::vector<int64_t> CostKey(const ir::Nest& nest);

// Usable bytes of a scratchpad: its size rounded down to its alignment.
int64_t UsableBytes(const machine::Memory& memory);

}  // namespace dla::scheduler
