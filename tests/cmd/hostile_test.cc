// Damaged input files of every kind, through the commands: a documented exit code with a message,
// quickly, and no output file; what was there before stays.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "support/file.h"

namespace dla {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr char kLimits[] = "ulimit -t 60 && ";  // the sanitizer's own memory has no bound
#else
constexpr char kLimits[] = "ulimit -v 1048576 && ulimit -t 20 && ";
#endif

struct Outcome {
  int status = 0;  // as of waitpid
  std::string err;
  double seconds = 0;
  int code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
};

class HostileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    const std::string from = DLA_SOURCE_DIR "/tests/data/cases/conv/asym_pads/";
    std::filesystem::copy_file(from + "model.onnx", Path("m.onnx"));
    std::filesystem::copy_file(from + "inputs.npz", Path("in.npz"));
    ASSERT_EQ(RunCommand("dlac m.onnx -o m.bin --schedule m.json -q").code(), 0);
    ASSERT_EQ(RunCommand("dlac --print-target edge32 > t.json").code(), 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  // In the test's folder, with limits on memory and time.
  Outcome RunCommand(const std::string& command) const {
    const auto begin = std::chrono::steady_clock::now();
    const std::string limited =
        Concat("cd ", folder_, " && ", kLimits, DLA_BINARY_DIR, "/", command, " 2> err");
    Outcome outcome;
    outcome.status = std::system(limited.c_str());
    outcome.err = *ReadTextFile(Path("err"));
    outcome.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return outcome;
  }

  // Damages FILE in many ways; runs `command`, which reads it and writes "out".
  void Damage(const std::string& file, const std::string& command, uint64_t seed) {
    const std::vector<uint8_t> whole = *ReadFile(Path(file));
    std::mt19937_64 random(seed);
    ASSERT_TRUE(WriteTextFile(Path("out"), "old").ok());
    int refused = 0;
    for (int round = 0; round < 40; ++round) {
      std::vector<uint8_t> bytes = whole;
      if (round % 4 == 0) {
        bytes.resize(random() % whole.size());
      } else {
        for (uint64_t k = 0; k <= random() % 4; ++k) {
          bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
        }
        if (round % 4 == 1) bytes.insert(bytes.begin() + 9, static_cast<uint8_t>(random()));
      }
      ASSERT_TRUE(WriteFile(Path(file), bytes).ok());
      const Outcome outcome = RunCommand(command);
      SCOPED_TRACE(Concat(command, ", seed ", seed, ", round ", round, ": ", outcome.err));
      const std::string left = *ReadTextFile(Path("out"));
      if (outcome.code() == 0) {
        EXPECT_NE(left, "old");
        ASSERT_TRUE(WriteTextFile(Path("out"), "old").ok());
        continue;
      }
      ++refused;
      EXPECT_GE(outcome.code(), 2);
      EXPECT_LE(outcome.code(), 5);  // neither a failed write nor an internal error
      EXPECT_NE(outcome.err.find(": error: "), std::string::npos);
      EXPECT_EQ(left, "old");
    }
    EXPECT_GE(refused, 8);  // at the least what was cut off
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
    }
  }

  std::string folder_ = Concat(testing::TempDir(), "/dla_hostile_", getpid());
};

TEST_F(HostileTest, Model) { Damage("m.onnx", "dlac m.onnx -o out -q", 1); }
TEST_F(HostileTest, Target) { Damage("t.json", "dlac m.onnx -o out -q --target t.json", 2); }
TEST_F(HostileTest, Schedule) {
  Damage("m.json", "dlac m.onnx -o out -q --use-schedule m.json", 3);
}
TEST_F(HostileTest, Program) { Damage("m.bin", "dlarun m.bin --inputs in.npz --outputs out", 4); }
TEST_F(HostileTest, Inputs) { Damage("in.npz", "dlarun m.bin --inputs in.npz --outputs out", 5); }
TEST_F(HostileTest, Plan) {
  std::filesystem::copy_file(DLA_SOURCE_DIR "/docs/examples/plan_problem.json", Path("p.json"));
  Damage("p.json", "dlac plan p.json -o out", 6);
}
TEST_F(HostileTest, Layers) {
  std::filesystem::copy_file(DLA_SOURCE_DIR "/docs/examples/layers.txt", Path("l.txt"));
  Damage("l.txt", "dlac map l.txt -o out", 7);
}

// Interrupted or told to end at any time, a command leaves the old file or the whole new one, and nothing else.
TEST_F(HostileTest, Interruption) {
  const std::string command = "dlac m.onnx -o out -q";
  ASSERT_EQ(RunCommand(command).code(), 0);
  const std::vector<uint8_t> whole = *ReadFile(Path("out"));
  const double seconds = RunCommand(command).seconds;
  for (int round = 0; round < 40; ++round) {
    ASSERT_TRUE(WriteTextFile(Path("out"), "old").ok());
    const double wait = seconds * round / 40;
    const std::string timed =
        Concat("cd ", folder_, " && timeout -s ", round % 2 ? "INT" : "TERM", " ", wait + 1e-4, " ",
               DLA_BINARY_DIR, "/", command, " 2> err");
    const int status = std::system(timed.c_str());
    const std::vector<uint8_t> left = *ReadFile(Path("out"));
    EXPECT_TRUE(left == whole || left == std::vector<uint8_t>({'o', 'l', 'd'})) << status;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      EXPECT_EQ(entry.path().string().find(".tmp"), std::string::npos) << entry.path();
    }
  }
}

}  // namespace
}  // namespace dla
