// dlac --cache: the same program with and without; files that are damaged, of other questions or
// with wrong answers are ignored with a warning; compilations may run at once.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/crc32c.h"
#include "support/file.h"

namespace dla {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

class Cache : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / Concat("dla_cache_", getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  std::string CacheFolder() const { return Path("cache"); }

  // Compiles a model of this tree; what it said.
  std::string Compile(const std::string& out, const std::string& options,
                      const std::string& model = "ppocr_v2_cls/model.onnx --shape x=1x3x48x192") {
    const std::string log = Path(out + ".log");
    const int status = std::system(
        Concat(DLA_BINARY_DIR, "/dlac ", DLA_SOURCE_DIR, "/models/", model, " -q -o ", Path(out),
               " --schedule ", Path(out + ".json"), " --space strided ", options, " 2> ", log)
            .c_str());
    EXPECT_EQ(WEXITSTATUS(status), 0) << *ReadTextFile(log);
    return *ReadTextFile(log);
  }
  std::string Cached(const std::string& out, const std::string& options = "") {
    return Compile(out, Concat("-v --cache ", CacheFolder(), " ", options));
  }

  void ExpectSame(const std::string& a, const std::string& b) {
    EXPECT_TRUE(*ReadFile(Path(a)) == *ReadFile(Path(b)));
    EXPECT_TRUE(*ReadTextFile(Path(a + ".json")) == *ReadTextFile(Path(b + ".json")));
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator(CacheFolder())) {
      files.push_back(entry.path().string());
    }
    return files;
  }

  // Changes a file of the cache, with a right checksum.
  template <typename F>
  void Edit(const std::string& path, F change) {
    Json json = Json::parse(*ReadTextFile(path));
    change(&json);
    const std::string entries = json["entries"].dump();
    json["crc32c"] = Crc32c({reinterpret_cast<const uint8_t*>(entries.data()), entries.size()});
    ASSERT_TRUE(WriteTextFile(path, json.dump()).ok());
  }

  fs::path folder_;
};

TEST_F(Cache, GivesTheSameProgram) {
  Compile("plain", "");
  const std::string first = Cached("first");
  EXPECT_NE(first.find("cache: 0 mappings taken, "), std::string::npos) << first;
  ASSERT_EQ(Files().size(), 1U);
  const std::string second = Cached("second");
  EXPECT_NE(second.find(" taken, 0 searched"), std::string::npos) << second;
  EXPECT_EQ(second.find("warning"), std::string::npos) << second;
  EXPECT_EQ(Files().size(), 1U) << "nothing is new";
  ExpectSame("plain", "first");
  ExpectSame("plain", "second");
}

TEST_F(Cache, OtherQuestionsAreSearched) {
  Cached("first");
  for (const char* options : {"--optimize latency", "--mem input=32K", "--disable-rule fill",
                              "--target edge32-unified", "--search-budget 1000"}) {
    EXPECT_NE(Cached("other", options).find("cache: 0 mappings taken, "), std::string::npos);
    Compile("plain", options);
    ExpectSame("plain", "other");
  }
  // Another model under the same options: what it has in common with the first is taken.
  const std::string said =
      Compile("blaze", Concat("-v --cache ", CacheFolder()), "blazeface_front/model.onnx");
  EXPECT_NE(said.find("cache: "), std::string::npos) << said;
  Compile("plain", "", "blazeface_front/model.onnx");
  ExpectSame("plain", "blaze");
}

TEST_F(Cache, DamagedFilesAreIgnored) {
  Compile("plain", "");
  Cached("first");
  const std::string path = Files().at(0), text = *ReadTextFile(path);
  const std::vector<std::string> damages = {
      "",
      "{",
      "[]",
      "null",
      text.substr(0, text.size() / 2),
      std::string(100, '['),
      R"({"format": "dla-mappings", "version": 1})",
      std::string(text).insert(text.find("\"cycles\":") + 9, "9"),
      std::string(text).replace(text.find("\"version\":1"), 11, "\"version\":9")};
  for (const std::string& damage : damages) {
    ASSERT_TRUE(WriteTextFile(path, damage).ok());
    const std::string said = Cached("again");
    EXPECT_NE(said.find("dlac: warning: " + path + ": is ignored: "), std::string::npos) << said;
    ExpectSame("plain", "again");
  }
  EXPECT_EQ(*ReadTextFile(path), text) << "written anew";
}

TEST_F(Cache, WrongAnswersAreIgnored) {
  Compile("plain", "");
  Cached("first");
  const std::string path = Files().at(0), text = *ReadTextFile(path);
  const auto each = [&](auto change) {
    return [change](Json* json) {
      for (Json& entry : (*json)["entries"]) change(&entry);
    };
  };
  const std::vector<std::function<void(Json*)>> changes = {
      [](Json* json) { (*json)["context"] = "another"; },
      each([](Json* e) { (*e)["block"][1] = 1 << 30; }),
      each([](Json* e) { (*e)["block"] = Json::array(); }),
      each([](Json* e) {
        (*e)["order"] = {0, 0};
      }),
      each([](Json* e) { (*e)["order"] = {99}; }),
      each([](Json* e) { (*e)["operands"][0][0] = 77; }),
      each([](Json* e) { (*e)["operands"][0][2] = true; }),
      each([](Json* e) { (*e)["operands"][0][3] = 5; }),
      each([](Json* e) { (*e)["accumulator"][0] = -1; }),
      each([](Json* e) { (*e)["cycles"] = 1; }),
      each([](Json* e) { e->erase("points"); }),
  };
  for (const auto& change : changes) {
    ASSERT_TRUE(WriteTextFile(path, text).ok());
    Edit(path, change);
    const std::string said = Cached("again");
    EXPECT_NE(said.find("dlac: warning: "), std::string::npos) << said;
    ExpectSame("plain", "again");
    for (const std::string& file : Files()) fs::remove(file);
  }
}

TEST_F(Cache, CompilationsMayRunAtOnce) {
  Compile("plain", "");
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      Cached(Concat("c", i), i % 2 == 0 ? "" : "--optimize latency");
      _exit(HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  ExpectSame("plain", "c0");
  ExpectSame("plain", "c2");
  const std::string said = Cached("after");
  EXPECT_NE(said.find(" taken, 0 searched"), std::string::npos) << said;
  ExpectSame("plain", "after");
}

TEST_F(Cache, AFolderThatCannotBeWrittenIsAWarning) {
  ASSERT_TRUE(WriteTextFile(CacheFolder(), "a file").ok());
  Compile("plain", "");
  EXPECT_NE(Cached("again").find("dlac: warning: "), std::string::npos);
  ExpectSame("plain", "again");
}

TEST_F(Cache, MappingsOfOtherSizesAreReused) {
  Cached("first");
  const std::string said = Cached("reused", "--search reuse --mem input=48K");
  EXPECT_NE(said.find("0 of other sizes tried"), std::string::npos) << "another target: " << said;
  const std::string model = "ppocr_v2_cls/model.onnx --shape x=1x3x48x160";
  const std::string narrower =
      Compile("narrow", Concat("-v --search reuse --cache ", CacheFolder()), model);
  EXPECT_EQ(narrower.find(" 0 of other sizes tried"), std::string::npos) << narrower;
  Compile("rule", "--search none", model);
  const auto cycles = [&](const std::string& name) {
    return Json::parse(*ReadTextFile(Path(name + ".json")))["totals"]["cycles"].get<int64_t>();
  };
  EXPECT_LT(cycles("narrow"), cycles("rule"));
}

}  // namespace
}  // namespace dla
