// Container -> program. Nothing here trusts the file: offsets and counts are compared with what
// remains before they are used.
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

using Bytes = std::span<const uint8_t>;

struct Section {
  uint32_t id = 0;
  uint32_t flags = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
  uint32_t crc = 0;
};

// The CRC of header and table with the CRC's own field zero.
uint32_t HeaderCrc(Bytes header) {
  std::vector<uint8_t> copy(header.begin(), header.end());
  std::fill_n(copy.begin() + 12, 4, uint8_t{0});
  return Crc32c(copy);
}

Status CheckVersion(EncodingReader* reader) {
  uint16_t major = 0, minor = 0;
  reader->Int("major version", major);
  reader->Int("minor version", minor);
  if (major != kMajorVersion || minor > kMinorVersion) {
    return Malformed("has format version ", major, ".", minor, "; this version reads ",
                     kMajorVersion, ".0 to ", kMajorVersion, ".", kMinorVersion,
                     "; compile the model again");
  }
  return {};
}

Status CheckMagic(Bytes file) {
  static constexpr std::string_view kMagic = "DLA1";
  if (file.size() < kMagic.size() || !std::equal(kMagic.begin(), kMagic.end(), file.begin())) {
    return Malformed("is no compiled program (it does not begin with 'DLA1')");
  }
  if (static_cast<int64_t>(file.size()) < kHeaderBytes) {
    return Malformed("is cut off in its header (", file.size(), " of ", kHeaderBytes, " bytes)");
  }
  return {};
}

void ReadRow(EncodingReader* reader, Section* section) {
  uint32_t zero = 0;
  reader->Int("section id", section->id);
  reader->Int("section flags", section->flags);
  reader->Int("section offset", section->offset);
  reader->Int("section bytes", section->bytes);
  reader->Int("section CRC", section->crc);
  reader->Int("section zero", zero);
  if (zero != 0 || section->flags > kRequiredFlag) {
    reader->Fail("section table", "a reserved field is not zero");
  }
}

Result<std::vector<Section>> ReadTable(Bytes file) {
  DLA_RETURN_IF_ERROR(CheckMagic(file));
  EncodingReader reader(file.subspan(4), 4);
  DLA_RETURN_IF_ERROR(CheckVersion(&reader));
  uint32_t count = 0, crc = 0;
  int64_t file_bytes = 0, zero = 0;
  reader.Int("number of sections", count);
  reader.Int("header CRC", crc);
  reader.Int("bytes of the file", file_bytes);
  reader.Int("zero", zero);
  if (file_bytes != static_cast<int64_t>(file.size())) {
    return Malformed("has ", file.size(), " bytes; its header says ", file_bytes,
                     " (cut off or damaged)");
  }
  if (count > kMaxSections || count > reader.remaining() / kSectionRowBytes) {
    return Malformed("offset 8: number of sections: ", count, " do not fit into the file");
  }
  const size_t header_bytes = static_cast<size_t>(kHeaderBytes + count * kSectionRowBytes);
  if (HeaderCrc(file.first(header_bytes)) != crc || zero != 0) {
    return Malformed("the header's CRC is wrong: the file is damaged");
  }
  std::vector<Section> sections(count);
  for (Section& section : sections) ReadRow(&reader, &section);
  DLA_RETURN_IF_ERROR(reader.status());
  return sections;
}

std::string SectionName(uint32_t id) {
  for (const SectionRow& row : kSections) {
    if (static_cast<uint32_t>(row.id) == id) return std::string(row.name);
  }
  return "";
}

// Each section lies where it must, is whole, and is known or optional.
Status CheckSections(Bytes file, const std::vector<Section>& sections) {
  const auto file_bytes = static_cast<int64_t>(file.size());
  int64_t end = kHeaderBytes + static_cast<int64_t>(sections.size()) * kSectionRowBytes;
  uint32_t last_id = 0;
  for (const Section& section : sections) {
    const std::string name = SectionName(section.id);
    const std::string where =
        name.empty() ? Concat("section ", section.id) : "section '" + name + "'";
    if (section.id <= last_id) return Malformed(where, ": is out of order or there twice");
    last_id = section.id;
    if (section.offset != RoundUp(end, kSectionAlignBytes) || section.offset > file_bytes ||
        section.bytes < 0 || section.bytes > file_bytes - section.offset) {
      return Malformed(where, ": offset ", section.offset, " and ", section.bytes,
                       " bytes do not fit into the file");
    }
    const auto gap =
        file.subspan(static_cast<size_t>(end), static_cast<size_t>(section.offset - end));
    if (std::any_of(gap.begin(), gap.end(), [](uint8_t byte) { return byte != 0; })) {
      return Malformed(where, ": the bytes before it are not zero");
    }
    end = section.offset + section.bytes;
    if (name.empty() && (section.flags & kRequiredFlag) != 0) {
      return Malformed(where, ": is required and unknown to this version");
    }
    if (Crc32c(file.subspan(static_cast<size_t>(section.offset),
                            static_cast<size_t>(section.bytes))) != section.crc) {
      return Malformed(where, ": its CRC is wrong: the file is damaged");
    }
  }
  if (end != file_bytes) return Malformed(file_bytes - end, " bytes too many at the end");
  return {};
}

