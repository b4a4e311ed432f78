// Program -> container. The small sections are made in memory; constants are streamed, and their
// CRC is put into the section table at the end.
#include <algorithm>

#include "machine/archive.h"
#include "machine/program_file.h"
#include "machine/program_layout.h"
#include "machine/sections.h"
#include "machine/target_file.h"
#include "support/checked.h"
#include "support/crc32c.h"
#include "support/file.h"

namespace dla::machine {
namespace {

struct Section {
  SectionId id = SectionId::kProducer;
  int64_t offset = 0;
  int64_t bytes = 0;
  uint32_t crc = 0;
};

std::vector<uint8_t> EncodeSection(const Program& program, SectionId id) {
  EncodingWriter w;
  using W = EncodingWriter;
  switch (id) {
    case SectionId::kProducer:
      w.Text("producer", program.producer);
      w.Text("command line", program.command_line);
      break;
    case SectionId::kTarget:
      w.Text("target", TargetJson(program.target));
      break;
    case SectionId::kRegions:
      w.List("regions", program.regions, 0, 0, [](W& a, auto& r) { DescribeRegion(a, r); });
      break;
    case SectionId::kPorts:
      w.List("inputs", program.inputs, 0, 0, [](W& a, auto& p) { DescribePort(a, p); });
      w.List("outputs", program.outputs, 0, 0, [](W& a, auto& p) { DescribePort(a, p); });
      break;
    case SectionId::kGroups:
      w.List("groups", program.groups, 0, 0, [](W& a, auto& g) { DescribeGroup(a, g); });
      break;
    case SectionId::kPredicted:
      w.List("counters", program.predicted, 0, 0, [](W& a, auto& c) { DescribeCounters(a, c); });
      w.List("steady", program.steady, 0, 0, [](W& a, auto& c) { DescribeCounters(a, c); });
      break;
    case SectionId::kBuffers:
      w.List("buffers", program.buffers, 0, 0, [](W& a, auto& b) { DescribeBuffer(a, b); });
      break;
    case SectionId::kValues:
      w.List("values", program.values, 0, 0, [](W& a, auto& v) { DescribeValue(a, v); });
      break;
    case SectionId::kConstants:
      break;  // streamed
  }
  return w.bytes();
}

std::vector<uint8_t> EncodeHeader(const std::vector<Section>& sections, int64_t file_bytes) {
  const auto encode = [&](uint32_t crc) {
    EncodingWriter w;
    for (const char letter : {'D', 'L', 'A', '1'}) w.Int("magic", letter);
    w.Int("major", kMajorVersion);
    w.Int("minor", kMinorVersion);
    w.Int("sections", static_cast<uint32_t>(sections.size()));
    w.Int("crc", crc);
    w.Int("bytes", file_bytes);
    w.Int("zero", int64_t{0});
    for (const Section& section : sections) {
      w.Int("id", static_cast<uint32_t>(section.id));
      w.Int("flags", kRequiredFlag);
      w.Int("offset", section.offset);
      w.Int("bytes", section.bytes);
      w.Int("crc", section.crc);
      w.Int("zero", uint32_t{0});
    }
    return w.bytes();
  };
  return encode(Crc32c(encode(0)));
}

Status PadTo(AtomicFile* file, int64_t offset) {
  static constexpr std::array<uint8_t, 4096> kZeros{};
  while (file->size_bytes() < offset) {
    const int64_t left = offset - file->size_bytes();
    const auto piece = std::min<int64_t>(left, static_cast<int64_t>(kZeros.size()));
    DLA_RETURN_IF_ERROR(file->Write({kZeros.data(), static_cast<size_t>(piece)}));
  }
  return {};
}

// Writes bytes and zeros of the constant space and keeps its CRC.
class ConstantStream {
 public:
  ConstantStream(AtomicFile* file, Section* section) : file_(file), section_(section) {}

  Status Append(std::span<const uint8_t> data) {
    section_->crc = Crc32c(data, section_->crc);
    section_->bytes += static_cast<int64_t>(data.size());
    return file_->Write(data);
  }
  Status FillTo(int64_t address) {
    static constexpr std::array<uint8_t, 4096> kZeros{};
    while (section_->bytes < address) {
      const int64_t left = address - section_->bytes;
      const auto piece = std::min<int64_t>(left, static_cast<int64_t>(kZeros.size()));
      DLA_RETURN_IF_ERROR(Append({kZeros.data(), static_cast<size_t>(piece)}));
    }
    return {};
  }

 private:
  AtomicFile* file_;
  Section* section_;
};

Status WriteConstants(const Program& program, const ConstantBytes& constant_bytes, AtomicFile* file,
                      Section* section) {
  std::vector<size_t> order;
  for (size_t r = 0; r < program.regions.size(); ++r) {
    if (program.regions[r].kind == RegionKind::kConstant) order.push_back(r);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return program.regions[a].address < program.regions[b].address;
  });
  ConstantStream stream(file, section);
  for (const size_t r : order) {
    const Region& region = program.regions[r];
    DLA_CHECK(region.address >= section->bytes && region.address % kConstantAlignBytes == 0,
              "constant '", region.name, "' overlaps or is not aligned");
    DLA_RETURN_IF_ERROR(stream.FillTo(region.address));
    DLA_RETURN_IF_ERROR(
        constant_bytes(r, [&](std::span<const uint8_t> bytes) { return stream.Append(bytes); }));
    DLA_CHECK(section->bytes == region.address + region.bytes, "constant '", region.name,
              "': ", section->bytes - region.address, " bytes instead of ", region.bytes);
  }
  return {};
}

}  // namespace

int64_t ConstantSpaceBytes(const Program& program) {
  int64_t bytes = 0;
  for (const Region& region : program.regions) {
    if (region.kind == RegionKind::kConstant) {
      bytes = std::max(bytes, region.address + region.bytes);
    }
  }
  return bytes;
}

Status WriteProgram(const Program& program, const std::string& path,
                    const ConstantBytes& constant_bytes) {
  DLA_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  std::vector<Section> sections;
  for (const SectionRow& row : kSections) sections.push_back({.id = row.id});
  DLA_RETURN_IF_ERROR(file->Write(EncodeHeader(sections, 0)));
  for (Section& section : sections) {
    section.offset = RoundUp(file->size_bytes(), kSectionAlignBytes);
    DLA_RETURN_IF_ERROR(PadTo(file.get(), section.offset));
    if (section.id == SectionId::kConstants) {
      DLA_RETURN_IF_ERROR(WriteConstants(program, constant_bytes, file.get(), &section));
      continue;
    }
    const std::vector<uint8_t> bytes = EncodeSection(program, section.id);
    section.bytes = static_cast<int64_t>(bytes.size());
    section.crc = Crc32c(bytes);
    DLA_RETURN_IF_ERROR(file->Write(bytes));
  }
  DLA_RETURN_IF_ERROR(file->WriteAt(0, EncodeHeader(sections, file->size_bytes())));
  return file->Commit();
}

Status WriteProgram(const Program& program, const std::string& path) {
  return WriteProgram(program, path, [&](size_t r, const ByteSink& append) {
    const Region& region = program.regions[r];
    const auto all = program.constants.bytes;
    DLA_CHECK(region.address <= static_cast<int64_t>(all.size()) - region.bytes, region.name);
    return append(
        all.subspan(static_cast<size_t>(region.address), static_cast<size_t>(region.bytes)));
  });
}

}  // namespace dla::machine
