// JSON -> Target. Objects (dram, dma, array, vector, op_cycles, host) are merged into what was
// inherited field by field; lists and the tables by type are replaced whole. A file that gives
// `memories` drops inherited links, which speak of other memories, unless it gives `links` too.
#include <algorithm>
#include <cmath>
#include <set>

#include "machine/json_fields.h"
#include "machine/target_file.h"
#include "support/suggest.h"

namespace dla::machine {
namespace {

constexpr int64_t kMaxCycles = 1000000;
constexpr double kMaxEnergy = 1e6;
constexpr size_t kMaxLinks = 256;

template <typename T, typename Parse>
bool ParseName(const std::string& text, const std::vector<std::string>& names, const char* what,
               const std::string& path, JsonErrors* errors, Parse parse, T* out) {
  if (const auto value = parse(text)) {
    *out = *value;
    return true;
  }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  errors->Add(path, "'", text, "' is no ", what, " (", list, ")");
  return false;
}

std::vector<std::string> TypeNames() {
  std::vector<std::string> names;
  for (int t = 0; t < kElementTypeCount; ++t) {
    names.emplace_back(TypeName(static_cast<ElementType>(t)));
  }
  return names;
}

bool ParseType(const std::string& text, const std::string& path, JsonErrors* errors,
               ElementType* out) {
  return ParseName(
      text, TypeNames(), "type", path, errors,
      [](const std::string& name) { return ParseElementType(name); }, out);
}

bool IsIdentifier(const std::string& name) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of(kLetters) == std::string::npos;
}

// The items of an object-valued field; null and an error if it is something else.
const Json* Table(JsonFields* fields, const std::string& field) {
  const Json* value = fields->Find(field);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) {
    fields->errors()->Add(fields->PathOf(field), Brief(*value), " is not an object {...}");
    return nullptr;
  }
  return value;
}

void ParseDram(const Json& json, JsonErrors* errors, Dram* dram) {
  JsonFields fields(json, "dram", errors);
  fields.Rate("bytes_per_cycle", &dram->bytes_per_cycle);
  fields.Int("latency_cycles", 0, kMaxCycles, "latency", "cycles", &dram->latency_cycles);
  fields.Int("burst_bytes", 1, 65536, "burst size", "bytes", &dram->burst_bytes);
  fields.Number("energy_pj_per_byte", 0, kMaxEnergy, &dram->energy_pj_per_byte);
  int64_t bytes = 0;
  if (fields.Int("bytes", 1, kMaxMemoryBytes, "size", "bytes", &bytes)) dram->bytes = bytes;
  fields.Finish();
}

void ParseHolds(const Json& list, const std::string& path, JsonErrors* errors, Memory* memory) {
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string item = Concat(path, "[", i, "]");
    OperandClass cls{};
    if (!list[i].is_string()) {
      errors->Add(item, Brief(list[i]), " is not a text");
    } else if (ParseName(
                   list[i].get<std::string>(), {"input", "weight", "partial", "output", "vector"},
                   "operand class", item, errors,
                   [](const std::string& name) { return ParseOperandClass(name); }, &cls)) {
      memory->holds[static_cast<size_t>(cls)] = true;
    }
  }
  if (list.empty()) errors->Add(path, "is empty; a memory must hold at least one operand class");
}

Memory ParseMemory(const Json& json, const std::string& path, JsonErrors* errors) {
  Memory memory;
  JsonFields fields(json, path, errors);
  if (fields.Text("name", &memory.name)) {
    if (!IsIdentifier(memory.name)) {
      errors->Add(path + ".name", "'", memory.name,
                  "' is not a name (1 to 64 letters, digits, '_', '-', '.')");
    }
  } else if (json.is_object() && !json.contains("name")) {
    errors->Add(path + ".name", "is missing");
  }
  if (!fields.Int("bytes", 1, kMaxMemoryBytes, "size", "bytes", &memory.bytes) &&
      json.is_object() && !json.contains("bytes")) {
    errors->Add(path + ".bytes", "is missing");
  }
  if (const Json* holds = fields.List("holds")) {
    ParseHolds(*holds, path + ".holds", errors, &memory);
  } else if (json.is_object() && !json.contains("holds")) {
    errors->Add(path + ".holds", "is missing");
  }
  if (fields.Int("align_bytes", 1, 65536, "alignment", "bytes", &memory.align_bytes) &&
      (memory.align_bytes & (memory.align_bytes - 1)) != 0) {
    errors->Add(path + ".align_bytes", memory.align_bytes, " is not a power of two");
  }
  Rational rate;
  if (fields.Rate("bytes_per_cycle", &rate)) memory.bytes_per_cycle = rate;
  memory.energy_pj_per_byte = DefaultMemoryEnergy(memory.bytes);
  memory.energy_is_default =
      !fields.Number("energy_pj_per_byte", 0, kMaxEnergy, &memory.energy_pj_per_byte);
  fields.Finish();
  return memory;
}

