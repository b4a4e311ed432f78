#include "cmd/command_line.h"

#include <cstdio>
#include <exception>
#include <sstream>
#include <vector>

#include "support/suggest.h"

namespace dla {
namespace {

// The first argument that is no option of the app, with the nearest one.
std::string UnknownOption(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names = {"--help", "--version"};
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string name = argument.substr(0, argument.find('='));
    if (name.rfind("--", 0) != 0 || name.size() == 2) continue;
    bool known = false;
    for (const std::string& n : names) known = known || n == name;
    if (known) continue;
    const std::string hint = DidYouMean(name, names);
    return Concat("there is no option '", name, "'", hint.empty() ? "; --help lists them" : hint);
  }
  return "";
}

}  // namespace

void PrintStatus(const std::string& tool, const Status& status) {
  std::istringstream lines(status.message());
  for (std::string line; std::getline(lines, line);) {
    std::fprintf(stderr, "%s: error: %s\n", tool.c_str(), line.c_str());
  }
}

int RunTool(const std::string& tool, CLI::App* app, int argc, char** argv,
            const std::function<Status()>& run) {
  try {
    app->set_version_flag(
        "--version", tool + " " + DLA_VERSION + " (program format DLA1 1.0, ONNX opsets 7-17)");
    try {
      app->parse(argc, argv);
    } catch (const CLI::Success& success) {
      return app->exit(success);
    } catch (const CLI::ParseError& error) {
      const std::string unknown = UnknownOption(*app, argc, argv);
      PrintStatus(tool, Usage(unknown.empty() ? error.what() : unknown));
      return static_cast<int>(ErrorCode::kUsage);
    }
    const Status status = run();
    if (!status.ok()) PrintStatus(tool, status);
    return static_cast<int>(status.code());
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "%s: error: out of memory\n", tool.c_str());
    return static_cast<int>(ErrorCode::kIo);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: internal error: %s\nplease report this\n", tool.c_str(),
                 error.what());
    return 70;
  }
}

}  // namespace dla
