// dlac sweep: one row a target, memory size and objective; more room is not worse where it is
// proven.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <vector>

#include "support/file.h"

namespace dla {
namespace {

struct Sweep {
  int code = 0;
  std::vector<std::vector<std::string>> rows;  // fields; the header first
};

Sweep RunSweep(const std::string& options) {
  const std::string out = Concat(testing::TempDir(), "/dla_sweep_", getpid());
  const int status = std::system(
      Concat(DLA_BINARY_DIR, "/dlac sweep ", DLA_SOURCE_DIR, "/models/ppocr_v2_cls/model.onnx ",
             "--shape x=1x3x48x192 ", options, " -o ", out, " 2> /dev/null")
          .c_str());
  Sweep sweep = {.code = WEXITSTATUS(status)};
  if (sweep.code != 0) return sweep;
  std::istringstream text(*ReadTextFile(out));
  for (std::string line; std::getline(text, line);) {
    sweep.rows.emplace_back();
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) sweep.rows.back().push_back(field);
  }
  unlink(out.c_str());
  return sweep;
}

TEST(Sweep, HasARowForEachChoice) {
  const Sweep sweep = RunSweep(
      "--target edge32-unified,edge32-ideal-unified --mem pool=64K,256K --optimize "
      "traffic,latency");
  ASSERT_EQ(sweep.code, 0);
  ASSERT_EQ(sweep.rows.size(), 9U);
  const std::vector<std::string>& header = sweep.rows[0];
  EXPECT_EQ(header[0], "target");
  EXPECT_EQ(header[5], "dram_bytes");
  for (size_t r = 1; r < sweep.rows.size(); ++r) {
    const std::vector<std::string>& row = sweep.rows[r];
    ASSERT_EQ(row.size(), header.size());
    EXPECT_EQ(row[0], r < 5 ? "edge32-unified" : "edge32-ideal-unified");
    EXPECT_EQ(row[1], r % 4 == 1 || r % 4 == 2 ? "pool=65536" : "pool=262144");
    EXPECT_EQ(row[2], r % 2 == 1 ? "traffic" : "latency");
    EXPECT_EQ(row[3], "ok");
    // Never below the bounds of the whole network.
    EXPECT_GE(std::stoll(row[5]), std::stoll(row[8]));
  }
  for (const size_t r : {size_t{1}, size_t{5}}) {  // traffic: 64 KiB, then 256 KiB
    EXPECT_LE(std::stoll(sweep.rows[r + 2][6]), std::stoll(sweep.rows[r][6]));
  }
}

TEST(Sweep, SaysWhatDoesNotFitAndWhatIsWrong) {
  const Sweep sweep = RunSweep("--target edge32-unified --mem pool=64,128K");
  ASSERT_EQ(sweep.code, 0);
  ASSERT_EQ(sweep.rows.size(), 3U);
  EXPECT_EQ(sweep.rows[1][3], "does not fit");
  EXPECT_EQ(sweep.rows[2][3], "ok");
  EXPECT_EQ(RunSweep("--mem pool=64K").code, 2);  // edge32 has no such scratchpad
  EXPECT_EQ(RunSweep("--optimize speed").code, 2);
}

}  // namespace
}  // namespace dla
