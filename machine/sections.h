// The sections of a program file: their numbers, names and order.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace dla::machine {

// The version of the file's format.
inline constexpr uint16_t kMajorVersion = 7;
inline constexpr uint16_t kMinorVersion = 0;

enum class SectionId : uint32_t {
  kProducer = 1,   // producer, command line
  kTarget = 2,     // the target as JSON
  kRegions = 3,    // DRAM regions
  kPorts = 4,      // inputs, outputs
  kGroups = 5,     // dimensions, operands, micro-programs and code of each group
  kPredicted = 6,  // counters by group, of the first run and of later ones
  kBuffers = 7,    // lifetimes of on-chip buffers
  kValues = 8,     // what became of the model's values
  kConstants = 9,  // the constant space, as it is
};
inline constexpr int kSectionCount = 9;

struct SectionRow {
  SectionId id;
  std::string_view name;
};
inline constexpr std::array<SectionRow, kSectionCount> kSections = {{
    {SectionId::kProducer, "producer"},
    {SectionId::kTarget, "target"},
    {SectionId::kRegions, "regions"},
    {SectionId::kPorts, "ports"},
    {SectionId::kGroups, "groups"},
    {SectionId::kPredicted, "predicted"},
    {SectionId::kBuffers, "buffers"},
    {SectionId::kValues, "values"},
    {SectionId::kConstants, "constants"},
}};

inline constexpr int64_t kHeaderBytes = 32;
inline constexpr int64_t kSectionRowBytes = 32;
inline constexpr int64_t kSectionAlignBytes = 64;
inline constexpr uint32_t kRequiredFlag = 1;
inline constexpr uint32_t kMaxSections = 64;

}  // namespace dla::machine