void ParseMemories(const Json& list, JsonErrors* errors, Target* target) {
  target->memories.clear();
  target->links.clear();
  if (list.empty() || list.size() > kMaxMemories) {
    errors->Add("memories", "has ", list.size(), " entries (1 to ", kMaxMemories, ")");
    return;
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string path = Concat("memories[", i, "]");
    Memory memory = ParseMemory(list[i], path, errors);
    if (!memory.name.empty() && target->MemoryIndex(memory.name) >= 0) {
      errors->Add(path + ".name", "there is a memory '", memory.name, "' already");
    }
    target->memories.push_back(std::move(memory));
  }
}

// A link's end: the index of the memory it names, or -1 and an error.
int ParseLinkEnd(JsonFields* fields, const std::string& field, const Target& target) {
  std::string name;
  if (!fields->Text(field, &name)) return -1;
  const int index = target.MemoryIndex(name);
  if (index < 0) {
    std::vector<std::string> names;
    for (const Memory& memory : target.memories) names.push_back(memory.name);
    fields->errors()->Add(fields->PathOf(field), "there is no memory '", name, "'",
                          DidYouMean(name, names));
  }
  return index;
}

void ParseLinks(const Json& list, JsonErrors* errors, Target* target) {
  target->links.clear();
  if (list.size() > kMaxLinks) {
    errors->Add("links", "has ", list.size(), " entries (0 to ", kMaxLinks, ")");
    return;
  }
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string path = Concat("links[", i, "]");
    JsonFields fields(list[i], path, errors);
    Link link;
    link.from = ParseLinkEnd(&fields, "from", *target);
    link.to = ParseLinkEnd(&fields, "to", *target);
    fields.Rate("bytes_per_cycle", &link.bytes_per_cycle);
    fields.Finish();
    for (const char* field : {"from", "to", "bytes_per_cycle"}) {
      if (list[i].is_object() && !list[i].contains(field)) {
        errors->Add(Concat(path, ".", field), "is missing");
      }
    }
    if (link.from < 0 || link.to < 0) continue;
    if (link.from == link.to) errors->Add(path, "leads from a memory to itself");
    if (target->FindLink(link.from, link.to) != nullptr) errors->Add(path, "is there twice");
    target->links.push_back(link);
  }
}

void ParseRates(const Json& table, JsonErrors* errors, Array* array) {
  array->rates.clear();
  for (const auto& item : table.items()) {
    const std::string path = "array.rates." + item.key();
    const size_t comma = item.key().find(',');
    const std::string first = item.key().substr(0, comma);
    const std::string second = comma == std::string::npos ? first : item.key().substr(comma + 1);
    std::pair<ElementType, ElementType> types;
    Rational rate;
    if (!ParseType(first, path, errors, &types.first)) continue;
    if (comma != std::string::npos && !ParseType(second, path, errors, &types.second)) continue;
    if (comma == std::string::npos) types.second = types.first;
    if (ParseRate(item.value(), path, errors, &rate)) array->rates[types] = rate;
  }
}

void ParseAccumulators(const Json& table, JsonErrors* errors, Array* array) {
  array->accumulator.clear();
  for (const auto& item : table.items()) {
    const std::string path = "array.accumulator." + item.key();
    ElementType from{}, to{};
    if (!ParseType(item.key(), path, errors, &from)) continue;
    if (!item.value().is_string()) {
      errors->Add(path, Brief(item.value()), " is not a text");
    } else if (ParseType(item.value().get<std::string>(), path, errors, &to)) {
      if (IsFloat(from) != IsFloat(to) || TypeBits(to) < TypeBits(from)) {
        errors->Add(path, "'", TypeName(to), "' cannot hold sums of '", TypeName(from), "'");
      }
      array->accumulator[from] = to;
    }
  }
}

void ParseMacEnergies(const Json& table, JsonErrors* errors, Array* array) {
  array->energy_pj_per_mac.clear();
  for (const auto& item : table.items()) {
    const std::string path = "array.energy_pj_per_mac." + item.key();
    ElementType type{};
    double energy = 0;
    if (ParseType(item.key(), path, errors, &type) &&
        ParseNumber(item.value(), path, 0, kMaxEnergy, errors, &energy)) {
      array->energy_pj_per_mac[type] = energy;
    }
  }
}

