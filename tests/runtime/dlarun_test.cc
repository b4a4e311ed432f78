// dlarun as its user sees it: exit codes, messages, files.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "machine/program_file.h"
#include "runtime/emulator.h"
#include "support/file.h"
#include "support/tensor_file.h"
#include "tests/runtime/conv_program.h"

namespace dla::runtime::test {
namespace {

struct Outcome {
  int code = -1;
  std::string output;  // stdout and stderr together
};

class Dlarun : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("dlarun_") + info->name() + "_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    std::mt19937 random(3);
    case_ = MakeConv(RandomConv(&random), &random);
    const auto timed = runtime::Run(case_.program, {.mode = Mode::kTimed}, {});
    ASSERT_TRUE(timed.ok());
    case_.program.predicted = {timed->groups[0].counters};
    ASSERT_TRUE(machine::WriteProgram(case_.program, Path("m.bin")).ok());
    ASSERT_TRUE(WriteNpz(Path("in.npz"), case_.inputs).ok());
    expected_ = {"y", ElementType::kF32, case_.program.outputs[0].shape, BytesOf(case_.expected)};
    ASSERT_TRUE(WriteNpz(Path("want.npz"), std::vector<Tensor>{expected_}).ok());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  // Runs dlarun in the test's folder.
  Outcome Run(const std::string& arguments) const {
    const std::string command =
        "cd '" + folder_.string() + "' && '" DLA_BINARY_DIR "/dlarun' " + arguments + " 2>&1";
    Outcome outcome;
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return outcome;
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) {
      outcome.output.append(buffer, n);
    }
    outcome.code = WEXITSTATUS(pclose(pipe));
    return outcome;
  }
  void Expect(const std::string& arguments, int code, const std::string& part) const {
    const Outcome outcome = Run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.output;
    EXPECT_NE(outcome.output.find(part), std::string::npos)
        << arguments << "\n'" << part << "' is not in:\n"
        << outcome.output;
  }

  std::filesystem::path folder_;
  ConvCase case_;
  Tensor expected_;
};

TEST_F(Dlarun, RunsWritesAndCompares) {
  Expect("m.bin --inputs in.npz --outputs out.npz --expected want.npz --check --jitter 7", 0,
         "dlarun: note: output 'y' is as expected");
  const auto written = ReadNpz(Path("out.npz"));
  ASSERT_TRUE(written.ok());
  ASSERT_EQ(written->size(), 1u);
  EXPECT_EQ((*written)[0], expected_);
  EXPECT_EQ(Run("m.bin --inputs in.npz -q --expected want.npz").output, "");
}

TEST_F(Dlarun, ReadsSingleTensorsAndDataSets) {
  ASSERT_TRUE(WriteTensor(Path("x=1.npy"), case_.inputs[0]).ok());
  Expect("--input x=x=1.npy m.bin --expected want.npz", 0, "as expected");
  std::filesystem::create_directories(folder_ / "set");
  ASSERT_TRUE(WriteTensor(Path("set/input_0.pb"), case_.inputs[0]).ok());
  ASSERT_TRUE(WriteTensor(Path("set/output_0.pb"), expected_).ok());
  Expect("m.bin --data-set set", 0, "output 'y' is as expected");
  Expect("m.bin --inputs in.npz --expected set", 0, "output 'y' is as expected");
}

TEST_F(Dlarun, DifferingOutputsExitWithOneAndSayWhere) {
  std::vector<float> wrong = case_.expected;
  wrong.back() += 1;
  expected_.bytes = BytesOf(wrong);
  ASSERT_TRUE(WriteNpz(Path("wrong.npz"), std::vector<Tensor>{expected_}).ok());
  Expect("m.bin --inputs in.npz --expected wrong.npz", 1,
         "dlarun: error: output 'y' differs in 1 of ");
  Expect("m.bin --inputs in.npz --expected wrong.npz --atol 2", 0, "as expected");
}

TEST_F(Dlarun, TimedModeNeedsNoInputsAndGivesNoValues) {
  Expect("m.bin --mode timed --stats", 0, "exactly");
  Expect("m.bin --mode timed --outputs out.npz", 2, "--mode timed gives no values");
  Expect("m.bin", 2, "input 'x' is missing: f32 1x");
  Expect("m.bin", 2, "give --inputs, --input or --data-set, or run with --mode timed");
}

