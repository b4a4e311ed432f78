#include "machine/target_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>

#include "machine/bundled_targets.h"
#include "support/checked.h"
#include "support/file.h"
#include "support/suggest.h"

namespace dla::machine {
namespace {

constexpr int64_t kMaxFileBytes = int64_t{1} << 20;
constexpr size_t kMaxInheritance = 16;

bool IsPath(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json");
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

const BundledTarget* FindBundled(const std::string& name) {
  for (const BundledTarget& bundled : BundledTargets()) {
    if (bundled.name == name) return &bundled;
  }
  return nullptr;
}

bool FileExists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

Status NoSuchTarget(const std::string& name) {
  std::vector<std::string> names;
  for (const BundledTarget& bundled : BundledTargets()) names.emplace_back(bundled.name);
  std::string list;
  for (const std::string& known : names) list += (list.empty() ? "" : ", ") + known;
  const std::string hint = DidYouMean(name, names);
  return Usage("there is no target '", name, "'",
               hint.empty() ? "; there are " + list + ", or name a .json file" : hint);
}

// `chain` holds the files and names that led here, so that a circle is found.
Result<Target> Load(const std::string& name, std::vector<std::string> dirs,
                    std::vector<std::string> chain) {
  std::string path = IsPath(name) ? name : "";
  for (size_t i = 0; i < dirs.size() && path.empty(); ++i) {
    const std::string candidate = dirs[i] + "/" + name + ".json";
    // A file may inherit from the bundled target whose name it has: it hides it, and is not asked
    // again.
    if (FileExists(candidate) &&
        (chain.empty() || chain.back() != candidate || FindBundled(name) == nullptr)) {
      path = candidate;
    }
  }
  const BundledTarget* bundled = path.empty() ? FindBundled(name) : nullptr;
  if (path.empty() && bundled == nullptr) return NoSuchTarget(name);
  const std::string key = path.empty() ? "bundled " + name : path;
  if (std::find(chain.begin(), chain.end(), key) != chain.end() ||
      chain.size() >= kMaxInheritance) {
    std::string circle;
    for (const std::string& link : chain) circle += link + " -> ";
    return Malformed("targets inherit from each other in a circle: ", circle, key);
  }
  chain.push_back(key);
  std::string text;
  if (path.empty()) {
    text = bundled->json;
    dirs.clear();  // a bundled target means bundled ones
  } else {
    DLA_ASSIGN_OR_RETURN(text, ReadTextFile(path, kMaxFileBytes));
    dirs.insert(dirs.begin(), FolderOf(path));
  }
  const auto resolver = [&](const std::string& parent) {
    const bool relative = IsPath(parent) && parent[0] != '/' && !path.empty();
    return Load(relative ? FolderOf(path) + "/" + parent : parent, dirs, chain);
  };
  return ParseTarget(text, path.empty() ? name : path, resolver);
}

}  // namespace

double DefaultMemoryEnergy(int64_t bytes) {
  return 1.25 * std::sqrt(static_cast<double>(bytes) / 8192.0);
}

Result<Target> LoadTarget(const std::string& name_or_path,
                          const std::vector<std::string>& search_dirs) {
  return Load(name_or_path, search_dirs, {});
}

std::vector<TargetEntry> ListTargets(const std::vector<std::string>& search_dirs) {
  std::map<std::string, TargetEntry> entries;
  for (const BundledTarget& bundled : BundledTargets()) {
    entries[std::string(bundled.name)].name = bundled.name;
  }
  for (size_t d = search_dirs.size(); d-- > 0;) {  // the first folder hides the others
    std::error_code error;
    for (const auto& item : std::filesystem::directory_iterator(search_dirs[d], error)) {
      const std::filesystem::path& path = item.path();
      if (path.extension() != ".json") continue;
      entries[path.stem().string()] = {.name = path.stem().string(), .path = path.string()};
    }
  }
  std::vector<TargetEntry> list;
  for (auto& [name, entry] : entries) {
    const auto target = LoadTarget(entry.path.empty() ? name : entry.path, search_dirs);
    entry.comment = target.ok() ? target->comment : target.status().message();
    list.push_back(std::move(entry));
  }
  return list;
}

Result<int64_t> ParseSize(std::string_view text) {
  int64_t number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<size_t>(result.ptr - text.data()));
  int64_t scale = 0;
  if (unit.empty() || unit == "B") scale = 1;
  if (unit == "K" || unit == "KiB") scale = 1024;
  if (unit == "M" || unit == "MiB") scale = 1024 * 1024;
  const auto bytes = CheckedMul(number, scale);
  if (result.ec != std::errc() || scale == 0 || !bytes || *bytes < 1 || *bytes > kMaxMemoryBytes) {
    return Usage("'", text, "' is not a size (1 to ", kMaxMemoryBytes,
                 " bytes; K and KiB are 1024, M and MiB 1048576)");
  }
  return *bytes;
}

Status OverrideMemory(Target* target, std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return Usage("'", text, "' is not NAME=BYTES, as in pool=64K");
  }
  const std::string name(text.substr(0, equals));
  const int index = target->MemoryIndex(name);
  if (index < 0) {
    std::string names;
    for (const Memory& memory : target->memories) {
      names += (names.empty() ? "" : ", ") + memory.name;
    }
    return Usage("'", target->name, "' has no memory '", name, "'; it has ", names);
  }
  const auto bytes = ParseSize(text.substr(equals + 1));
  if (!bytes.ok()) return bytes.status().At(name);
  Memory& memory = target->memories[static_cast<size_t>(index)];
  memory.bytes = *bytes;
  if (memory.energy_is_default) memory.energy_pj_per_byte = DefaultMemoryEnergy(*bytes);
  return {};
}

Result<Target> LoadTargetWith(const std::string& name_or_path,
                              const std::vector<std::string>& overrides) {
  DLA_ASSIGN_OR_RETURN(Target target, LoadTarget(name_or_path, {}));
  for (const std::string& text : overrides) DLA_RETURN_IF_ERROR(OverrideMemory(&target, text));
  return target;
}

}  // namespace dla::machine
