#include "runtime/dump.h"

#include <algorithm>
#include <cstring>

#include "support/suggest.h"

namespace dla::runtime {
namespace {

using machine::ValueDesc;
using machine::ValuePlace;

std::string WhyNot(const machine::Program& program, const std::string& name) {
  for (const machine::Port& port : program.inputs) {
    if (port.name == name) return "is an input of the program";
  }
  std::vector<std::string> names;
  for (const ValueDesc& value : program.values) {
    if (value.name != name) {
      names.push_back(value.name);
    } else if (value.group < 0) {
      return Concat("of node '", value.node,
                    "' is not computed at run time: the compiler computed ",
                    "it, or nothing needs it");
    } else {
      const machine::Group& group = program.groups[static_cast<size_t>(value.group)];
      return Concat("of node '", value.node, "' was fused into group '", group.name,
                    "', which keeps it to itself; compile with --fuse off to see it");
    }
  }
  return "is not computed by any node of the model" + DidYouMean(name, names);
}

}  // namespace

Result<std::vector<size_t>> FindValues(const machine::Program& program,
                                       const std::vector<std::string>& names) {
  const bool all = std::find(names.begin(), names.end(), "all") != names.end();
  std::vector<size_t> found;
  for (size_t v = 0; v < program.values.size(); ++v) {
    const ValueDesc& value = program.values[v];
    if (value.place == ValuePlace::kNowhere) continue;
    if (all || std::find(names.begin(), names.end(), value.name) != names.end()) found.push_back(v);
  }
  std::string faults;
  for (const std::string& name : names) {
    const bool is_found = std::any_of(found.begin(), found.end(),
                                      [&](size_t v) { return program.values[v].name == name; });
    if (name == "all" || is_found) continue;
    faults +=
        Concat(faults.empty() ? "" : "\n", "--dump: value '", name, "' ", WhyNot(program, name));
  }
  if (!faults.empty()) return Usage(faults);
  return found;
}

int64_t CountFusedAway(const machine::Program& program) {
  return std::count_if(program.values.begin(), program.values.end(),
                       [](const ValueDesc& v) { return v.place == ValuePlace::kNowhere; });
}

Tensor ReadValue(const ValueDesc& value, Storage* storage) {
  const int64_t elements = CountElements(value.shape).value_or(0);
  const auto size = static_cast<size_t>(TypeBytes(value.type, 1));
  const uint8_t* from = value.place == ValuePlace::kRegion
                            ? storage->ReadRegion(value.space)
                            : storage->Scratchpad(static_cast<int>(value.space));
  Tensor tensor = {value.name, value.type, value.shape, {}};
  tensor.bytes.resize(static_cast<size_t>(elements) * size);
  std::vector<int64_t> index(value.shape.size(), 0);
  int64_t at = 0;  // elements from the base
  for (int64_t i = 0; i < elements; ++i) {
    std::memcpy(tensor.bytes.data() + static_cast<size_t>(i) * size,
                from + value.base + at * static_cast<int64_t>(size), size);
    for (size_t a = index.size(); a-- > 0;) {
      at += value.strides[a];
      if (++index[a] < value.shape[a]) break;
      at -= value.shape[a] * value.strides[a];
      index[a] = 0;
    }
  }
  return tensor;
}

}  // namespace dla::runtime
