// dladump: looks into compiled programs. Arguments in, printing out; the work is in machine/.
#include <algorithm>
#include <map>
#include <sstream>

#include "cmd/command_line.h"
#include "machine/assembly.h"
#include "machine/memory_map.h"
#include "machine/program_file.h"
#include "machine/program_json.h"
#include "machine/verifier.h"
#include "support/file.h"

namespace {

using dla::Concat;
using dla::Result;
using dla::Status;
using dla::machine::Program;
using dla::machine::Region;
using dla::machine::RegionKind;

struct Options {
  std::string file, constants, output, svg;
};

Status CheckProgram(const Program& program, const std::string& file) {
  const Status status = dla::machine::VerifyProgram(program);
  return status.ok() ? status : status.At(file);
}

// Bytes of the space of one kind of region: where its last one ends.
int64_t SpaceBytes(const Program& program, RegionKind kind) {
  int64_t bytes = 0;
  for (const Region& region : program.regions) {
    if (region.kind == kind) bytes = std::max(bytes, region.address + region.bytes);
  }
  return bytes;
}

void PrintPorts(const char* title, const std::vector<dla::machine::Port>& ports,
                std::ostringstream* out) {
  for (const auto& port : ports) {
    *out << title << port.name << "  " << dla::TypeName(port.type) << " [";
    for (size_t a = 0; a < port.shape.size(); ++a) *out << (a == 0 ? "" : ", ") << port.shape[a];
    *out << "]\n";
  }
}

std::string InfoText(const Program& program) {
  std::ostringstream out;
  dla::machine::Counters total;
  size_t instructions = 0;
  for (const auto& counters : program.predicted) total.Add(counters);
  for (const auto& group : program.groups) {
    instructions += group.prologue.size() + group.body.size() + group.epilogue.size();
  }
  out << "producer          " << program.producer << "\noptions           " << program.command_line
      << "\ntarget            " << program.target.name << "\n";
  PrintPorts("input             ", program.inputs, &out);
  PrintPorts("output            ", program.outputs, &out);
  out << "groups            " << program.groups.size() << "\ninstructions      " << instructions
      << "\nconstant bytes    " << program.constants.bytes.size() << "\ninput bytes       "
      << SpaceBytes(program, RegionKind::kInput) << "\noutput bytes      "
      << SpaceBytes(program, RegionKind::kOutput) << "\ntemporary bytes   "
      << SpaceBytes(program, RegionKind::kTemporary) << "\npredicted cycles  " << total.cycles
      << "\npredicted bytes   " << total.dram_bytes() << " of DRAM traffic\n";
  return out.str();
}

Status Run(const std::string& command, const Options& options) {
  if (command == "asm") {
    DLA_ASSIGN_OR_RETURN(const std::string text, dla::ReadTextFile(options.file));
    Result<Program> program = dla::machine::Assemble(text);
    if (!program.ok()) return program.status().At(options.file);
    if (!options.constants.empty()) {
      DLA_ASSIGN_OR_RETURN(const Program from, dla::machine::ReadProgram(options.constants));
      program->constants = from.constants;
    }
    DLA_RETURN_IF_ERROR(CheckProgram(*program, options.file));
    return dla::machine::WriteProgram(*program, options.output);
  }
  DLA_ASSIGN_OR_RETURN(const Program program, dla::machine::ReadProgram(options.file));
  const auto print = [&](const std::string& text) {
    return dla::WriteResult(options.output, text);
  };
  if (command == "disasm") return print(dla::machine::Disassemble(program));
  if (command == "json") return print(dla::machine::ProgramJson(program));
  DLA_RETURN_IF_ERROR(CheckProgram(program, options.file));
  if (command == "info") return print(InfoText(program));
  if (command == "map") {
    if (!options.svg.empty()) {
      DLA_RETURN_IF_ERROR(dla::WriteResult(options.svg, dla::machine::MemoryMapSvg(program)));
    }
    return print(dla::machine::MemoryMapText(program));
  }
  return print(Concat(options.file, ": ok, ", program.groups.size(), " groups\n"));
}

int Main(int argc, char** argv) {
  CLI::App app("Looks into compiled programs.", "dladump");
  app.require_subcommand(1);
  Options options;
  const auto add = [&](const char* name, const char* what, const char* file) {
    CLI::App* sub = app.add_subcommand(name, what);
    sub->add_option(file, options.file, "file to read")->required();
    return sub;
  };
  for (const auto& [name, what] : std::map<const char*, const char*>{
           {"info", "what the program is, and its sizes"},
           {"disasm", "the program as text, without constants' bytes"},
           {"json", "the whole program as JSON, without constants' bytes"},
           {"map", "what lies where in each scratchpad, and peak use"},
           {"verify", "prove that running it cannot go wrong"}}) {
    CLI::App* sub = add(name, what, "PROGRAM");
    sub->add_option("-o,--output", options.output, "file to write");
    if (std::string_view(name) == "map") {
      sub->add_option("--svg", options.svg, "file for a drawing: addresses over predicted time");
    }
  }
  CLI::App* assemble = add("asm", "make a program of the text that disasm prints", "TEXT");
  assemble->add_option("-o,--output", options.output, "program to write")->required();
  assemble->add_option("--constants", options.constants, "program to take the constants from");
  return dla::RunTool("dladump", &app, argc, argv, [&] {
    return dla::Fail("dladump", Run(app.get_subcommands().front()->get_name(), options));
  });
}

}  // namespace

int main(int argc, char** argv) { return Main(argc, argv); }