// After Horowitz, ISSCC 2014; nothing for types of which it does not speak.
std::optional<double> DefaultMacEnergy(ElementType type) {
  if (type == ElementType::kF32) return 4.6;
  if (type == ElementType::kF16 || type == ElementType::kBF16) return 2.0;
  if (!IsFloat(type) && TypeBits(type) <= 8) return 0.3;
  return std::nullopt;
}

// Every type that the array multiplies needs an accumulator and an energy.
void CompleteArray(JsonErrors* errors, Array* array) {
  if (array->rates.empty()) errors->Add("array.rates", "has no entry");
  for (const auto& [types, rate] : array->rates) {
    const ElementType type = types.first;
    if (!array->accumulator.contains(type)) {
      errors->Add("array.accumulator", "has no entry for '", TypeName(type),
                  "', which array.rates has");
    }
    if (array->energy_pj_per_mac.contains(type)) continue;
    if (const auto energy = DefaultMacEnergy(type)) {
      array->energy_pj_per_mac[type] = *energy;
    } else {
      errors->Add("array.energy_pj_per_mac", "has no entry for '", TypeName(type),
                  "', which array.rates has");
    }
  }
}

std::optional<Dataflow> ParseDataflow(const std::string& name) {
  if (name == "os") return Dataflow::kOutputStationary;
  if (name == "ws") return Dataflow::kWeightStationary;
  if (name == "is") return Dataflow::kInputStationary;
  if (name == "spatial") return Dataflow::kSpatial;
  return std::nullopt;
}

void ParseArray(const Json& json, JsonErrors* errors, Array* array) {
  JsonFields fields(json, "array", errors);
  fields.Int("rows", 1, 65536, "number of PEs", "", &array->rows);
  fields.Int("cols", 1, 65536, "number of PEs", "", &array->cols);
  std::string dataflow;
  if (fields.Text("dataflow", &dataflow)) {
    ParseName(dataflow, {"os", "ws", "is", "spatial"}, "dataflow", "array.dataflow", errors,
              ParseDataflow, &array->dataflow);
  }
  if (const Json* table = Table(&fields, "rates")) ParseRates(*table, errors, array);
  if (const Json* table = Table(&fields, "accumulator")) ParseAccumulators(*table, errors, array);
  if (const Json* table = Table(&fields, "energy_pj_per_mac")) {
    ParseMacEnergies(*table, errors, array);
  }
  fields.Finish();
}

void ParseVector(const Json& json, JsonErrors* errors, Vector* vector) {
  JsonFields fields(json, "vector", errors);
  fields.Int("lanes", 1, 65536, "number of lanes", "", &vector->lanes);
  fields.Int("startup_cycles", 0, kMaxCycles, "start-up time", "cycles", &vector->startup_cycles);
  fields.Number("energy_pj_per_op", 0, kMaxEnergy, &vector->energy_pj_per_op);
  if (const Json* table = Table(&fields, "op_cycles")) {
    JsonFields classes(*table, "vector.op_cycles", errors);
    for (size_t c = 1; c < vector->op_cycles.size(); ++c) {  // 0 is kFree
      classes.Int(std::string(OpClassName(static_cast<OpClass>(c))), 1, kMaxCycles, "time",
                  "cycles", &vector->op_cycles[c]);
    }
    classes.Finish();
  }
  fields.Finish();
}

void ParseOutputStage(const Json& list, JsonErrors* errors, OutputStage* stage) {
  *stage = {false, false, false, false, false, false};
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string name = list[i].is_string() ? list[i].get<std::string>() : Brief(list[i]);
    if (name == "bias") {
      stage->bias = true;
    } else if (name == "scale") {
      stage->scale = true;
    } else if (name == "clamp") {
      stage->clamp = true;
    } else if (name == "relu") {
      stage->relu = true;
    } else if (name == "leaky_relu") {
      stage->leaky_relu = true;
    } else if (name == "table") {
      stage->table = true;
    } else {
      errors->Add(Concat("output_stage[", i, "]"), "'", name,
                  "' is nothing an output stage does (bias, scale, clamp, relu, leaky_relu, "
                  "table)");
    }
  }
}

void ParseHost(const Json& json, JsonErrors* errors, Host* host) {
  JsonFields fields(json, "host", errors);
  fields.Int("call_cycles", 0, 1000000000, "time", "cycles", &host->call_cycles);
  fields.Int("cycles_per_element", 0, kMaxCycles, "time", "cycles", &host->cycles_per_element);
  fields.Rate("bytes_per_cycle", &host->bytes_per_cycle);
  fields.Finish();
}

