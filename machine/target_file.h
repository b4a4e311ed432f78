// Target files: the JSON form of a Target, read, printed and found by name.
//
// docs/TARGETS.md documents every field with its unit and limits. The bundled files of targets/ are
// part of the library, so that a command needs no installed data. A file that breaks a rule is
// kMalformed with all its errors, one a line.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/target.h"
#include "support/status.h"

namespace dla::machine {

// Finds the target that a file names in "inherit".
using TargetResolver = std::function<Result<Target>(const std::string& name)>;

// The target that `text` describes. `name` is what messages call the file, and the target's name
// where the file gives none (without a folder and ".json").
Result<Target> ParseTarget(std::string_view text, const std::string& name,
                           const TargetResolver& resolver);

// A name is looked for as NAME.json in the folders, in order, then among the bundled targets; what
// holds a '/' or ends in ".json" is a file's path. kUsage if there is no target of that name, kIo
// if the file cannot be read.
Result<Target> LoadTarget(const std::string& name_or_path,
                          const std::vector<std::string>& search_dirs);

// Every field, as JSON with a final newline; ParseTarget gives back an equal Target. (An energy of
// a memory that follows the default rule is left out.)
std::string TargetJson(const Target& target);

struct TargetEntry {
  std::string name;
  std::string comment;
  std::string path;  // empty: bundled
};
// The bundled targets and those of the folders (which hide bundled ones), by name. Files that
// cannot be read are listed with the reason as their comment.
std::vector<TargetEntry> ListTargets(const std::vector<std::string>& search_dirs);

// Applies "NAME=BYTES" (--mem); BYTES may end in K, KiB (1024), M, MiB. kUsage on a bad text.
Status OverrideMemory(Target* target, std::string_view text);

// LoadTarget with all of these texts applied (--target and --mem).
Result<Target> LoadTargetWith(const std::string& name_or_path,
                              const std::vector<std::string>& overrides);

// "64K", "65536", "2MiB": a size in bytes from 1 to 2^40.
Result<int64_t> ParseSize(std::string_view text);

// 1.25 * sqrt(bytes / 8192): pJ a byte of a scratchpad whose file does not say it.
double DefaultMemoryEnergy(int64_t bytes);

inline constexpr int64_t kMaxMemoryBytes = int64_t{1} << 40;

}  // namespace dla::machine
