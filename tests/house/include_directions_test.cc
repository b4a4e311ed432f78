// Who may include whom (docs/ARCHITECTURE.md, "Folders"), read from the sources; and the things
// that every folder has.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

namespace dla {
namespace {

namespace fs = std::filesystem;

const std::map<std::string, std::set<std::string>> kMayInclude = {
    {"support", {"support"}},
    {"ir", {"ir", "support"}},
    {"machine", {"machine", "support"}},
    {"frontend", {"frontend", "ir", "support"}},
    {"scheduler", {"scheduler", "ir", "machine", "support"}},
    {"codegen", {"codegen", "scheduler", "ir", "machine", "support"}},
    {"runtime", {"runtime", "machine", "support"}},
    {"cmd", {"cmd", "codegen", "frontend", "ir", "machine", "runtime", "scheduler", "support"}},
};

// Folders and headers of the quoted includes of a file.
std::set<std::string> QuotedIncludes(const fs::path& path) {
  std::ifstream file(path);
  std::set<std::string> includes;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("#include \"", 0) != 0) continue;
    includes.insert(line.substr(10, line.find('"', 10) - 10));
  }
  return includes;
}

bool IsSource(const fs::path& path) {
  return path.extension() == ".h" || path.extension() == ".cc";
}

TEST(House, IncludesFollowTheArrows) {
  int files = 0;
  for (const auto& [folder, allowed] : kMayInclude) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(DLA_SOURCE_DIR) / folder)) {
      if (!IsSource(entry.path())) continue;
      ++files;
      for (const std::string& include : QuotedIncludes(entry.path())) {
        const std::string from = include.substr(0, include.find('/'));
        EXPECT_TRUE(allowed.count(from) != 0) << entry.path() << " includes " << include;
      }
    }
  }
  EXPECT_GT(files, 50);
}

TEST(House, OnlyTheFrontendKnowsProtobuf) {
  for (const auto& [folder, allowed] : kMayInclude) {
    if (folder == "frontend") continue;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(DLA_SOURCE_DIR) / folder)) {
      if (!IsSource(entry.path())) continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        EXPECT_FALSE(line.rfind("#include <onnx/", 0) == 0 ||
                     line.rfind("#include <google/", 0) == 0)
            << entry.path() << ": " << line;
      }
    }
  }
}

TEST(House, EveryFolderHasAReadme) {
  for (const auto& [folder, allowed] : kMayInclude) {
    EXPECT_TRUE(fs::exists(fs::path(DLA_SOURCE_DIR) / folder / "README.md")) << folder;
  }
  for (const char* folder : {"tests", "targets", "models", "bench"}) {
    EXPECT_TRUE(fs::exists(fs::path(DLA_SOURCE_DIR) / folder / "README.md")) << folder;
  }
}

TEST(House, FilesStayReadable) {
  for (const auto& [folder, allowed] : kMayInclude) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(DLA_SOURCE_DIR) / folder)) {
      if (!IsSource(entry.path())) continue;
      std::ifstream file(entry.path());
      int lines = 0;
      for (std::string line; std::getline(file, line);) ++lines;
      EXPECT_LE(lines, 600) << entry.path();
    }
  }
}

}  // namespace
}  // namespace dla
