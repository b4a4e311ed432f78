// dladump as a process: exit codes, messages, and disasm | asm giving back the same file.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "machine/program_file.h"
#include "support/file.h"
#include "tests/machine/sample_program.h"

namespace dla::machine {
namespace {

struct Outcome {
  int code;
  std::string out, err;
};

class DladumpTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(WriteProgram(sample::MakeProgram(), Path("m.bin")).ok()); }
  static std::string Path(const std::string& name) {
    return Concat(testing::TempDir(), "/dla_dump_", getpid(), "_", name);
  }
  static Outcome Run(const std::string& arguments) {
    const std::string command =
        Concat(DLA_BINARY_DIR, "/dladump ", arguments, " > ", Path("out"), " 2> ", Path("err"));
    const int status = std::system(command.c_str());
    return {WEXITSTATUS(status), *ReadTextFile(Path("out")), *ReadTextFile(Path("err"))};
  }
};

TEST_F(DladumpTest, VerifiesAndDescribes) {
  const Outcome verify = Run("verify " + Path("m.bin"));
  EXPECT_EQ(verify.code, 0);
  EXPECT_EQ(verify.out, Path("m.bin") + ": ok, 3 groups\n");
  EXPECT_NE(Run("info " + Path("m.bin")).out.find("target            edge32\n"), std::string::npos);
  const Outcome map = Run("map " + Path("m.bin"));
  EXPECT_NE(map.out.find("memory 'input': 65536 bytes, peak 8192 in group 1\n"), std::string::npos);
  EXPECT_NE(map.out.find("  |"), std::string::npos);
  const Program program = sample::MakeProgram();
  ASSERT_EQ(Run("map " + Path("m.bin") + " --svg " + Path("m.svg")).code, 0);
  const std::string svg = *ReadTextFile(Path("m.svg"));
  EXPECT_EQ(svg.substr(0, 4), "<svg");
  size_t drawn = 0;
  for (size_t at = svg.find("<title>"); at != std::string::npos; at = svg.find("<title>", at + 1)) {
    ++drawn;
  }
  EXPECT_EQ(drawn, program.buffers.size());
  const Outcome json = Run("json " + Path("m.bin"));
  EXPECT_NE(json.out.find("\"opcode\": \"array\""), std::string::npos);
}

TEST_F(DladumpTest, DisasmAndAsmGiveTheSameFile) {
  ASSERT_EQ(Run("disasm " + Path("m.bin") + " -o " + Path("m.txt")).code, 0);
  ASSERT_EQ(
      Run("asm " + Path("m.txt") + " --constants " + Path("m.bin") + " -o " + Path("n.bin")).code,
      0);
  EXPECT_EQ(*ReadFile(Path("n.bin")), *ReadFile(Path("m.bin")));
  const Outcome without = Run("asm " + Path("m.txt") + " -o " + Path("n.bin"));
  EXPECT_EQ(without.code, 3);
  EXPECT_EQ(
      without.err.substr(0, without.err.find('\n')),
      "dladump: error: " + Path("m.txt") + ": region 1 'w': ends at 3456, the constants at 0");
}

TEST_F(DladumpTest, ExitCodesAndMessages) {
  EXPECT_EQ(Run("").code, 2);
  EXPECT_EQ(Run("frobnicate x").code, 2);
  EXPECT_EQ(Run("--help").code, 0);
  EXPECT_EQ(Run("--version").out.rfind("dladump " DLA_VERSION " (program format DLA1", 0), 0U);
  const Outcome missing = Run("info " + Path("none.bin"));
  EXPECT_EQ(missing.code, 6);
  EXPECT_EQ(missing.err,
            "dladump: error: " + Path("none.bin") + ": cannot open: No such file or directory\n");
  ASSERT_TRUE(WriteTextFile(Path("text"), "hello").ok());
  const Outcome text = Run("verify " + Path("text"));
  EXPECT_EQ(text.code, 3);
  EXPECT_EQ(text.err, "dladump: error: " + Path("text") +
                          ": is no compiled program (it does not begin with 'DLA1')\n");
  Program bad = sample::MakeProgram();
  bad.groups[0].operands[0].address = 4;
  bad.groups[1].operands[0].address = 4;
  ASSERT_TRUE(WriteProgram(bad, Path("bad.bin")).ok());
  const Outcome faults = Run("verify " + Path("bad.bin"));
  EXPECT_EQ(faults.code, 3);
  EXPECT_EQ(std::count(faults.err.begin(), faults.err.end(), '\n'), 2);
  EXPECT_EQ(Run("disasm " + Path("bad.bin")).code, 0);  // shows what does not verify
  EXPECT_EQ(Run("info " + Path("m.bin") + " -o /dev/full").code, 6);
}

}  // namespace
}  // namespace dla::machine