// What holds where a file without "inherit" does not say it; docs/TARGETS.md has the table.
Target Defaults() {
  Target target;
  for (size_t c = 1; c < target.vector.op_cycles.size(); ++c) {
    const auto op_class = static_cast<OpClass>(c);
    target.vector.op_cycles[c] = op_class < OpClass::kDivide ? 1 : op_class < OpClass::kExp ? 4 : 8;
  }
  using enum ElementType;
  target.array.accumulator = {{kF32, kF32}, {kF16, kF32}, {kBF16, kF32}, {kI8, kI32}};
  return target;
}

void ParseDma(const Json& json, JsonErrors* errors, Target* target) {
  JsonFields fields(json, "dma", errors);
  fields.Int("startup_cycles", 0, kMaxCycles, "start-up time", "cycles",
             &target->dma_startup_cycles);
  fields.Finish();
}

void ParseFields(JsonFields* fields, JsonErrors* errors, Target* target) {
  fields->Text("comment", &target->comment);
  fields->Int("clock_mhz", 1, 1000000, "clock", "MHz", &target->clock_mhz);
  if (const Json* value = fields->Find("dram")) ParseDram(*value, errors, &target->dram);
  if (const Json* value = fields->List("memories")) ParseMemories(*value, errors, target);
  if (const Json* value = fields->List("links")) ParseLinks(*value, errors, target);
  if (const Json* value = fields->Find("dma")) ParseDma(*value, errors, target);
  if (const Json* value = fields->Find("array")) ParseArray(*value, errors, &target->array);
  if (const Json* value = fields->Find("vector")) ParseVector(*value, errors, &target->vector);
  if (const Json* value = fields->List("output_stage")) {
    ParseOutputStage(*value, errors, &target->output_stage);
  }
  if (const Json* value = fields->Find("host")) ParseHost(*value, errors, &target->host);
}

// Deeper nesting than this is no target; printing such a value would exhaust the stack.
constexpr int kMaxDepth = 32;

bool IsTooDeep(std::string_view text) {
  int depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (in_text && letter == '\\') {
      ++i;
    } else if (letter == '"') {
      in_text = !in_text;
    } else if (!in_text && (letter == '[' || letter == '{')) {
      if (++depth > kMaxDepth) return true;
    } else if (!in_text && (letter == ']' || letter == '}')) {
      --depth;
    }
  }
  return false;
}

Result<Json> ParseJson(std::string_view text, const std::string& name) {
  if (IsTooDeep(text)) {
    return Malformed(name, ": is nested more than ", kMaxDepth, " levels deep");
  }
  try {
    return Json::parse(text.begin(), text.end());
  } catch (const Json::exception& error) {
    std::string what = error.what();
    const size_t start = what.find("] ");
    if (start != std::string::npos) what = what.substr(start + 2);
    return Malformed(name, ": is not JSON: ", what);
  }
}

std::string Stem(const std::string& path) {
  const std::string file = path.substr(path.rfind('/') + 1);
  return file.ends_with(".json") ? file.substr(0, file.size() - 5) : file;
}

}  // namespace

Result<Target> ParseTarget(std::string_view text, const std::string& name,
                           const TargetResolver& resolver) {
  DLA_ASSIGN_OR_RETURN(const Json json, ParseJson(text, name));
  JsonErrors errors(name);
  JsonFields fields(json, "", &errors);
  Target target = Defaults();
  std::string parent, ignored;
  fields.Text("$schema", &ignored);  // for editors
  if (fields.Text("inherit", &parent)) {
    auto inherited = resolver(parent);
    if (!inherited.ok()) {
      const Status& status = inherited.status();
      return Status(status.code() == ErrorCode::kUsage ? ErrorCode::kMalformed : status.code(),
                    status.message())
          .At(name + ": inherit");
    }
    target = std::move(*inherited);
    target.comment.clear();
  }
  target.name = Stem(name);
  if (fields.Text("name", &target.name) && !IsIdentifier(target.name)) {
    errors.Add("name", "'", target.name,
               "' is not a name (1 to 64 letters, digits, '_', '-', '.')");
  }
  ParseFields(&fields, &errors, &target);
  fields.Finish();
  if (json.is_object() && target.memories.empty() && !json.contains("memories")) {
    errors.Add("memories", "is missing; name the scratchpads, or a target to \"inherit\" from");
  }
  if (json.is_object() && errors.empty()) CompleteArray(&errors, &target.array);
  DLA_RETURN_IF_ERROR(errors.ToStatus());
  return target;
}

}  // namespace dla::machine
