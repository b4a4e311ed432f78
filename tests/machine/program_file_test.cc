// The container: round trip, same bytes, and every kind of damage refused.
#include "machine/program_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "machine/sections.h"
#include "support/crc32c.h"
#include "support/file.h"
#include "tests/machine/sample_program.h"

namespace dla::machine {
namespace {

std::string TempPath(const std::string& name) {
  return Concat(testing::TempDir(), "/dla_", getpid(), "_", name);
}

std::vector<uint8_t> SampleFile() {
  const std::string path = TempPath("sample.bin");
  const Program program = sample::MakeProgram();
  EXPECT_TRUE(WriteProgram(program, path).ok());
  auto bytes = ReadFile(path);
  EXPECT_TRUE(bytes.ok());
  return *bytes;
}

void ExpectEqual(const Program& a, const Program& b) {
  EXPECT_EQ(a.producer, b.producer);
  EXPECT_EQ(a.command_line, b.command_line);
  EXPECT_EQ(a.target, b.target);
  EXPECT_EQ(a.regions, b.regions);
  EXPECT_EQ(a.inputs, b.inputs);
  EXPECT_EQ(a.outputs, b.outputs);
  EXPECT_EQ(a.groups, b.groups);
  EXPECT_EQ(a.predicted, b.predicted);
  EXPECT_EQ(a.buffers, b.buffers);
  EXPECT_EQ(a.values, b.values);
  EXPECT_TRUE(std::ranges::equal(a.constants.bytes, b.constants.bytes));
}

void Put32(std::vector<uint8_t>* bytes, size_t at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) (*bytes)[at + i] = static_cast<uint8_t>(value >> (8 * i));
}
uint32_t Get32(const std::vector<uint8_t>& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(bytes[at + i]) << (8 * i);
  return value;
}
// Makes the CRCs of section `index` and of the header right again.
void FixCrcs(std::vector<uint8_t>* bytes, size_t index) {
  const size_t row = 32 + 32 * index;
  const size_t offset = Get32(*bytes, row + 8), size = Get32(*bytes, row + 16);
  Put32(bytes, row + 24, Crc32c({bytes->data() + offset, size}));
  Put32(bytes, 12, 0);
  Put32(bytes, 12, Crc32c({bytes->data(), 32 + 32 * size_t{kSectionCount}}));
}
std::string Refusal(const std::vector<uint8_t>& bytes) {
  const auto program = ParseProgram(bytes, nullptr, "m.bin");
  if (program.ok()) return "";
  EXPECT_EQ(program.status().code(), ErrorCode::kMalformed);
  return program.status().message();
}

TEST(ProgramFile, ReadsBackWhatWasWritten) {
  const std::string path = TempPath("round.bin");
  Program program = sample::MakeProgram();
  sample::AddGather(&program);
  sample::AddDiagonal(&program);
  program.groups[0].dims[2].repeated = 3;
  ASSERT_TRUE(WriteProgram(program, path).ok());
  const auto read = ReadProgram(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ExpectEqual(*read, program);
  // The constants are a view of the map, 64-byte aligned.
  EXPECT_EQ(reinterpret_cast<uintptr_t>(read->constants.bytes.data()) % 64, 0u);
}

TEST(ProgramFile, SameProgramGivesTheSameBytes) {
  const std::vector<uint8_t> once = SampleFile();
  EXPECT_EQ(once, SampleFile());
  const auto read = ParseProgram(once, nullptr, "m.bin");
  ASSERT_TRUE(read.ok());
  const std::string path = TempPath("again.bin");
  ASSERT_TRUE(WriteProgram(*read, path).ok());
  EXPECT_EQ(*ReadFile(path), once);
}

TEST(ProgramFile, ConstantsAreAskedForInAddressOrder) {
  Program program = sample::MakeProgram();
  std::swap(program.regions[1], program.regions[2]);
  std::vector<size_t> asked;
  const auto constant = [&](size_t r, const ByteSink& append) {
    asked.push_back(r);
    return append(std::vector<uint8_t>(static_cast<size_t>(program.regions[r].bytes), 7));
  };
  ASSERT_TRUE(WriteProgram(program, TempPath("order.bin"), constant).ok());
  EXPECT_EQ(asked, (std::vector<size_t>{2, 1}));
}

TEST(ProgramFile, ConstantsMayComeInPieces) {
  const Program program = sample::MakeProgram();
  const std::string path = TempPath("pieces.bin");
  const auto constant = [&](size_t r, const ByteSink& append) -> Status {
    const Region& region = program.regions[r];
    for (int64_t i = 0; i < region.bytes; ++i) {
      DLA_RETURN_IF_ERROR(
          append(program.constants.bytes.subspan(static_cast<size_t>(region.address + i), 1)));
    }
    return {};
  };
  ASSERT_TRUE(WriteProgram(program, path, constant).ok());
  EXPECT_EQ(*ReadFile(path), SampleFile());
}

TEST(ProgramFile, AFailureLeavesTheOldFile) {
  const std::string path = TempPath("old.bin");
  ASSERT_TRUE(WriteTextFile(path, "old").ok());
  const Status status = WriteProgram(
      sample::MakeProgram(), path, [](size_t, const ByteSink&) { return Malformed("no weights"); });
  EXPECT_EQ(status.message(), "no weights");
  EXPECT_EQ(*ReadTextFile(path), "old");
}

TEST(ProgramFile, TruncationAtEveryByteIsRefused) {
  const std::vector<uint8_t> bytes = SampleFile();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    ASSERT_NE(Refusal(cut), "") << size;
  }
  std::vector<uint8_t> longer = bytes;
  longer.push_back(0);
  EXPECT_NE(Refusal(longer), "");
}

TEST(ProgramFile, EveryChangedByteIsRefused) {
  const std::vector<uint8_t> bytes = SampleFile();
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<uint8_t> damaged = bytes;
    damaged[i] ^= static_cast<uint8_t>(1u << (i % 8));
    ASSERT_NE(Refusal(damaged), "") << i;
  }
}

