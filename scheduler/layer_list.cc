#include "scheduler/layer_list.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace dla::scheduler {
namespace {

constexpr std::string_view kForm =
    "name set kind N G M C E F R S stride dilation pad count, then H W if the input's size is "
    "known";
constexpr int64_t kMostExtent = int64_t{1} << 16;
// The searches table every pair of an output and a kernel size, and add up in 64 bits.
constexpr int64_t kMostPairs = int64_t{1} << 20;
constexpr double kMostMacs = 1e13;
constexpr double kMostLoads = 1e14;

std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields;
  constexpr std::string_view kBlanks = " \t\r";
  for (size_t at = line.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kBlanks, end);
  }
  return fields;
}

struct Field {
  const char* name;
  int64_t* value;
  int64_t least;
};

Status ReadNumber(std::string_view text, const Field& field) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *field.value);
  if (error != std::errc() || end != text.data() + text.size() || *field.value < field.least ||
      *field.value > kMostExtent) {
    return Malformed(field.name, ": '", text, "' is not a whole number from ", field.least, " to ",
                     kMostExtent);
  }
  return {};
}

// The last window begins within the padded input: rows E from lines H.
Status CheckExtent(const char* out, const char* in, int64_t extent, int64_t taps, int64_t lines,
                   const Layer& l) {
  const int64_t needs = (extent - 1) * l.stride + l.dilation * (taps - 1) + 1 - 2 * l.pad;
  if (lines < needs) {
    return Malformed(in, " is ", lines, ", but ", out, " = ", extent, " outputs need ", needs,
                     " lines besides the padding; make ", in, " larger or ", out,
                     " or pad smaller");
  }
  if (lines < 1) {
    return Malformed(in, ": no real input is left (", lines, " lines); make pad smaller than ",
                     l.pad);
  }
  return {};
}

// No mapping loads more input than this.
double MostLoads(int64_t extent, int64_t taps, int64_t lines, const Layer& l) {
  const int64_t window = std::min(lines, (taps - 1) * l.dilation + 1);
  return static_cast<double>(extent) * static_cast<double>(taps) * static_cast<double>(window);
}

Status CheckVolume(const Layer& l) {
  if (l.E * l.R > kMostPairs || l.F * l.S > kMostPairs) {
    return Malformed("E x R or F x S is more than 2^20; cut the layer into parts");
  }
  double channels = 1;
  for (const int64_t size : {l.N, l.G, l.M, l.C}) channels *= static_cast<double>(size);
  const double macs = channels * static_cast<double>(l.E * l.R) * static_cast<double>(l.F * l.S);
  const double loads = channels * MostLoads(l.E, l.R, l.H, l) * MostLoads(l.F, l.S, l.W, l);
  if (macs > kMostMacs || loads > kMostLoads) {
    return Malformed("more than 10^13 multiplications or 10^14 loads; cut the layer into parts");
  }
  return {};
}

Status CheckLayer(const NamedLayer& named) {
  const Layer& l = named.layer;
  if (named.kind != "conv" && named.kind != "dwconv" && named.kind != "matmul") {
    return Malformed("kind: '", named.kind, "' is none of conv, dwconv, matmul");
  }
  if (named.kind == "dwconv" && (l.M != 1 || l.C != 1)) {
    return Malformed("a dwconv has M = C = 1 and its channels in G, not M = ", l.M, ", C = ", l.C);
  }
  if (named.kind == "matmul" && (l.F != 1 || l.R != 1 || l.S != 1 || l.pad != 0)) {
    return Malformed("a matmul has F = R = S = 1 and pad = 0; rows go to E");
  }
  DLA_RETURN_IF_ERROR(CheckExtent("E", "H", l.E, l.R, l.H, l));
  DLA_RETURN_IF_ERROR(CheckExtent("F", "W", l.F, l.S, l.W, l));
  return CheckVolume(l);
}

Result<NamedLayer> ParseLine(std::string_view line) {
  const std::vector<std::string_view> fields = Fields(line);
  NamedLayer named;
  Layer& l = named.layer;
  const Field numbers[] = {{"N", &l.N, 1},           {"G", &l.G, 1},
                           {"M", &l.M, 1},           {"C", &l.C, 1},
                           {"E", &l.E, 1},           {"F", &l.F, 1},
                           {"R", &l.R, 1},           {"S", &l.S, 1},
                           {"stride", &l.stride, 1}, {"dilation", &l.dilation, 1},
                           {"pad", &l.pad, 0},       {"count", &named.count, 1},
                           {"H", &l.H, 1},           {"W", &l.W, 1}};
  constexpr size_t kWords = 3, kWithoutInput = 15, kWithInput = 17;
  if (fields.size() != kWithoutInput && fields.size() != kWithInput) {
    return Malformed(fields.size(), " fields, but a layer has 15 or 17: ", kForm);
  }
  named.name = fields[0], named.set = fields[1], named.kind = fields[2];
  for (size_t i = kWords; i < fields.size(); ++i) {
    DLA_RETURN_IF_ERROR(ReadNumber(fields[i], numbers[i - kWords]));
  }
  if (fields.size() == kWithoutInput) {
    l.H = (l.E - 1) * l.stride + l.dilation * (l.R - 1) + l.stride - 2 * l.pad;
    l.W = (l.F - 1) * l.stride + l.dilation * (l.S - 1) + l.stride - 2 * l.pad;
  }
  DLA_RETURN_IF_ERROR(CheckLayer(named));
  return named;
}

}  // namespace

Result<std::vector<NamedLayer>> ParseLayerList(std::string_view text) {
  std::vector<NamedLayer> layers;
  std::set<std::string> names;
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    const size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || line[first] == '#') continue;
    Result<NamedLayer> named = ParseLine(line);
    if (!named.ok()) return named.status().At(Concat("line ", number));
    if (!names.insert(named->name).second) {
      return Malformed("line ", number, ": a second layer named '", named->name,
                       "'; rename one of them");
    }
    layers.push_back(std::move(*named));
  }
  if (layers.empty()) return Malformed("no layers; a line is: ", kForm);
  return layers;
}

}  // namespace dla::scheduler
