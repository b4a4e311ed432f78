// What printing and parsing of the text form share; not for other files.
#pragma once

#include <string>

#include "ir/graph.h"

namespace dla::ir {

// Constants up to this size stand in the text.
inline constexpr int64_t kMostInlineBytes = 64;

// The text in quotes, with \" \\ and \xNN for control characters.
std::string QuoteText(const std::string& text);

// Names a constant by its bytes.
std::string ConstantDigest(const Constant& constant);

}  // namespace dla::ir
