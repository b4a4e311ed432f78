#include "scheduler/mapping_cache.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "machine/target_file.h"
#include "support/crc32c.h"
#include "support/file.h"

namespace dla::scheduler {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;
constexpr int64_t kMostBytes = int64_t{1} << 28;
constexpr size_t kMostWarnings = 5;

// FNV-1a; only for names of files: what is in them is compared whole.
std::string HashText(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3U;
  char hex[20];
  std::snprintf(hex, sizeof(hex), "%016llx", static_cast<unsigned long long>(hash));
  return hex;
}

std::string Prefix(const std::string& context) { return "mappings-" + HashText(context) + "-"; }

uint32_t Checksum(const std::string& text) {
  return Crc32c({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

Json PlaceJson(const OperandPlace& place) {
  return {place.memory, place.is_double, place.resident, place.source};
}

OperandPlace PlaceFrom(const Json& json) {
  OperandPlace place;
  place.memory = json.at(0).get<int>();
  place.is_double = json.at(1).get<bool>();
  place.resident = json.at(2).get<bool>();
  place.source = json.at(3).get<int>();
  return place;
}

Json EntryJson(const MappingCache::Numbers& question, const MappingCache::Answer& a) {
  Json places = Json::array();
  for (const OperandPlace& place : a.mapping.operands) places.push_back(PlaceJson(place));
  return {{"question", question},
          {"kind", a.kind},
          {"extents", a.extents},
          {"block", a.mapping.block},
          {"order", a.mapping.order},
          {"operands", places},
          {"accumulator", PlaceJson(a.mapping.accumulator)},
          {"proven", a.certificate.proven},
          {"all_sizes", a.certificate.all_sizes},
          {"least", a.certificate.least},
          {"least_cycles", a.certificate.least_cycles},
          {"points", a.points},
          {"evaluated", a.evaluated},
          {"cycles", a.cycles},
          {"bus_bytes", a.bus_bytes}};
}

// Throws what nlohmann::json throws where something is missing or of another type.
MappingCache::Answer AnswerFrom(const Json& json) {
  MappingCache::Answer a;
  json.at("kind").get_to(a.kind);
  json.at("extents").get_to(a.extents);
  json.at("block").get_to(a.mapping.block);
  json.at("order").get_to(a.mapping.order);
  for (const Json& place : json.at("operands")) a.mapping.operands.push_back(PlaceFrom(place));
  a.mapping.accumulator = PlaceFrom(json.at("accumulator"));
  json.at("proven").get_to(a.certificate.proven);
  json.at("all_sizes").get_to(a.certificate.all_sizes);
  json.at("least").get_to(a.certificate.least);
  json.at("least_cycles").get_to(a.certificate.least_cycles);
  json.at("points").get_to(a.points);
  json.at("evaluated").get_to(a.evaluated);
  json.at("cycles").get_to(a.cycles);
  json.at("bus_bytes").get_to(a.bus_bytes);
  return a;
}

}  // namespace

std::string MappingCache::ContextOf(const machine::Target& target, Objective objective,
                                    const SearchOptions& options) const {
  machine::Target plain = target;
  plain.name.clear();
  plain.comment.clear();
  return Concat(producer_, " ", ObjectiveName(objective), " way ", static_cast<int>(options.way),
                " space ", static_cast<int>(options.space), " buffers ",
                BufferRuleName(options.buffers), " rules ", options.rules.mask(), " budget ",
                options.budget, " samples ", options.samples, " target ",
                machine::TargetJson(plain));
}

MappingCache::Shelf& MappingCache::ShelfOf(const std::string& context) {
  const auto [it, is_new] = shelves_.try_emplace(context);
  if (is_new) ReadFolder(context, &it->second.answers);
  return it->second;
}

const MappingCache::Answers& MappingCache::AnswersIn(const std::string& context) {
  return ShelfOf(context).answers;
}

void MappingCache::Add(const std::string& context, const Numbers& question, Answer answer) {
  Shelf& shelf = ShelfOf(context);
  shelf.answers.insert_or_assign(question, std::move(answer));
  shelf.added.push_back(question);
}

void MappingCache::Refuse(const std::string& context, const Numbers& question,
                          const std::string& why) {
  Warn(Concat(folder_, ": a mapping is ignored: ", why));
  ShelfOf(context).answers.erase(question);
}

void MappingCache::Warn(const std::string& text) {
  if (warnings_.size() < kMostWarnings) warnings_.push_back(text);
}

// In the order of their names, so that the result does not depend on the folder's.
void MappingCache::ReadFolder(const std::string& context, Answers* answers) {
  const std::string prefix = Prefix(context);
  std::vector<std::string> paths;
  std::error_code error;
  std::filesystem::directory_iterator it(folder_, error), end;
  for (; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.rfind(prefix, 0) == 0) paths.push_back(it->path().string());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    const Status status = ReadOne(path, context, answers);
    if (!status.ok()) Warn(Concat(path, ": is ignored: ", status.message()));
  }
}

Status MappingCache::ReadOne(const std::string& path, const std::string& context,
                             Answers* answers) const {
  DLA_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMostBytes));
  try {
    const Json json = Json::parse(text);
    if (json.at("format") != "dla-mappings" || json.at("version") != kVersion) {
      return Malformed("is of another format or version");
    }
    const Json& entries = json.at("entries");
    if (json.at("crc32c") != Checksum(entries.dump())) return Malformed("its checksum is wrong");
    if (json.at("context") != context) return Malformed("it answers other questions");
    Answers read;
    for (const Json& entry : entries) {
      read.emplace(entry.at("question").get<Numbers>(), AnswerFrom(entry));
    }
    answers->merge(read);
  } catch (const Json::exception&) {
    return Malformed("is no file of mappings");
  }
  return Status();
}

