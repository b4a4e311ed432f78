// "Did you mean ...?" for names that a user mistyped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dla {

// The candidate with the fewest edits from `name` (the first of equals), or "" if none is near
// enough to be a likely misspelling (more than a third of its letters differ).
std::string NearestName(std::string_view name, const std::vector<std::string>& candidates);

// "; did you mean 'x'?" or "".
std::string DidYouMean(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace dla
