#include "runtime/trace.h"

#include <charconv>
#include <nlohmann/json.hpp>

namespace dla::runtime {
namespace {

constexpr int kMachine = 1, kGroups = 2;  // processes

std::string Quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Result<std::unique_ptr<TraceFile>> TraceFile::Create(const std::string& path,
                                                     const machine::Program& program) {
  DLA_ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  return std::unique_ptr<TraceFile>(new TraceFile(std::move(file), program));
}

TraceFile::TraceFile(std::unique_ptr<AtomicFile> file, const machine::Program& program)
    : file_(std::move(file)), program_(&program) {
  for (const machine::Group& group : program.groups) names_.push_back(Quoted(group.name));
  Write(Concat("[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":", kMachine,
               ",\"args\":{\"name\":", Quoted(program.target.name), "}},\n",
               "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":", kGroups,
               ",\"args\":{\"name\":\"groups\"}}"));
  for (int e = 0; e < machine::kEngineCount; ++e) {
    const std::string name(machine::EngineName(static_cast<machine::Engine>(e)));
    NameRow(kMachine, 2 * e, name);
    NameRow(kMachine, 2 * e + 1, name + " waits");
  }
  NameRow(kGroups, 0, "groups");
}

void TraceFile::Write(const std::string& text) {
  if (!status_.ok()) return;
  status_ = file_->Write({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

void TraceFile::NameRow(int process, int row, std::string_view name) {
  Write(Concat(",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":", process, ",\"tid\":", row,
               ",\"args\":{\"name\":", Quoted(name), "}},\n",
               "{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":", process, ",\"tid\":", row,
               ",\"args\":{\"sort_index\":", row, "}}"));
}

void TraceFile::Event(int process, int row, std::string_view name, std::string_view category,
                      int64_t begin, int64_t end, const std::string& args) {
  const auto clock_mhz = static_cast<double>(program_->target.clock_mhz);
  const auto time = [&](int64_t cycles) {
    char text[32];
    return std::string(
        text,
        std::to_chars(text, text + sizeof(text), static_cast<double>(cycles) / clock_mhz).ptr);
  };
  Write(Concat(",\n{\"ph\":\"X\",\"pid\":", process, ",\"tid\":", row, ",\"name\":", name,
               ",\"cat\":\"", category, "\",\"ts\":", time(begin), ",\"dur\":", time(end - begin),
               ",\"args\":", args, "}"));
}

void TraceFile::Add(const TraceEvent& event) {
  const std::string& group = names_[static_cast<size_t>(event.group)];
  const int row = 2 * static_cast<int>(event.engine) + (event.stall ? 1 : 0);
  const std::string name = event.stall ? Quoted(StallName(*event.stall)) : group;
  Event(kMachine, row, name, event.stall ? "stall" : "work", event.begin, event.end,
        Concat("{\"group\":", group, ",\"step\":", event.step, ",\"begin_cycle\":", event.begin,
               ",\"cycles\":", event.end - event.begin, "}"));
}

int64_t TraceFile::AddGroups(const Counts& result, int64_t begin) {
  for (size_t g = 0; g < result.groups.size();) {
    // The groups of a cascade take turns: they are one entry.
    const int32_t cascade = program_->groups[g].cascade;
    size_t end = g + 1;
    while (cascade >= 0 && end < result.groups.size() && program_->groups[end].cascade == cascade) {
      ++end;
    }
    int64_t cycles = 0, steps = 0;
    std::string nodes;
    for (size_t member = g; member < end; ++member) {
      cycles += result.groups[member].counters.cycles;
      steps += result.groups[member].steps;
      for (const std::string& node : program_->groups[member].onnx_nodes) {
        nodes += Concat(nodes.empty() ? "" : ",", Quoted(node));
      }
    }
    Event(kGroups, 0, names_[g], cascade >= 0 ? "cascade" : "group", begin, begin + cycles,
          Concat("{\"nodes\":[", nodes, "],\"begin_cycle\":", begin, ",\"cycles\":", cycles,
                 ",\"steps\":", steps, "}"));
    begin += cycles;
    g = end;
  }
  return begin;
}

Status TraceFile::Commit(const RunResult& result, int64_t runs) {
  int64_t begin = AddGroups(result, 0);
  for (int64_t run = 1; run < runs; ++run) begin = AddGroups(*result.steady, begin);
  Write("\n]\n");
  DLA_RETURN_IF_ERROR(status_);
  return file_->Commit();
}

}  // namespace dla::runtime