Status MappingCache::Write(const std::string& context, const Shelf& shelf) const {
  Json entries = Json::array();
  for (const Numbers& question : shelf.added) {
    const auto it = shelf.answers.find(question);
    if (it != shelf.answers.end()) entries.push_back(EntryJson(question, it->second));
  }
  if (entries.empty()) return Status();
  const uint32_t checksum = Checksum(entries.dump());
  const Json json = {{"format", "dla-mappings"},
                     {"version", kVersion},
                     {"context", context},
                     {"crc32c", checksum},
                     {"entries", std::move(entries)}};
  const std::string text = json.dump();
  const std::string path =
      (std::filesystem::path(folder_) / (Prefix(context) + HashText(text) + ".json")).string();
  return WriteTextFile(path, text);
}

Status MappingCache::Save() {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return IoError(folder_, ": cannot make the folder: ", error.message());
  for (auto& [context, shelf] : shelves_) {
    DLA_RETURN_IF_ERROR(Write(context, shelf));
    shelf.added.clear();
  }
  return Status();
}

std::vector<int64_t> KindOf(const ir::Nest& nest, const std::vector<int>& resident_in) {
  std::vector<int64_t> kind = {static_cast<int64_t>(nest.anchor), nest.bias, nest.reduce_mask,
                               static_cast<int64_t>(nest.dimensions.size()), nest.pass_dimension};
  std::vector<bool> window(nest.dimensions.size(), false);
  for (const ir::Operand& operand : nest.operands) {
    kind.insert(kind.end(),
                {static_cast<int64_t>(operand.cls), static_cast<int64_t>(operand.type),
                 static_cast<int64_t>(operand.ReadType()), operand.is_constant, operand.is_local,
                 operand.gather.has_value(), operand.diagonal.has_value(),
                 static_cast<int64_t>(operand.axes.size())});
    for (const ir::Axis& axis : operand.axes) {
      for (const ir::Term& term : axis.terms) {
        kind.insert(kind.end(), {term.dimension, term.coefficient});
        if (axis.terms.size() > 1 && nest.IsReduction(term.dimension)) {
          window[static_cast<size_t>(term.dimension)] = true;
        }
      }
    }
  }
  for (size_t d = 0; d < nest.dimensions.size(); ++d) {
    const ir::Dimension& dimension = nest.dimensions[d];
    if (window[d]) kind.push_back(dimension.extent);
    if (dimension.name == "G") kind.push_back(dimension.extent > 1);
  }
  for (const MicroInstruction& op : nest.program.ops) {
    kind.insert(kind.end(),
                {static_cast<int64_t>(op.op), static_cast<int64_t>(op.type), op.operand});
  }
  kind.insert(kind.end(), resident_in.begin(), resident_in.end());
  return kind;
}

}  // namespace dla::scheduler
