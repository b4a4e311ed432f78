// dlarun: runs a compiled program on the emulated machine.
//
// Arguments in, printing out; everything else is in runtime/. Results go to stdout, messages to
// stderr as "dlarun: error: ...". Exit codes: support/status.h, and 1 if outputs differ from what
// was expected.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "cmd/command_line.h"
#include "machine/program_file.h"
#include "machine/verifier.h"
#include "runtime/dump.h"
#include "runtime/emulator.h"
#include "runtime/named_tensors.h"
#include "runtime/stats.h"
#include "runtime/trace.h"
#include "support/file.h"
#include "support/tensor_file.h"

namespace {

using dla::Result;
using dla::Status;
using dla::Tensor;
using dla::machine::Program;
using dla::runtime::Mode;
using dla::runtime::RunOptions;
using dla::runtime::RunResult;

constexpr int kDiffers = 1;

struct Arguments {
  std::string program;
  std::string inputs;                      // .npz
  std::vector<std::string> input, output;  // NAME=FILE
  std::vector<std::string> dump;           // values by name, or "all"
  std::string data_set, outputs, expected, stats_json, trace;
  dla::runtime::Tolerance tolerance;
  std::string mode = "both";
  bool check = false, print = false, stats = false, quiet = false, verbose = false;
  std::optional<uint64_t> jitter;
  int64_t repeat = 1;
};

void Print(const char* kind, const std::string& message) {
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) {
    std::cerr << "dlarun: " << kind << ": " << line << "\n";
  }
}

int Fail(const Status& status) { return dla::Fail("dlarun", status); }

void Declare(CLI::App* app, Arguments* a) {
  app->add_option("MODEL.bin", a->program, "The program to run")->required();
  app->add_option("--inputs", a->inputs, "All inputs, by name")->type_name("FILE.npz");
  app->add_option("--input", a->input, "One input from a .npy or .pb file")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  app->add_option("--data-set", a->data_set,
                  "input_0.pb, input_1.pb, ... in graph order; output_0.pb, ... are expected")
      ->type_name("DIR");
  app->add_option("--outputs", a->outputs, "Write all outputs, by name")->type_name("FILE.npz");
  app->add_option("--output", a->output, "Write one output as .npy or .pb (repeatable)")
      ->type_name("NAME=FILE");
  app->add_option("--expected", a->expected,
                  "Compare outputs with these; exit code 1 if they differ (a folder: output_0.pb, "
                  "...)")
      ->type_name("FILE.npz|DIR");
  app->add_option("--rtol", a->tolerance.relative, "Relative tolerance of --expected")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app->add_option("--atol", a->tolerance.absolute, "Absolute tolerance of --expected")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  app->add_option(
         "--dump", a->dump,
         "Add a value inside the model to --outputs, by its ONNX name; all: every one that "
         "is stored (repeatable)")
      ->type_name("VALUE|all")
      ->allow_extra_args(false);
  app->add_option("--mode", a->mode,
                  "functional: values and bytes; timed: bytes and cycles, needs no inputs; both")
      ->capture_default_str()
      ->check(CLI::IsMember({"functional", "timed", "both"}));
  app->add_flag("--check", a->check, "Follow every byte and report reads of wrong tiles");
  app->add_option("--jitter", a->jitter, "Delay engines at random; values must not change")
      ->type_name("SEED");
  app->add_option("--repeat", a->repeat,
                  "Run so often in a row, as the same model on further inputs would: weights that "
                  "were compiled to stay on chip are loaded by the first run; all runs must agree")
      ->type_name("N")
      ->check(CLI::Range(int64_t{1}, int64_t{1000000}));
  app->add_flag("--print", a->print,
                "Print the first elements of each output, and of what was expected");
  app->add_flag("--stats", a->stats, "Print a table of what was counted");
  app->add_option("--stats-json", a->stats_json, "The same as JSON ('-': to stdout)")
      ->type_name("FILE");
  app->add_option("--trace", a->trace,
                  "Write what each engine does when, for chrome://tracing and Perfetto")
      ->type_name("FILE.json");
  auto* quiet = app->add_flag("-q,--quiet", a->quiet, "Print errors only");
  app->add_flag("-v,--verbose", a->verbose, "Print what is done")->excludes(quiet);
}