// Behind right CRCs stands only the decoder: it must refuse or read, never overrun (ASan) or
// allocate without bound, and what it reads must print to the same bytes.
TEST(ProgramFile, DamageBehindRightCrcsIsRefusedOrReadsExactly) {
  const uint64_t seed = 20240611;
  RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::vector<uint8_t> bytes = SampleFile();
  int accepted = 0;
  for (int round = 0; round < 5000; ++round) {
    std::vector<uint8_t> damaged = bytes;
    const size_t section = random() % 7;
    const size_t offset = Get32(bytes, 32 + 32 * section + 8);
    const size_t size = Get32(bytes, 32 + 32 * section + 16);
    const size_t at = offset + random() % size;
    damaged[at] = random() % 2 == 0 ? static_cast<uint8_t>(random()) : uint8_t{255};
    FixCrcs(&damaged, section);
    const auto program = ParseProgram(damaged, nullptr, "m.bin");
    if (!program.ok()) continue;
    ++accepted;
    if (round % 16 != 0) continue;
    bool writable = true;
    for (const Region& region : program->regions) {
      writable = writable && (region.kind != RegionKind::kConstant ||
                              (region.address == (region.name == "w" ? 0 : 3456) &&
                               region.bytes == (region.name == "w" ? 3456 : 96)));
    }
    if (!writable || section == 2) continue;
    const std::string path = TempPath("damaged.bin");
    ASSERT_TRUE(WriteProgram(*program, path).ok()) << "seed " << seed << " round " << round;
    EXPECT_EQ(*ReadFile(path), damaged) << "seed " << seed << " round " << round;
  }
  EXPECT_GT(accepted, 250);
}

