// Regions, ports, buffers and the constants section.
#include <algorithm>
#include <set>

#include "machine/program_file.h"
#include "machine/verifier.h"
#include "machine/verify_parts.h"
#include "support/checked.h"
#include "support/tensor.h"

namespace dla::machine {
namespace {

std::string RegionText(const Program& program, size_t region) {
  return Concat("region ", region, " '", program.regions[region].name, "'");
}

bool IsRegionSane(const Program& program, size_t index, int64_t constant_bytes, Faults* faults) {
  const Region& region = program.regions[index];
  const std::string where = RegionText(program, index);
  if (region.address < 0 || region.bytes < 0 || region.bytes > kMaxExtent ||
      region.address > kMaxExtent - region.bytes) {
    faults->Add(where, "address ", region.address, " with ", region.bytes,
                " bytes is not within 0 to ", kMaxExtent);
    return false;
  }
  if (region.kind != RegionKind::kConstant) return true;
  if (region.bytes > constant_bytes || region.address > constant_bytes - region.bytes) {
    faults->Add(where, "ends at ", region.address + region.bytes, ", the constants at ",
                constant_bytes);
  }
  if (region.address % kConstantAlignBytes != 0) {
    faults->Add(where, "address ", region.address, " is not a multiple of ", kConstantAlignBytes);
  }
  return true;
}

// Regions of a kind do not overlap, except temporaries.
void VerifyOverlaps(const Program& program, Faults* faults) {
  std::vector<size_t> order;
  for (size_t r = 0; r < program.regions.size(); ++r) {
    if (program.regions[r].kind != RegionKind::kTemporary && program.regions[r].bytes > 0) {
      order.push_back(r);
    }
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Region& x = program.regions[a];
    const Region& y = program.regions[b];
    return std::tuple(x.kind, x.address, a) < std::tuple(y.kind, y.address, b);
  });
  for (size_t i = 1; i < order.size(); ++i) {
    const Region& before = program.regions[order[i - 1]];
    const Region& region = program.regions[order[i]];
    if (before.kind == region.kind && region.address < before.address + before.bytes) {
      faults->Add(RegionText(program, order[i]), "overlaps ", RegionText(program, order[i - 1]));
    }
  }
}

std::optional<int64_t> PortBytes(const Port& port) {
  int64_t elements = 1;
  for (const int64_t extent : port.shape) {
    const auto product = extent < 0 ? std::nullopt : CheckedMul(elements, extent);
    if (!product || *product > kMaxExtent) return std::nullopt;
    elements = *product;
  }
  return TypeBytes(port.type, elements);
}

void VerifyPorts(const Program& program, const std::vector<Port>& ports, RegionKind kind,
                 const char* what, Faults* faults) {
  std::set<std::string> names;
  for (const Port& port : ports) {
    const std::string where = Concat(what, " '", port.name, "'");
    if (!names.insert(port.name).second) faults->Add(where, "is there twice");
    const auto bytes = PortBytes(port);
    if (!bytes) {
      faults->Add(where, "its shape is impossible or too large");
    } else if (port.region >= program.regions.size()) {
      faults->Add(where, "there is no region ", port.region);
    } else if (program.regions[port.region].kind != kind) {
      faults->Add(where, RegionText(program, port.region), " is not of kind ", what);
    } else if (*bytes > program.regions[port.region].bytes) {
      faults->Add(where, "has ", *bytes, " bytes, ", RegionText(program, port.region), " has ",
                  program.regions[port.region].bytes);
    }
  }
}

void VerifyBuffers(const Program& program, Faults* faults) {
  const auto groups = static_cast<int64_t>(program.groups.size());
  for (size_t b = 0; b < program.buffers.size() && !faults->full(); ++b) {
    const BufferUse& buffer = program.buffers[b];
    const std::string where = Concat("buffer ", b, " '", buffer.name, "'");
    if (buffer.memory >= program.target.memories.size()) {
      faults->Add(where, "there is no memory ", static_cast<int>(buffer.memory));
      continue;
    }
    const Memory& memory = program.target.memories[buffer.memory];
    if (buffer.address < 0 || buffer.bytes < 0 || buffer.bytes > memory.bytes ||
        buffer.address > memory.bytes - buffer.bytes) {
      faults->Add(where, "address ", buffer.address, " with ", buffer.bytes,
                  " bytes is not within memory '", memory.name, "' of ", memory.bytes, " bytes");
    }
    if (buffer.first_group < 0 || buffer.first_group > buffer.end_group ||
        buffer.end_group > groups) {
      faults->Add(where, "lives in groups ", buffer.first_group, " to ", buffer.end_group,
                  ", there are ", groups);
    }
  }
}

// The bytes that a strided value takes from its base on; nothing if they are impossible.
std::optional<int64_t> SpanBytes(const ValueDesc& value) {
  std::optional<int64_t> last = 0;
  if (value.strides.size() != value.shape.size()) return std::nullopt;
  for (size_t a = 0; a < value.shape.size(); ++a) {
    if (value.shape[a] < 0 || value.strides[a] < 0) return std::nullopt;
    if (value.shape[a] == 0) return 0;
    const auto step = CheckedMul(value.shape[a] - 1, value.strides[a]);
    last = step && last ? CheckedAdd(*last, *step) : std::nullopt;
  }
  if (!last || *last >= kMaxExtent) return std::nullopt;
  return TypeBytes(value.type, *last + 1);
}

void VerifyValue(const Program& program, const ValueDesc& value, Faults* faults) {
  const std::string where = Concat("value '", value.name, "'");
  if (value.group < -1 || value.group >= static_cast<int64_t>(program.groups.size())) {
    faults->Add(where, "there is no group ", value.group);
  }
  if (value.place == ValuePlace::kNowhere) return;
  const bool on_chip = value.place == ValuePlace::kMemory;
  if (value.space >= (on_chip ? program.target.memories.size() : program.regions.size())) {
    faults->Add(where, "there is no ", on_chip ? "memory " : "region ", value.space);
    return;
  }
  const int64_t room =
      on_chip ? program.target.memories[value.space].bytes : program.regions[value.space].bytes;
  const auto bytes = SpanBytes(value);
  if (!bytes || !CountElements(value.shape)) {
    faults->Add(where, "its shape is impossible or too large");
  } else if (value.base < 0 || *bytes > room || value.base > room - *bytes) {
    faults->Add(where, "base ", value.base, " with ", *bytes, " bytes is not within the ", room,
                " bytes of its ", on_chip ? "memory" : "region");
  }
}

void VerifyPredictions(const Program& program, const std::vector<Counters>& list, const char* where,
                       Faults* faults) {
  if (!list.empty() && list.size() != program.groups.size()) {
    faults->Add(where, "there are ", list.size(), ", and ", program.groups.size(), " groups");
  }
  for (const Counters& counters : list) {
    if (counters.memory.size() == program.target.memories.size()) continue;
    faults->Add(where, "speak of ", counters.memory.size(), " memories, the target has ",
                program.target.memories.size());
    break;
  }
}

}  // namespace

void VerifyTables(const Program& program, int64_t constant_bytes, Faults* faults) {
  bool sane = true;
  for (size_t r = 0; r < program.regions.size() && !faults->full(); ++r) {
    sane = IsRegionSane(program, r, constant_bytes, faults) && sane;
  }
  if (!sane) return;
  VerifyOverlaps(program, faults);
  VerifyPorts(program, program.inputs, RegionKind::kInput, "input", faults);
  VerifyPorts(program, program.outputs, RegionKind::kOutput, "output", faults);
  VerifyBuffers(program, faults);
  for (const ValueDesc& value : program.values) {
    if (faults->full()) break;
    VerifyValue(program, value, faults);
  }
  // A program may come without predictions.
  VerifyPredictions(program, program.predicted, "predicted counters", faults);
  VerifyPredictions(program, program.steady, "predicted counters of later runs", faults);
}

}  // namespace dla::machine