TEST_F(Dlarun, StatsJsonHasTotalsAndGroups) {
  Expect("m.bin --inputs in.npz --stats-json s.json", 0, "");
  const auto text = ReadTextFile(Path("s.json"));
  ASSERT_TRUE(text.ok());
  const auto json = nlohmann::json::parse(*text);
  const machine::Counters& counters = case_.program.predicted[0];
  EXPECT_EQ(json.at("cycles"), counters.cycles);
  EXPECT_EQ(json.at("dram_bytes"), counters.dram_bytes());
  EXPECT_EQ(json.at("dram_bus_bytes"), counters.dram_bus_bytes());
  EXPECT_EQ(json.at("macs_array"), counters.macs_array);
  EXPECT_EQ(json.at("as_predicted"), true);
  EXPECT_EQ(json.at("groups").size(), 1u);
  const auto& group = json.at("groups")[0];
  EXPECT_EQ(group.at("name"), "conv");
  EXPECT_EQ(group.at("predicted").at("cycles"), counters.cycles);
  EXPECT_EQ(group.at("as_predicted"), true);
  EXPECT_GT(json.at("energy_pj").get<double>(), 0);
  EXPECT_GT(json.at("engines").at("array").at("busy_cycles").get<int64_t>(), 0);
}

TEST_F(Dlarun, RepeatedRunsAreCountedApart) {
  Expect("m.bin --inputs in.npz --repeat 3 --check --stats-json s.json --trace t.json --stats", 0,
         "runs 2 to 3, each");
  const auto text = ReadTextFile(Path("s.json"));
  ASSERT_TRUE(text.ok());
  const auto json = nlohmann::json::parse(*text);
  EXPECT_EQ(json.at("runs"), 3);
  for (const char* run : {"first", "steady"}) {
    EXPECT_EQ(json.at(run).at("cycles"), case_.program.predicted[0].cycles) << run;
    EXPECT_EQ(json.at(run).at("dram_bytes"), case_.program.predicted[0].dram_bytes()) << run;
    EXPECT_EQ(json.at(run).at("as_predicted"), true) << run;
    EXPECT_EQ(json.at(run).at("groups").size(), 1u) << run;
  }
  const auto trace = ReadTextFile(Path("t.json"));
  ASSERT_TRUE(trace.ok());
  int64_t groups = 0;
  for (const auto& event : nlohmann::json::parse(*trace)) {
    groups += event.contains("cat") && event.at("cat") == "group" ? 1 : 0;
  }
  EXPECT_EQ(groups, 3);
  Expect("m.bin --mode timed --repeat 0", 2, "--repeat");
}

// A later prediction of its own is what later runs are compared with.
TEST_F(Dlarun, LaterRunsHaveTheirOwnPrediction) {
  case_.program.steady = case_.program.predicted;
  case_.program.steady[0].cycles += 1;
  ASSERT_TRUE(machine::WriteProgram(case_.program, Path("m.bin")).ok());
  Expect("m.bin --mode timed --stats", 0, "exactly");
  Expect("m.bin --mode timed --repeat 2 --stats", 0, "DIFFERS");
}

TEST_F(Dlarun, AWrongPredictionShows) {
  case_.program.predicted[0].cycles += 1;
  ASSERT_TRUE(machine::WriteProgram(case_.program, Path("m.bin")).ok());
  Expect("m.bin --mode timed --stats", 0, "DIFFERS");
}

TEST_F(Dlarun, WrongInputsAreNamed) {
  Tensor tensor = case_.inputs[0];
  tensor.name = "xx";
  ASSERT_TRUE(WriteNpz(Path("bad.npz"), std::vector<Tensor>{tensor}).ok());
  Expect("m.bin --inputs bad.npz", 2, "dlarun: error: the program has no input 'xx'");
  tensor.name = "x";
  tensor.shape.insert(tensor.shape.begin(), 1);
  ASSERT_TRUE(WriteNpz(Path("bad.npz"), std::vector<Tensor>{tensor}).ok());
  Expect("m.bin --inputs bad.npz", 2, "input 'x' is f32 1x1x");
  Expect("m.bin --inputs in.npz --inputs in.npz", 2, "--inputs");
  Expect("m.bin --input x", 2, "NAME=FILE.npy or NAME=FILE.pb is wanted");
}

TEST_F(Dlarun, BadFilesAndArguments) {
  Expect("missing.bin", 6, "missing.bin: ");
  ASSERT_TRUE(WriteTextFile(Path("text.bin"), "no program").ok());
  Expect("text.bin", 3, "text.bin: ");
  Expect("m.bin --mode fast", 2, "--mode");
  Expect("m.bin --no-such-option", 2, "dlarun --help lists all options");
  Expect("--version", 0, "dlarun 0.1");
  Expect("m.bin --inputs in.npz --outputs no/such/folder/out.npz", 6, "no/such/folder/out.npz");
}

}  // namespace
}  // namespace dla::runtime::test
