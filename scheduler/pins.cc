#include "scheduler/pins.h"

#include <nlohmann/json.hpp>

namespace dla::scheduler {

Result<Pins> ParsePins(std::string_view text) {
  using Json = nlohmann::json;
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Malformed("is not a JSON object");
  for (const auto& [key, value] : json.items()) {
    if (key != "hold") return Malformed("'", key, "': only 'hold' is known");
  }
  Pins pins;
  if (!json.contains("hold")) return pins;
  if (!json["hold"].is_array()) return Malformed("hold: is not a list");
  for (const Json& pin : json["hold"]) {
    if (!pin.is_object() || !pin.contains("value") || !pin["value"].is_string() ||
        !pin.contains("memory") || !pin["memory"].is_string()) {
      return Malformed("hold: an entry needs 'value' and 'memory'");
    }
    pins.hold[pin["value"].get<std::string>()] = pin["memory"].get<std::string>();
  }
  return pins;
}

}  // namespace dla::scheduler