// Splits "NAME=FILE"; a name of the program's may hold '=' itself.
Result<std::pair<std::string, std::string>> SplitNamed(const char* option,
                                                       const std::vector<dla::machine::Port>& ports,
                                                       const std::string& text) {
  for (const auto& port : ports) {
    const size_t length = port.name.size();
    if (text.compare(0, length, port.name) == 0 && text.size() > length && text[length] == '=') {
      return std::pair(port.name, text.substr(length + 1));
    }
  }
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    return dla::Usage(option, " ", text, ": NAME=FILE.npy or NAME=FILE.pb is wanted");
  }
  return std::pair(text.substr(0, equals), text.substr(equals + 1));
}

Result<Tensor> ReadNamed(const Program& program, const std::string& text) {
  DLA_ASSIGN_OR_RETURN(const auto named, SplitNamed("--input", program.inputs, text));
  DLA_ASSIGN_OR_RETURN(Tensor tensor, dla::ReadTensor(named.second));
  tensor.name = named.first;
  return tensor;
}

// The most bytes that an array of an npz may have: what the port of its name takes. Other names
// are read up to a small size, so that they can be reported.
dla::TensorLimit LimitOf(const std::vector<dla::machine::Port>& ports) {
  return [&ports](const std::string& name) {
    constexpr int64_t kUnknownBytes = int64_t{1} << 26;
    for (const auto& port : ports) {
      if (port.name != name) continue;
      const auto elements = dla::CountElements(port.shape);
      return elements ? std::max<int64_t>(8 * *elements, 64) : kUnknownBytes;
    }
    return kUnknownBytes;
  };
}

// Tensors of a data-set folder, named after the ports they belong to by position.
Result<std::vector<Tensor>> ReadInOrder(const std::string& folder, const std::string& prefix,
                                        const std::vector<dla::machine::Port>& ports) {
  DLA_ASSIGN_OR_RETURN(std::vector<Tensor> tensors, dla::ReadDataSet(folder, prefix));
  if (tensors.size() > ports.size()) {
    return dla::Usage(folder, ": has ", tensors.size(), " tensors '", prefix,
                      "_*.pb', the program ", ports.size(), " ", prefix, "s");
  }
  for (size_t i = 0; i < tensors.size(); ++i) tensors[i].name = ports[i].name;
  return tensors;
}

Result<std::vector<Tensor>> ReadInputs(const Program& program, const Arguments& a) {
  std::vector<Tensor> tensors;
  const auto append = [&tensors](std::vector<Tensor> more) {
    for (Tensor& tensor : more) tensors.push_back(std::move(tensor));
  };
  if (!a.inputs.empty()) {
    DLA_ASSIGN_OR_RETURN(std::vector<Tensor> read, dla::ReadNpz(a.inputs, LimitOf(program.inputs)));
    append(std::move(read));
  }
  if (!a.data_set.empty()) {
    DLA_ASSIGN_OR_RETURN(std::vector<Tensor> read,
                         ReadInOrder(a.data_set, "input", program.inputs));
    append(std::move(read));
  }
  for (const std::string& text : a.input) {
    DLA_ASSIGN_OR_RETURN(Tensor tensor, ReadNamed(program, text));
    tensors.push_back(std::move(tensor));
  }
  Result<std::vector<Tensor>> matched = dla::runtime::MatchInputs(program, std::move(tensors));
  if (!matched.ok() && a.inputs.empty() && a.data_set.empty() && a.input.empty()) {
    return dla::Usage(matched.status().message(),
                      "\nvalues need inputs: give --inputs, --input or --data-set, or run with "
                      "--mode timed");
  }
  return matched;
}

