// Mappings of groups while values stay on chip, some of which are loaded or stored by the group.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "ir/graph.h"
#include "ir/nest.h"
#include "scheduler/group_costs.h"
#include "scheduler/searcher.h"

namespace dla::scheduler {

// A value that stays while a group runs that makes or reads it.
struct Staying {
  int memory = 0;
  bool is_loaded = false;  // by this group, whole
  bool is_stored = false;  // by this group, which makes it
  bool once = false;       // loaded in the first inference only

  bool operator==(const Staying&) const = default;
  auto operator<=>(const Staying&) const = default;
};

using StayingValues = std::map<ir::ValueId, Staying>;  // by root

class HeldMappings {
 public:
  // Keeps references.
  HeldMappings(const ir::Graph& graph, const std::vector<ir::Nest>& nests, Searcher* searcher);

  // By operand of group g: the memory in which its value stays; -1: none.
  std::vector<int> ResidentIn(size_t g, const StayingValues& staying) const;

  // The best mapping of group g beside `reserved_bytes` of each scratchpad, found as if nothing
  // were loaded or stored, with what is; null: nothing fits. Valid as long as the searcher.
  const SearchResult* Find(size_t g, const StayingValues& staying,
                           const std::vector<int64_t>& reserved_bytes);

  // The mapping with what is loaded and stored; itself if nothing is.
  const SearchResult* WithTransfers(size_t g, const SearchResult* found,
                                    const StayingValues& staying);

 private:
  const ir::Graph& graph_;
  const std::vector<ir::Nest>& nests_;
  Searcher& searcher_;
  GroupCosts costs_;
  using Key = std::tuple<size_t, const SearchResult*, StayingValues>;
  std::map<Key, const SearchResult*> known_;
};

}  // namespace dla::scheduler
