#include "scheduler/held_mappings.h"

#include <algorithm>

#include "scheduler/residency_candidates.h"
#include "scheduler/value_flow.h"

namespace dla::scheduler {

HeldMappings::HeldMappings(const ir::Graph& graph, const std::vector<ir::Nest>& nests,
                           Searcher* searcher)
    : graph_(graph), nests_(nests), searcher_(*searcher), costs_(nests, searcher) {}

std::vector<int> HeldMappings::ResidentIn(size_t g, const StayingValues& staying) const {
  const ir::Nest& nest = nests_[g];
  std::vector<int> resident_in(nest.operands.size(), -1);
  for (size_t o = 0; o < nest.operands.size(); ++o) {
    const auto it = staying.find(RootOf(graph_, nest.operands[o]));
    if (it != staying.end()) resident_in[o] = it->second.memory;
  }
  return resident_in;
}

const SearchResult* HeldMappings::Find(size_t g, const StayingValues& staying,
                                       const std::vector<int64_t>& reserved_bytes) {
  for (size_t m = 0; m < reserved_bytes.size(); ++m) {
    if (reserved_bytes[m] > UsableBytes(searcher_.target().memories[m])) return nullptr;
  }
  return WithTransfers(g, costs_.Find(g, ResidentIn(g, staying), reserved_bytes), staying);
}

const SearchResult* HeldMappings::WithTransfers(size_t g, const SearchResult* found,
                                                const StayingValues& staying) {
  const bool any = std::any_of(staying.begin(), staying.end(), [](const auto& value) {
    return value.second.is_loaded || value.second.is_stored;
  });
  if (found == nullptr || !any) return found;
  const auto [known, is_new] = known_.try_emplace({g, found, staying}, nullptr);
  if (!is_new) return known->second;
  const ir::Nest& nest = nests_[g];
  Mapping mapping = found->mapping;
  for (const auto& [root, value] : staying) {
    for (int o = 0; o <= nest.output(); ++o) {
      if (RootOf(graph_, nest.operands[static_cast<size_t>(o)]) != root) continue;
      OperandPlace& place = mapping.operands[static_cast<size_t>(o)];
      if (o == nest.output()) {
        place.through_dram = value.is_stored;
      } else if (value.is_loaded) {
        place.through_dram = true;
        place.fill_bytes = RootBytes(graph_, root);
        place.once = value.once;
        break;  // it is loaded once, however many operands it has
      }
    }
  }
  known->second = searcher_.Keep(nest, mapping);
  return known->second;
}

}  // namespace dla::scheduler
