// How mappings are searched (`--search`, `--space`, `--buffers`, `--disable-rule`,
// `--search-budget`).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/exact/rules.h"
#include "support/status.h"

namespace dla::scheduler {

enum class SearchWay : uint8_t {
  kExact,   // branch and bound with a proof; where its budget ends, the quick search looks too
  kQuick,   // the best of some sizes; proves nothing
  kRandom,  // the best of uniformly random vectors of sizes, each in a random order
  kReuse,   // the best of what mappings of other sizes become (reuse.h)
  kNone,    // one mapping by rule
};

// Which block sizes are looked at.
enum class SizeSpace : uint8_t {
  kAll,      // every integer
  kEven,     // ceil(extent / n) for every n
  kStrided,  // multiples of the array's sides, powers of two below them, the whole extent
};

// How many buffers the operands of a group have that have more than one tile. What is brought over
// a link always has two.
enum class BufferRule : uint8_t {
  kBest,          // one or two, whatever costs least
  kSingle,        // one each
  kInputsDouble,  // two for what is read, one for accumulators and output
  kDouble,        // two each
};
// "best", "single", "inputs-double", "double"; nothing for another text.
std::optional<BufferRule> ParseBufferRule(std::string_view text);
std::string_view BufferRuleName(BufferRule rule);

struct SearchOptions {
  SearchWay way = SearchWay::kExact;
  SizeSpace space = SizeSpace::kAll;
  BufferRule buffers = BufferRule::kBest;
  Rules rules;  // of the exact search
  // Evaluations after which the exact search ends with what it has: boxes and orders bounded, steps
  // walked. For `balanced` each of its two searches gets half.
  int64_t budget = 200'000;
  int64_t samples = 0;  // of kRandom
};

// Texts as on the command line: "exact", "quick" or "random:N"; "all", "even" or "strided"; names
// of rules. kUsage names what is expected.
Result<SearchOptions> ParseSearchOptions(std::string_view way, std::string_view space,
                                         const std::vector<std::string>& disabled_rules);

// N of "random:N", 0 if that is not what the text is.
int64_t ParseSamples(std::string_view way);

}  // namespace dla::scheduler
