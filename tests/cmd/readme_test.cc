// The figures of README.md are what the commands print today.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "support/file.h"

namespace dla {
namespace {

using nlohmann::json;

constexpr char kModel[] = DLA_SOURCE_DIR "/models/ppocr_v2_cls/";

class Readme : public ::testing::Test {
 protected:
  Readme() : text_(*ReadTextFile(DLA_SOURCE_DIR "/README.md")) {}
  ~Readme() override {
    for (const char* end : {".bin", ".json", ".txt"}) unlink((base_ + end).c_str());
  }

  // Runs a command and returns what it printed.
  std::string Run(const std::string& command) {
    const std::string out = base_ + ".txt";
    EXPECT_EQ(std::system(Concat(DLA_BINARY_DIR, "/", command, " > ", out, " 2>&1").c_str()), 0);
    return *ReadTextFile(out);
  }

  void ExpectInReadme(const std::string& what) const {
    EXPECT_NE(text_.find(what), std::string::npos) << "README.md has not: " << what;
  }

  const std::string text_;
  const std::string base_ = Concat(testing::TempDir(), "/dla_readme_", getpid());
};

TEST_F(Readme, DemoAndScheduleAreOfToday) {
  Run(Concat("dlac ", kModel, "model.onnx -o ", base_, ".bin --schedule ", base_,
             ".json --shape x=1x3x48x192"));
  const json schedule = json::parse(*ReadTextFile(base_ + ".json"));
  const json& totals = schedule["totals"];
  ExpectInReadme(Concat("edge32: ", schedule["groups"].size(), " groups, ",
                        totals["cycles"].get<int64_t>(), " cycles ("));
  ExpectInReadme(Concat(" ms), ", totals["dram_bytes"].get<int64_t>(), " DRAM bytes\n"));
  ExpectInReadme(Concat("cycles = ", totals["cycles"].get<int64_t>(), "\n"));
  ExpectInReadme(Concat("dram_bytes = ", totals["dram_bytes"].get<int64_t>(), "\n"));
  const std::string printed = Run(Concat("dlarun ", base_, ".bin --inputs ", kModel,
                                         "inputs.npz --expected ", kModel, "expected.npz --print"));
  ExpectInReadme(printed.substr(0, printed.find('\n')));
  int shown = 0;
  for (const json& group : schedule["groups"]) {
    if (text_.find(Concat("\"name\": ", group["name"].dump())) == std::string::npos) continue;
    ++shown;
    const json& predicted = group["predicted"];
    ExpectInReadme(Concat("\"predicted\": {\"cycles\": ", predicted["cycles"].get<int64_t>(),
                          ", \"dram_bytes\": ", predicted["dram_bytes"].get<int64_t>(),
                          ", \"dram_bus_bytes\": ", predicted["dram_bus_bytes"].get<int64_t>(),
                          ","));
    ExpectInReadme(Concat("\"steps\": ", group["mapping"]["steps"].get<int64_t>(), ","));
  }
  EXPECT_EQ(shown, 1) << "README.md shows one layer of this schedule";
}

}  // namespace
}  // namespace dla
