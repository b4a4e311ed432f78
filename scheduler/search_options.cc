#include "scheduler/search_options.h"

#include <array>
#include <charconv>

namespace dla::scheduler {
namespace {
constexpr int64_t kMostSamples = 1'000'000'000;
constexpr std::array<std::string_view, 4> kBufferRuleNames = {"best", "single", "inputs-double",
                                                              "double"};
}  // namespace

std::string_view BufferRuleName(BufferRule rule) {
  return kBufferRuleNames[static_cast<size_t>(rule)];
}

std::optional<BufferRule> ParseBufferRule(std::string_view text) {
  for (size_t i = 0; i < kBufferRuleNames.size(); ++i) {
    if (text == kBufferRuleNames[i]) return static_cast<BufferRule>(i);
  }
  return std::nullopt;
}

int64_t ParseSamples(std::string_view way) {
  constexpr std::string_view kPrefix = "random:";
  if (way.substr(0, kPrefix.size()) != kPrefix) return 0;
  const std::string_view number = way.substr(kPrefix.size());
  int64_t samples = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), samples);
  const bool is_number = error == std::errc() && end == number.data() + number.size();
  return is_number && samples > 0 && samples <= kMostSamples ? samples : 0;
}

Result<SearchOptions> ParseSearchOptions(std::string_view way, std::string_view space,
                                         const std::vector<std::string>& disabled_rules) {
  SearchOptions options;
  options.samples = ParseSamples(way);
  if (options.samples > 0) {
    options.way = SearchWay::kRandom;
  } else if (way == "quick") {
    options.way = SearchWay::kQuick;
  } else if (way == "reuse") {
    options.way = SearchWay::kReuse;
  } else if (way == "none") {
    options.way = SearchWay::kNone;
  } else if (way != "exact") {
    return Usage("--search ", way, ": exact, quick, random:N, reuse or none expected");
  }
  if (space == "even") {
    options.space = SizeSpace::kEven;
  } else if (space == "strided") {
    options.space = SizeSpace::kStrided;
  } else if (space != "all") {
    return Usage("--space ", space, ": all, even or strided expected");
  }
  for (const std::string& name : disabled_rules) {
    const auto rule = ParseRule(name);
    if (!rule) {
      std::string names;
      for (int r = 0; r < kRuleCount; ++r) {
        names += Concat(r == 0                ? ""
                        : r + 1 == kRuleCount ? " or "
                                              : ", ",
                        RuleName(static_cast<Rule>(r)));
      }
      return Usage("--disable-rule ", name, ": ", names, " expected");
    }
    options.rules.Disable(*rule);
  }
  return options;
}

}  // namespace dla::scheduler