Status ReadTarget(EncodingReader* reader, Program* program) {
  std::string text;
  reader->Text("target", text);
  if (!reader->ok()) return {};
  DLA_ASSIGN_OR_RETURN(program->target, ParseTarget(text, "target", [](const std::string& name) {
                         return Result<Target>(Malformed("'", name, "': not in a program"));
                       }));
  if (TargetJson(program->target) != text) return Malformed("is not in its printed form");
  return {};
}

Status DecodeSection(SectionId id, EncodingReader* reader, Program* program) {
  using R = EncodingReader;
  R& r = *reader;
  switch (id) {
    case SectionId::kProducer:
      r.Text("producer", program->producer);
      r.Text("command line", program->command_line);
      break;
    case SectionId::kTarget:
      DLA_RETURN_IF_ERROR(ReadTarget(reader, program));
      break;
    case SectionId::kRegions:
      r.List("regions", program->regions, 21, kMaxRegions,
             [](R& a, auto& x) { DescribeRegion(a, x); });
      break;
    case SectionId::kPorts:
      r.List("inputs", program->inputs, 13, kMaxPorts, [](R& a, auto& x) { DescribePort(a, x); });
      r.List("outputs", program->outputs, 13, kMaxPorts, [](R& a, auto& x) { DescribePort(a, x); });
      break;
    case SectionId::kGroups:
      r.List("groups", program->groups, 36, kMaxGroups, [](R& a, auto& x) { DescribeGroup(a, x); });
      break;
    case SectionId::kPredicted:
      r.List("counters", program->predicted, 240, kMaxGroups,
             [](R& a, auto& x) { DescribeCounters(a, x); });
      r.List("steady", program->steady, 240, kMaxGroups,
             [](R& a, auto& x) { DescribeCounters(a, x); });
      break;
    case SectionId::kBuffers:
      r.List("buffers", program->buffers, 29, kMaxBuffers,
             [](R& a, auto& x) { DescribeBuffer(a, x); });
      break;
    case SectionId::kValues:
      r.List("values", program->values, 34, kMaxValues, [](R& a, auto& x) { DescribeValue(a, x); });
      break;
    case SectionId::kConstants:
      break;  // stays where it is
  }
  if (id != SectionId::kConstants) r.ExpectEnd("section");
  return r.status();
}

Result<Program> Parse(Bytes file, std::shared_ptr<const void> owner) {
  DLA_ASSIGN_OR_RETURN(const std::vector<Section> sections, ReadTable(file));
  DLA_RETURN_IF_ERROR(CheckSections(file, sections));
  Program program;
  for (const SectionRow& row : kSections) {
    const auto it = std::find_if(sections.begin(), sections.end(), [&](const Section& section) {
      return section.id == static_cast<uint32_t>(row.id);
    });
    if (it == sections.end()) return Malformed("section '", row.name, "': is missing");
    const Bytes bytes =
        file.subspan(static_cast<size_t>(it->offset), static_cast<size_t>(it->bytes));
    EncodingReader reader(bytes, it->offset);
    const Status status = DecodeSection(row.id, &reader, &program);
    if (!status.ok()) return status.At("section '" + std::string(row.name) + "'");
    if (row.id == SectionId::kConstants) program.constants = {.bytes = bytes, .owner = owner};
  }
  return program;
}

}  // namespace

Result<Program> ParseProgram(std::span<const uint8_t> bytes, std::shared_ptr<const void> owner,
                             const std::string& name) {
  Result<Program> program = Parse(bytes, std::move(owner));
  if (!program.ok()) return program.status().At(name);
  return program;
}

Result<Program> ReadProgram(const std::string& path) {
  DLA_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  return ParseProgram(file->bytes(), file, path);
}

}  // namespace dla::machine
