#include "cmd/command_line.h"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <sstream>
#include <vector>

#include "cmd/man_page.h"
#include "machine/sections.h"
#include "support/file.h"
#include "support/suggest.h"

namespace dla {
namespace {

void AddNames(const CLI::App& app, std::vector<std::string>* names) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names->push_back("--" + name);
  }
  for (const CLI::App* sub : app.get_subcommands(nullptr)) AddNames(*sub, names);
}

// The first argument that looks like an option and is none, with the nearest one; "": no such.
std::string UnknownOption(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names;
  AddNames(app, &names);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string name = argument.substr(0, argument.find('='));
    if (name.rfind("--", 0) != 0 || name.size() == 2) continue;
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    return Concat("there is no option '", name, "'", DidYouMean(name, names));
  }
  return "";
}

int Parsed(const std::string& tool, CLI::App* app, int argc, char** argv,
           const std::function<int()>& run) {
  app->set_version_flag(
      "--version",
      Concat(tool, " ", DLA_VERSION, " (program format DLA1 ", machine::kMajorVersion, ".",
             machine::kMinorVersion, ", ONNX opsets 6 to 23)"),
      "Print the version and exit");
  // Answers before anything that is required is missed, as --help does.
  bool wants_man = false;
  const auto stop_for_man = [&wants_man](int64_t) {
    wants_man = true;
    throw CLI::Success();
  };
  app->add_flag_function("--man", stop_for_man, "Print this manual page (troff) and exit")
      ->trigger_on_parse();
  try {
    app->parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version, --man
    if (!wants_man) return app->exit(success);
    return Fail(tool, WriteResult("", ManPage(tool, *app)));
  } catch (const CLI::ParseError& error) {
    const std::string unknown = UnknownOption(*app, argc, argv);
    return Fail(tool, Usage(unknown.empty() ? error.what() : unknown, "; ", tool,
                            " --help lists all options"));
  }
  const int code = run();
  if (std::fflush(stdout) != 0) return Fail(tool, IoError("standard output: cannot be written"));
  return code;
}

}  // namespace

int Fail(const std::string& tool, const Status& status) {
  std::istringstream lines(status.message());
  for (std::string line; std::getline(lines, line);) {
    std::fprintf(stderr, "%s: error: %s\n", tool.c_str(), line.c_str());
  }
  return static_cast<int>(status.code());
}

int RunTool(const std::string& tool, CLI::App* app, int argc, char** argv,
            const std::function<int()>& run) {
  try {
    return Parsed(tool, app, argc, argv, run);
  } catch (const std::bad_alloc&) {
    return Fail(tool, IoError("out of memory"));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: internal error: %s; please report this\n", tool.c_str(),
                 error.what());
    return 70;
  }
}

Status WriteResult(const std::string& path, std::string_view text) {
  if (!path.empty() && path != "-") return WriteTextFile(path, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return IoError("standard output: cannot be written");
  }
  return {};
}

}  // namespace dla
