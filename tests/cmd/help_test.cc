// Help and manual pages of the commands, which are made of the same descriptions.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>
#include <vector>

#include "support/file.h"

namespace dla {
namespace {

struct Outcome {
  int code;
  std::string out;
};

Outcome RunCommand(const std::string& command) {
  const std::string out = Concat(testing::TempDir(), "/dla_help_", getpid());
  const int status = std::system(Concat(DLA_BINARY_DIR, "/", command, " > ", out).c_str());
  Outcome outcome = {WEXITSTATUS(status), *ReadTextFile(out)};
  unlink(out.c_str());
  return outcome;
}

// A page's file and the command that it belongs to: dlac-map.1 and "dlac map".
std::vector<std::pair<std::string, std::string>> Pages() {
  std::vector<std::pair<std::string, std::string>> pages;
  for (const auto& entry : std::filesystem::directory_iterator(DLA_SOURCE_DIR "/docs/man")) {
    std::string command = entry.path().stem().string();
    std::replace(command.begin(), command.end(), '-', ' ');
    pages.emplace_back(entry.path().string(), command);
  }
  std::sort(pages.begin(), pages.end());
  return pages;
}

TEST(ManPages, AreUpToDate) {
  ASSERT_GE(Pages().size(), 5U);
  for (const auto& [file, command] : Pages()) {
    const Outcome outcome = RunCommand(command + " --man");
    EXPECT_EQ(outcome.code, 0) << command;
    EXPECT_GT(outcome.out.size(), 1000U) << command;
    EXPECT_EQ(outcome.out, *ReadTextFile(file))
        << command << ": scripts/update_golden writes the pages anew";
  }
}

TEST(Help, AndManPageHaveTheSameOptions) {
  for (const auto& [file, command] : Pages()) {
    const Outcome help = RunCommand(command + " --help");
    EXPECT_EQ(help.code, 0) << command;
    const std::string page = std::regex_replace(*ReadTextFile(file), std::regex(R"(\\-)"), "-");
    std::set<std::string> options;
    const std::regex option(R"((^|[ ,])(--[a-z][a-z-]*))");
    for (auto it = std::sregex_iterator(help.out.begin(), help.out.end(), option);
         it != std::sregex_iterator(); ++it) {
      options.insert((*it)[2]);
    }
    EXPECT_GE(options.size(), 3U) << command;
    for (const std::string& name : options) {
      EXPECT_NE(page.find(name), std::string::npos) << command << " " << name;
    }
  }
}

// No line of a page is taken for a request that it is not.
TEST(ManPages, HaveKnownRequestsOnly) {
  const std::set<std::string> known = {".TH", ".SH", ".SS", ".TP", ".B"};
  for (const auto& [file, command] : Pages()) {
    std::istringstream page(*ReadTextFile(file));
    for (std::string line; std::getline(page, line);) {
      if (line.empty() || (line[0] != '.' && line[0] != '\'')) continue;
      EXPECT_EQ(known.count(line.substr(0, line.find(' '))), 1U) << file << ": " << line;
    }
  }
}

}  // namespace
}  // namespace dla