TEST(ProgramFile, MessagesNameTheSectionAndTheReason) {
  const std::vector<uint8_t> bytes = SampleFile();
  EXPECT_EQ(Refusal({'D', 'L', 'A', '2'}),
            "m.bin: is no compiled program (it does not begin with 'DLA1')");
  std::vector<uint8_t> b = bytes;
  b[4] = 8;
  EXPECT_EQ(
      Refusal(b),
      "m.bin: has format version 8.0; this version reads 7.0 to 7.0; compile the model again");
  b = bytes;
  b[6] = 1;
  EXPECT_EQ(
      Refusal(b),
      "m.bin: has format version 7.1; this version reads 7.0 to 7.0; compile the model again");
  b = bytes;
  b[40] ^= 1;
  EXPECT_EQ(Refusal(b), "m.bin: the header's CRC is wrong: the file is damaged");
  b = bytes;
  b.back() ^= 1;
  EXPECT_EQ(Refusal(b), "m.bin: section 'constants': its CRC is wrong: the file is damaged");
  b = bytes;
  const size_t groups = Get32(b, 32 + 32 * 4 + 8);
  Put32(&b, groups, 0xffffffff);
  FixCrcs(&b, 4);
  EXPECT_EQ(Refusal(b), Concat("m.bin: section 'groups': offset ", groups + 4,
                               ": groups: 4294967295 of them; at most 1048576 are allowed"));
  b = bytes;
  Put32(&b, groups, 100000);
  FixCrcs(&b, 4);
  EXPECT_NE(Refusal(b).find("groups: 100000 of them, of at least 36 bytes each;"),
            std::string::npos);
}

// Adds an empty section 77 behind all others, which move on to make room for its row.
std::vector<uint8_t> WithExtraSection(uint32_t flags) {
  std::vector<uint8_t> out = SampleFile();
  const size_t row = 32 + 32 * size_t{kSectionCount};
  out.insert(out.begin() + static_cast<ptrdiff_t>(row), 64, 0);
  for (size_t section = 0; section < kSectionCount; ++section) {
    const size_t at = 32 + 32 * section + 8;
    Put32(&out, at, Get32(out, at) + 64);
  }
  while (out.size() % 64 != 0) out.push_back(0);
  Put32(&out, row, 77);
  Put32(&out, row + 4, flags);
  Put32(&out, row + 8, static_cast<uint32_t>(out.size()));
  Put32(&out, row + 24, Crc32c({}));
  Put32(&out, 8, kSectionCount + 1);
  Put32(&out, 16, static_cast<uint32_t>(out.size()));
  Put32(&out, 12, 0);
  Put32(&out, 12, Crc32c({out.data(), row + 32}));
  return out;
}

TEST(ProgramFile, UnknownSectionsAreSkippedUnlessRequired) {
  EXPECT_EQ(Refusal(WithExtraSection(0)), "");
  EXPECT_EQ(Refusal(WithExtraSection(1)),
            "m.bin: section 77: is required and unknown to this version");
}

// The layout is pinned: a change of these numbers is a change of the format.
TEST(ProgramFile, LayoutIsPinned) {
  const std::vector<uint8_t> bytes = SampleFile();
  EXPECT_EQ(std::string(bytes.begin(), bytes.begin() + 4), "DLA1");
  EXPECT_EQ(Get32(bytes, 8), 9u);
  EXPECT_EQ(Get32(bytes, 32 + 8), 320u);  // the first section
  const size_t regions = Get32(bytes, 32 + 32 * 2 + 8);
  const std::vector<uint8_t> expected = {6, 0, 0, 0, 1, 0, 0, 0, 'x', 0, 0, 0, 0,
                                         0, 0, 0, 0, 0, 0, 4, 0, 0,   0, 0, 0, 0};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                         bytes.begin() + static_cast<ptrdiff_t>(regions)));
}

}  // namespace
}  // namespace dla::machine
