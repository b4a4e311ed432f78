#include "scheduler/pins.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "support/checked.h"

namespace dla::scheduler {
namespace {

using Json = nlohmann::json;

// A list of objects that name a value, under `key`, and a scratchpad.
Status ReadHold(const Json& json, const char* list, const char* key, Pins* pins) {
  if (!json.is_array()) return Malformed(list, ": is not a list");
  for (const Json& pin : json) {
    if (!pin.is_object() || !pin.contains(key) || !pin[key].is_string() ||
        !pin.contains("memory") || !pin["memory"].is_string()) {
      return Malformed(list, ": an entry needs '", key, "' and 'memory'");
    }
    pins->hold[pin[key].get<std::string>()] = pin["memory"].get<std::string>();
  }
  return Status();
}

Status ReadReserve(const Json& json, Pins* pins) {
  if (!json.is_array()) return Malformed("reserve: is not a list");
  const auto is_number = [](const Json& region, const char* key) {
    return region.contains(key) && region[key].is_number_unsigned() &&
           region[key].get<uint64_t>() <= INT64_MAX;
  };
  for (const Json& region : json) {
    if (!region.is_object() || !region.contains("memory") || !region["memory"].is_string() ||
        !is_number(region, "address") || !is_number(region, "bytes")) {
      return Malformed("reserve: an entry needs 'memory', and 'address' and 'bytes' from 0 on");
    }
    pins->reserve.push_back({region["memory"].get<std::string>(), region["address"].get<int64_t>(),
                             region["bytes"].get<int64_t>()});
  }
  return Status();
}

// The largest piece between the regions, which are in order of their addresses.
FreePiece LargestPiece(const machine::Memory& memory, const std::vector<ReservedRegion>& regions) {
  constexpr int64_t kLargestElement = 8;
  const int64_t align = std::lcm(memory.align_bytes, kLargestElement);
  FreePiece largest;
  int64_t begin = 0;
  const auto end_at = [&](int64_t end) {
    if (end - begin > largest.bytes) largest = {begin, end - begin};
  };
  for (const ReservedRegion& region : regions) {
    end_at(region.address);
    begin = std::max(begin, RoundUp(region.address + region.bytes, align));
  }
  end_at(memory.bytes);
  return largest;
}

}  // namespace

Result<Pins> ParsePins(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Malformed("is not a JSON object");
  if (json.contains("format") && json["format"] == "dla-plan") {
    Pins held;
    if (!json.contains("stays")) return Malformed("stays: a plan needs it");
    DLA_RETURN_IF_ERROR(ReadHold(json["stays"], "stays", "tensor", &held));
    return held;
  }
  for (const auto& [key, value] : json.items()) {
    if (key != "hold" && key != "reserve") {
      return Malformed("'", key, "': only 'hold' and 'reserve' are known");
    }
  }
  Pins pins;
  if (json.contains("hold")) DLA_RETURN_IF_ERROR(ReadHold(json["hold"], "hold", "value", &pins));
  if (json.contains("reserve")) DLA_RETURN_IF_ERROR(ReadReserve(json["reserve"], &pins));
  return pins;
}

Result<std::vector<FreePiece>> FreePieces(const machine::Target& target, const Pins& pins) {
  std::vector<std::vector<ReservedRegion>> regions(target.memories.size());
  for (const ReservedRegion& region : pins.reserve) {
    const std::string where = Concat("reserve: ", region.bytes, " bytes at ", region.address,
                                     " of '", region.memory, "'");
    const int memory = target.MemoryIndex(region.memory);
    if (memory < 0) return Usage(where, ": there is no such scratchpad");
    const size_t m = static_cast<size_t>(memory);
    const int64_t bytes = target.memories[m].bytes;
    if (region.address > bytes || region.bytes > bytes - region.address) {
      return Usage(where, ": the scratchpad has ", bytes, " bytes");
    }
    if (region.bytes > 0) regions[m].push_back(region);
  }
  std::vector<FreePiece> pieces;
  for (size_t m = 0; m < target.memories.size(); ++m) {
    const machine::Memory& memory = target.memories[m];
    std::sort(regions[m].begin(), regions[m].end(),
              [](const auto& a, const auto& b) { return a.address < b.address; });
    pieces.push_back(LargestPiece(memory, regions[m]));
    if (pieces.back().bytes < memory.align_bytes) {
      return Usage("reserve: nothing is left of '", memory.name, "'");
    }
  }
  return pieces;
}

}  // namespace dla::scheduler
