#include "scheduler/group_costs.h"

#include <algorithm>

#include "scheduler/predict.h"
#include "scheduler/transfers.h"
#include "support/checked.h"

namespace dla::scheduler {
namespace {

size_t At(int i) { return static_cast<size_t>(i); }

constexpr int64_t kGrains = 64;  // of a scratchpad

}  // namespace

GroupCosts::GroupCosts(const std::vector<ir::Nest>& nests, Searcher* searcher)
    : nests_(nests), searcher_(*searcher) {
  std::map<std::vector<int64_t>, int> shapes;
  for (const ir::Nest& nest : nests) {
    const int next = static_cast<int>(shapes.size());
    shape_.push_back(shapes.try_emplace(CostKey(nest), next).first->second);
  }
}

const SearchResult* GroupCosts::Find(size_t g, const std::vector<int>& resident_in,
                                     const std::vector<int64_t>& reserved_bytes) {
  // A little less room than there is, so that similar questions are one.
  std::vector<int64_t> rounded = reserved_bytes;
  for (size_t m = 0; m < rounded.size(); ++m) {
    const int64_t usable = UsableBytes(searcher_.target().memories[m]);
    rounded[m] = std::min(RoundUp(rounded[m], std::max<int64_t>(usable / kGrains, 1)), usable);
  }
  const SearchResult* result = Ask(g, resident_in, rounded);
  return result != nullptr ? result : Ask(g, resident_in, reserved_bytes);
}

const SearchResult* GroupCosts::Ask(size_t g, const std::vector<int>& resident_in,
                                    const std::vector<int64_t>& reserved_bytes) {
  std::vector<Known>& known = known_[{shape_[g], resident_in}];
  const auto& memories = searcher_.target().memories;
  for (const Known& k : known) {
    bool answers = true;
    for (size_t m = 0; m < memories.size() && answers; ++m) {
      answers = k.reserved[m] <= reserved_bytes[m] &&
                (k.result == nullptr || k.used[m] + reserved_bytes[m] <= UsableBytes(memories[m]) ||
                 k.used[m] == 0);
    }
    if (answers) return k.result;
  }
  Known fresh = {.reserved = reserved_bytes,
                 .used = {},
                 .result = searcher_.Find(nests_[g], resident_in, reserved_bytes)};
  if (fresh.result != nullptr)
    fresh.used = UsedBytes(nests_[g], fresh.result->mapping, searcher_.target());
  known.push_back(fresh);
  return fresh.result;
}

std::vector<int64_t> UsedBytes(const ir::Nest& nest, const Mapping& mapping,
                               const machine::Target& target) {
  std::vector<int64_t> used(target.memories.size(), 0);
  for (int o = kAccumulator; o <= nest.output(); ++o) {
    if (o == kAccumulator && nest.anchor != ir::Anchor::kContraction) continue;
    const OperandPlace& place = o == kAccumulator ? mapping.accumulator : mapping.operands[At(o)];
    used[At(place.memory)] += BufferBytes(nest, mapping, target, o);
  }
  return used;
}

}  // namespace dla::scheduler
