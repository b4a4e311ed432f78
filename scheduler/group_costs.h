// What groups cost beside what is resident: mapping searches, as few as possible.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "ir/nest.h"
#include "scheduler/searcher.h"

namespace dla::scheduler {

// A mapping that was found with more room is taken again where it fits in less: with less room
// there is nothing better; and room counts in 64ths of a scratchpad. So most questions need no
// search.
class GroupCosts {
 public:
  GroupCosts(const std::vector<ir::Nest>& nests, Searcher* searcher);

  // As Searcher::Find for group g.
  const SearchResult* Find(size_t g, const std::vector<int>& resident_in,
                           const std::vector<int64_t>& reserved_bytes);

 private:
  struct Known {
    std::vector<int64_t> reserved;  // when it was searched
    std::vector<int64_t> used;      // by its tile buffers, by memory
    const SearchResult* result = nullptr;
  };

  const SearchResult* Ask(size_t g, const std::vector<int>& resident_in,
                          const std::vector<int64_t>& reserved_bytes);

  const std::vector<ir::Nest>& nests_;
  Searcher& searcher_;
  std::vector<int> shape_;  // by group: groups of one number cost the same
  std::map<std::pair<int, std::vector<int>>, std::vector<Known>> known_;
};

// Bytes of the mapping's tile buffers, by memory.
std::vector<int64_t> UsedBytes(const ir::Nest& nest, const Mapping& mapping,
                               const machine::Target& target);

}  // namespace dla::scheduler