// What outputs are compared with; nothing if the user gave nothing.
Result<std::vector<Tensor>> ReadExpected(const Program& program, const Arguments& a) {
  if (!a.expected.empty() && !std::filesystem::is_directory(a.expected)) {
    return dla::ReadNpz(a.expected, LimitOf(program.outputs));
  }
  if (!a.expected.empty()) return ReadInOrder(a.expected, "output", program.outputs);
  if (!a.data_set.empty()) return ReadInOrder(a.data_set, "output", program.outputs);
  return std::vector<Tensor>{};
}

const Tensor* FindTensor(const std::vector<Tensor>& tensors, const std::string& name) {
  for (const Tensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

// Each tensor's first elements, and below them those that were expected.
void PrintTensors(const std::vector<Tensor>& tensors, const std::vector<Tensor>& expected) {
  for (const Tensor& output : tensors) {
    std::cout << output.name << "  " << dla::runtime::TypeAndShape(output.type, output.shape)
              << "\n  computed " << dla::runtime::FirstElements(output) << "\n";
    if (const Tensor* wanted = FindTensor(expected, output.name)) {
      std::cout << "  expected " << dla::runtime::FirstElements(*wanted) << "\n";
    }
  }
}

// 0, kDiffers, or the exit code of a failure.
int CompareAll(const RunResult& result, const std::vector<Tensor>& expected, const Arguments& a) {
  int code = 0;
  for (const Tensor& wanted : expected) {
    const Tensor* output = FindTensor(result.outputs, wanted.name);
    if (output == nullptr) {
      return Fail(dla::Usage("the program has no output '", wanted.name, "' to compare with"));
    }
    const auto difference = dla::runtime::Compare(*output, wanted, a.tolerance);
    if (!difference.ok()) return Fail(difference.status());
    if (difference->differing > 0) {
      code = kDiffers;
      Print("error",
            dla::Concat("output '", wanted.name, "' differs in ", difference->differing, " of ",
                        difference->elements, " elements; worst ", difference->worst));
    } else if (!a.quiet) {
      Print("note", dla::Concat("output '", wanted.name, "' is as expected (", difference->elements,
                                " elements)"));
    }
  }
  return code;
}

Result<RunOptions> OptionsOf(const Program& program, const Arguments& a) {
  RunOptions options;
  DLA_ASSIGN_OR_RETURN(options.dump, dla::runtime::FindValues(program, a.dump));
  options.mode = a.mode == "timed"        ? Mode::kTimed
                 : a.mode == "functional" ? Mode::kFunctional
                                          : Mode::kBoth;
  options.check = a.check;
  options.jitter = a.jitter;
  options.repeat = a.repeat;
  if (!a.quiet && isatty(STDERR_FILENO) != 0) {
    options.progress = [&program](int64_t done, int64_t groups) {
      std::cerr << "\r\033[K";
      if (done == groups) return;
      std::cerr << "group " << done + 1 << " of " << groups << ": "
                << program.groups[static_cast<size_t>(done)].name << std::flush;
    };
  }
  return options;
}

Status Report(const Program& program, const RunOptions& options, const RunResult& result,
              const Arguments& a) {
  if (!a.outputs.empty()) {
    std::vector<Tensor> tensors = result.outputs;
    for (const Tensor& tensor : result.dumped) {
      if (FindTensor(result.outputs, tensor.name) == nullptr) tensors.push_back(tensor);
    }
    DLA_RETURN_IF_ERROR(dla::WriteNpz(a.outputs, tensors));
  }
  for (const std::string& text : a.output) {
    DLA_ASSIGN_OR_RETURN(const auto named, SplitNamed("--output", program.outputs, text));
    const Tensor* tensor = FindTensor(result.outputs, named.first);
    if (tensor == nullptr) {
      std::string names;
      for (const auto& port : program.outputs) names += (names.empty() ? "" : ", ") + port.name;
      return dla::Usage("the program has no output '", named.first, "'; it has ", names);
    }
    DLA_RETURN_IF_ERROR(dla::WriteTensor(named.second, *tensor));
  }
  if (a.stats) std::cout << dla::runtime::StatsText(program, options, result);
  if (a.stats_json.empty()) return Status();
  const std::string json = dla::runtime::StatsJson(program, options, result)
                               .dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
                           "\n";
  if (a.stats_json != "-") return dla::WriteTextFile(a.stats_json, json);
  std::cout << json;
  return Status();
}

Status CheckArguments(const Arguments& a) {
  if (a.mode == "timed" &&
      (!a.outputs.empty() || !a.output.empty() || !a.expected.empty() || !a.dump.empty())) {
    return dla::Usage("--mode timed gives no values for --outputs, --output, --expected or --dump");
  }
  if (a.mode == "functional" && !a.trace.empty()) {
    return dla::Usage("--mode functional has no times for --trace");
  }
  if (!a.dump.empty() && a.outputs.empty() && !a.print) {
    return dla::Usage("--dump: say where to with --outputs FILE.npz, or add --print");
  }
  return Status();
}

// Tells how many of the model's values --dump all cannot show.
void NoteFusedAway(const Program& program, const RunOptions& options, const Arguments& a) {
  const int64_t away = dla::runtime::CountFusedAway(program);
  if (a.quiet || away == 0 || options.dump.empty()) return;
  Print("note",
        dla::Concat("--dump: ", options.dump.size(), " of the model's ", program.values.size(),
                    " values; ", away,
                    " are stored nowhere (fused into a group, or computed by the compiler)"));
}

// Runs it, with a trace if one is wanted.
Result<RunResult> RunTraced(const Program& program, RunOptions options,
                            const std::vector<Tensor>& inputs, const std::string& trace_path) {
  if (trace_path.empty()) return dla::runtime::Run(program, options, inputs);
  DLA_ASSIGN_OR_RETURN(const auto trace, dla::runtime::TraceFile::Create(trace_path, program));
  options.trace = [&](const dla::runtime::TraceEvent& event) { trace->Add(event); };
  DLA_ASSIGN_OR_RETURN(RunResult result, dla::runtime::Run(program, options, inputs));
  DLA_RETURN_IF_ERROR(trace->Commit(result, options.repeat));
  return result;
}

int RunProgram(const Arguments& a) {
  if (const Status checked = CheckArguments(a); !checked.ok()) return Fail(checked);
  const auto program = dla::machine::ReadProgram(a.program);
  if (!program.ok()) return Fail(program.status());
  const Status verified = dla::machine::VerifyProgram(*program);
  if (!verified.ok()) return Fail(verified.At(a.program));
  const Result<RunOptions> parsed = OptionsOf(*program, a);
  if (!parsed.ok()) return Fail(parsed.status());
  const RunOptions& options = *parsed;
  std::vector<Tensor> inputs, expected;
  if (options.mode != Mode::kTimed) {
    auto read = ReadInputs(*program, a);
    if (!read.ok()) return Fail(read.status());
    inputs = std::move(*read);
    auto wanted = ReadExpected(*program, a);
    if (!wanted.ok()) return Fail(wanted.status());
    expected = std::move(*wanted);
  }
  if (a.verbose) {
    Print("note", dla::Concat(a.program, ": ", program->groups.size(), " groups for target '",
                              program->target.name, "', compiled by ", program->producer));
  }
  NoteFusedAway(*program, options, a);
  const auto result = RunTraced(*program, options, inputs, a.trace);
  if (!result.ok()) {
    if (options.progress) std::cerr << "\r\033[K";
    return Fail(result.status().At(a.program));
  }
  for (const std::string& text : dla::runtime::OverflowWarnings(*program, *result)) {
    Print("warning", text);
  }
  const Status reported = Report(*program, options, *result, a);
  if (!reported.ok()) return Fail(reported);
  if (a.print) {
    PrintTensors(result->outputs, expected);
    PrintTensors(result->dumped, {});
  }
  return CompareAll(*result, expected, a);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Runs a compiled program on the emulated accelerator.", "dlarun");
  Declare(&app, &arguments);
  return dla::RunTool("dlarun", &app, argc, argv, [&] { return RunProgram(arguments); });
}
