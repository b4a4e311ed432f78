// Files: reading, mapping, and that a failed write leaves what was there.
#include "support/file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace dla {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  size_t Count() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& item : std::filesystem::directory_iterator(folder_)) ++count;
    return count;
  }
  std::string folder_ = Concat(testing::TempDir(), "/dla_file_test_", getpid());
};

TEST_F(FileTest, WritesReadsAndMaps) {
  std::vector<uint8_t> data(3 << 20);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 31 >> 3);
  ASSERT_TRUE(WriteFile(Path("a"), data).ok());
  EXPECT_EQ(*ReadFile(Path("a")), data);
  const auto map = MappedFile::Open(Path("a"));
  ASSERT_TRUE(map.ok());
  EXPECT_TRUE(std::equal(data.begin(), data.end(), (*map)->bytes().begin()));
  EXPECT_EQ(Count(), 1u);
  EXPECT_EQ(ReadFile(Path("a"), 100).status().code(), ErrorCode::kMalformed);
}

TEST_F(FileTest, EmptyFilesAreFiles) {
  ASSERT_TRUE(WriteTextFile(Path("e"), "").ok());
  EXPECT_EQ(*ReadTextFile(Path("e")), "");
  EXPECT_TRUE((*MappedFile::Open(Path("e")))->bytes().empty());
}

TEST_F(FileTest, StreamsWithCorrections) {
  {
    auto file = AtomicFile::Create(Path("s"));
    ASSERT_TRUE(file.ok());
    const std::vector<uint8_t> piece(700000, 'x');
    for (int i = 0; i < 4; ++i) ASSERT_TRUE((*file)->Write(piece).ok());
    const std::vector<uint8_t> head = {'h', 'i'};
    ASSERT_TRUE((*file)->WriteAt(0, head).ok());
    EXPECT_EQ((*file)->size_bytes(), 2800000);
    EXPECT_FALSE(std::filesystem::exists(Path("s")));  // no name before Commit
    ASSERT_TRUE((*file)->Commit().ok());
  }
  const auto text = ReadTextFile(Path("s"));
  EXPECT_EQ(text->size(), 2800000u);
  EXPECT_EQ(text->substr(0, 4), "hixx");
}

TEST_F(FileTest, AnAbandonedWriteLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(WriteTextFile(Path("old"), "old").ok());
  {
    auto file = AtomicFile::Create(Path("old"));
    ASSERT_TRUE((*file)->Write(std::vector<uint8_t>(10, 'n')).ok());
  }
  EXPECT_EQ(Count(), 1u);
  EXPECT_EQ(*ReadTextFile(Path("old")), "old");
}

// A process that dies while it writes, at any byte, leaves nothing behind.
TEST_F(FileTest, AKilledWriterLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(WriteTextFile(Path("old"), "old").ok());
  for (const size_t bytes : {size_t{0}, size_t{10}, size_t{5} << 20}) {
    for (const int signal : {SIGKILL, SIGTERM, SIGINT}) {
      const pid_t child = fork();
      if (child == 0) {
        auto file = AtomicFile::Create(Path("old"));
        if (!file.ok() || !(*file)->Write(std::vector<uint8_t>(bytes, 'n')).ok()) _exit(1);
        kill(getpid(), signal);
        _exit(2);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
      EXPECT_EQ(Count(), 1u);
      EXPECT_EQ(*ReadTextFile(Path("old")), "old");
    }
  }
}

// A disk that takes some bytes and then no more.
TEST_F(FileTest, AFullDiskLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(WriteTextFile(Path("old"), "old").ok());
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);  // the write fails instead
    const rlimit limit = {1 << 20, 1 << 20};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(1);
    const Status status = WriteFile(Path("old"), std::vector<uint8_t>(3 << 20, 'n'));
    _exit(status.code() == ErrorCode::kIo && status.message().starts_with(Path("old")) ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(Count(), 1u);
  EXPECT_EQ(*ReadTextFile(Path("old")), "old");
}

TEST_F(FileTest, KeepsModeAndFollowsLinks) {
  ASSERT_TRUE(WriteTextFile(Path("real"), "1").ok());
  chmod(Path("real").c_str(), 0600);
  std::filesystem::create_symlink(Path("real"), Path("link"));
  ASSERT_TRUE(WriteTextFile(Path("link"), "2").ok());
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  EXPECT_EQ(*ReadTextFile(Path("real")), "2");
  struct stat info {};
  stat(Path("real").c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(FileTest, ErrorsNameThePath) {
  EXPECT_EQ(ReadFile(Path("no")).status().message(),
            Path("no") + ": cannot open: No such file or directory");
  EXPECT_EQ(ReadFile(Path("no")).status().code(), ErrorCode::kIo);
  EXPECT_EQ(ReadFile(folder_).status().message(), folder_ + ": is a folder; name a file");
  EXPECT_EQ(WriteTextFile(folder_, "x").message(), folder_ + ": is a folder; name a file");
  EXPECT_EQ(WriteTextFile(Path("no/x"), "x").message(),
            Path("no/x") + ": cannot write: No such file or directory");
  EXPECT_TRUE(WriteTextFile("/dev/null", "x").ok());
  EXPECT_EQ(WriteTextFile("/dev/full", "x").code(), ErrorCode::kIo);
}

}  // namespace
}  // namespace dla
