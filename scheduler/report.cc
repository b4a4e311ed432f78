#include "scheduler/report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <numeric>

#include "scheduler/dram.h"
#include "scheduler/explain_mapping.h"
#include "scheduler/explain_residency.h"
#include "scheduler/mapping_fault.h"
#include "scheduler/predict.h"
#include "scheduler/transfers.h"

namespace dla::scheduler {
namespace {

std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string Format(const char* format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof(buffer), format, arguments);
  va_end(arguments);
  return buffer;
}

// The end of a long name: exporters' names differ there, and begin alike.
std::string Tail(const std::string& name) {
  constexpr size_t kWidth = 40, kMark = 3;
  if (name.size() <= kWidth) return name;
  size_t begin = name.size() - (kWidth - kMark);
  while (begin < name.size() && (static_cast<uint8_t>(name[begin]) & 0xC0) == 0x80) ++begin;
  return "..." + name.substr(begin);
}

double Milliseconds(int64_t cycles, const machine::Target& target) {
  return static_cast<double>(cycles) / (static_cast<double>(target.clock_mhz) * 1000);
}

int64_t BusCycles(const machine::Counters& c, const machine::Target& target) {
  return machine::CyclesAtRate(c.dram_bus_bytes(), target.dram.bytes_per_cycle) +
         c.descriptors * target.dma_startup_cycles;
}

// What a report says of a group.
struct Row {
  const ScheduledGroup* group;
  int64_t compute = 0;   // cycles of the array and the vector engine
  int64_t bus = 0;       // cycles of the DRAM bus
  int64_t roofline = 0;  // cycles below which no mapping comes: MACs at full rate, compulsory bytes
  double share = 0;      // of the array's peak
  // Compute or transfers, whichever is longer; "latency" where both leave more than a third of the
  // time unused.
  const char* bound_by = "latency";

  int64_t AboveRoofline() const { return group->predicted.cycles - roofline; }
};

Row RowOf(const ScheduledGroup& group, const machine::Target& target) {
  const machine::Counters& c = group.predicted;
  Row row = {&group, ComputeCycles(group.nest, group.mapping, target), BusCycles(c, target)};
  double rate = 1;
  if (group.nest.anchor == ir::Anchor::kContraction) {
    const machine::Rational r = target.array.rates.at(
        {group.nest.operands[0].ReadType(), group.nest.operands[1].ReadType()});
    rate = static_cast<double>(r.numerator) / static_cast<double>(r.denominator);
  }
  const double peak = static_cast<double>(target.array.rows * target.array.cols) * rate;
  row.share = static_cast<double>(c.macs_array) /
              (peak * static_cast<double>(std::max<int64_t>(c.cycles, 1)));
  row.roofline =
      std::max(static_cast<int64_t>(static_cast<double>(c.macs_array) / peak),
               machine::CyclesAtRate(group.compulsory_bytes, target.dram.bytes_per_cycle));
  if (std::max(row.compute, row.bus) * 3 >= c.cycles * 2) {
    const bool contracts = group.nest.anchor == ir::Anchor::kContraction;
    row.bound_by = row.bus > row.compute ? "dram" : contracts ? "array" : "vector";
  }
  return row;
}

std::vector<Row> RowsOf(const Schedule& schedule) {
  std::vector<Row> rows;
  for (const ScheduledGroup& group : schedule.groups) rows.push_back(RowOf(group, schedule.target));
  return rows;
}

// The groups that lose most against their rooflines.
std::string Attention(const std::vector<Row>& rows, size_t top) {
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return rows[a].AboveRoofline() > rows[b].AboveRoofline();
  });
  std::string text =
      "\ngroups worth attention (cycles above the roofline of MACs and compulsory bytes):\n";
  for (size_t k = 0; k < std::min(top, order.size()); ++k) {
    const Row& row = rows[order[k]];
    const machine::Counters& c = row.group->predicted;
    text +=
        Format("  %-4zu %-40s %12lld above %lld; bound by %s; %.2f times its compulsory bytes\n",
               order[k], Tail(row.group->name).c_str(), static_cast<long long>(row.AboveRoofline()),
               static_cast<long long>(row.roofline), row.bound_by,
               static_cast<double>(c.dram_bytes()) /
                   static_cast<double>(std::max<int64_t>(row.group->compulsory_bytes, 1)));
  }
  return text;
}

// A field of a CSV row (RFC 4180).
std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string PlaceText(const Schedule& schedule, const ScheduledGroup& group, int operand,
                      const OperandPlace& place) {
  const std::string& memory = schedule.target.memories[static_cast<size_t>(place.memory)].name;
  if (place.resident) return Concat("stays whole in ", memory);
  const TileBuffer* buffer = FindBuffer(group, operand);
  if (buffer == nullptr) return Concat("in the accumulators' buffer in ", memory);
  return Concat(
      buffer->slots, " x ", buffer->slot_bytes, " bytes in ", memory, " at ", buffer->address,
      place.source >= 0 ? Concat(", moved from ",
                                 schedule.target.memories[static_cast<size_t>(place.source)].name)
                        : "");
}

// The mapping of one group and what it costs.
std::string ExplainGroup(const Schedule& schedule, size_t g) {
  const ScheduledGroup& group = schedule.groups[g];
  const ir::Nest& nest = group.nest;
  std::string text = Concat("group ", g, " '", group.name, "' (", group.op, "), made of");
  for (const std::string& node : group.onnx_nodes) text += Concat(" '", node, "'");
  text += "\nloops, outermost first:";
  if (group.mapping.order.empty()) text += " none, one step";
  for (const int d : group.mapping.order) {
    const ir::Dimension& dimension = nest.dimensions[static_cast<size_t>(d)];
    text += Concat(" ", dimension.name, " (", BlockCount(nest, group.mapping, d), " blocks of ",
                   group.mapping.block[static_cast<size_t>(d)], " in ", dimension.extent, ")");
  }
  for (int o = 0; o <= nest.output(); ++o) {
    const ir::Operand& operand = nest.operands[static_cast<size_t>(o)];
    if (operand.is_local) continue;
    text += Concat("\n", ClassName(operand.cls), " '",
                   schedule.graph.values[static_cast<size_t>(operand.value)].name, "': ",
                   PlaceText(schedule, group, o, group.mapping.operands[static_cast<size_t>(o)]));
  }
  if (nest.anchor == ir::Anchor::kContraction) {
    text += Concat("\npartial sums: ",
                   PlaceText(schedule, group, kAccumulator, group.mapping.accumulator));
  }
  const Row row = RowOf(group, schedule.target);
  const machine::Counters& c = group.predicted;
  text += Concat("\n", c.cycles, " cycles (compute ", row.compute, ", DRAM bus ", row.bus,
                 ", roofline ", row.roofline, "), bound by ", row.bound_by, "\n", c.dram_bytes(),
                 " DRAM bytes; compulsory ", group.compulsory_bytes, "\n");
  return text + ExplainMapping(schedule, g);
}

// How many mappings are proven best, and how far all are from their bounds.
std::string CertificatesLine(const Schedule& schedule) {
  size_t proven = 0;
  size_t given = 0;
  double value = 0, least = 0;
  for (const ScheduledGroup& group : schedule.groups) {
    if (group.points == 0) ++given;
    if (group.certificate.least <= 0) continue;
    if (group.certificate.proven && group.certificate.all_sizes) ++proven;
    value += ValueOf(group, schedule);
    least += group.certificate.least;
  }
  std::string text =
      Concat("mappings: ", proven, " of ", schedule.groups.size(), " proven best by ",
             ObjectiveName(schedule.objective), ", given what stays on chip");
  if (given > 0) text += Concat("; ", given, " given");
  if (least > 0) text += Format("; all together at most %.2f%% above", 100 * (value / least - 1));
  return text + "\n";
}

}  // namespace

std::string SummaryLine(const Schedule& schedule) {
  const machine::Counters totals = Totals(schedule);
  return Format("%s: %zu groups, %lld cycles (%.3f ms), %lld DRAM bytes\n",
                schedule.target.name.c_str(), schedule.groups.size(),
                static_cast<long long>(totals.cycles), Milliseconds(totals.cycles, schedule.target),
                static_cast<long long>(totals.dram_bytes()));
}

std::string OtherBuffers(const Schedule& schedule) {
  constexpr size_t kMostNames = 5;
  size_t count = 0;
  std::string names;
  for (const ScheduledGroup& group : schedule.groups) {
    if (KeepsTo(schedule.search.buffers, group.nest, group.mapping)) continue;
    if (++count <= kMostNames) names += Concat(count > 1 ? ", '" : "'", group.name, "'");
  }
  if (count == 0) return "";
  return Concat("--buffers ", BufferRuleName(schedule.search.buffers), ": ", count,
                count == 1 ? " group does" : " groups do", " not fit so and ",
                count == 1 ? "has" : "have", " other buffers: ", names,
                count > kMostNames ? ", ..." : "");
}

std::string ReportText(const Schedule& schedule, size_t top) {
  const machine::Target& target = schedule.target;
  std::string text =
      Format("model %s, target %s:", schedule.graph.name.c_str(), target.name.c_str());
  for (const machine::Memory& memory : target.memories) {
    text += Format(" %s %lld B", memory.name.c_str(), static_cast<long long>(memory.bytes));
  }
  text += Format("\n\n%-4s %-40s %12s %12s %7s %12s %12s %6s  %s\n", "#", "group", "cycles",
                 "compute", "array", "DRAM bytes", "compulsory", "steps", "bound by");
  const std::vector<Row> rows = RowsOf(schedule);
  for (size_t g = 0; g < rows.size(); ++g) {
    const Row& row = rows[g];
    const ScheduledGroup& group = *row.group;
    const machine::Counters& c = group.predicted;
    text += Format(
        "%-4zu %-40s %12lld %12lld %6.1f%% %12lld %12lld %6lld  %s\n", g, Tail(group.name).c_str(),
        static_cast<long long>(c.cycles), static_cast<long long>(row.compute), 100 * row.share,
        static_cast<long long>(c.dram_bytes()), static_cast<long long>(group.compulsory_bytes),
        static_cast<long long>(StepCount(group.nest, group.mapping)), row.bound_by);
  }
  text += Attention(rows, top);
  const machine::Counters totals = Totals(schedule);
  const double ms = Milliseconds(totals.cycles, target);
  text += Format("\n%lld cycles, %.3f ms, %.1f inferences a second at %lld MHz\n",
                 static_cast<long long>(totals.cycles), ms, ms > 0 ? 1000 / ms : 0.0,
                 static_cast<long long>(target.clock_mhz));
  text += Format("%lld DRAM bytes (%lld on the bus), %lld MACs, DRAM footprint %lld bytes\n",
                 static_cast<long long>(totals.dram_bytes()),
                 static_cast<long long>(totals.dram_bus_bytes()),
                 static_cast<long long>(totals.macs_array + totals.macs_vector + totals.macs_host),
                 static_cast<long long>(DramFootprint(schedule)));
  const TrafficBound& bound = schedule.residency.bound;
  const auto above = [](int64_t reached, int64_t least) {
    return 100.0 *
           (static_cast<double>(reached) / static_cast<double>(std::max<int64_t>(least, 1)) - 1);
  };
  text += Format(
      "residency %s: %zu values stay on chip; any residency: at least %lld DRAM bytes (%.1f%% "
      "above) "
      "and %lld cycles (%.1f%% above), of groups that do not overlap %lld (%.1f%%)\n",
      std::string(ResidencyPolicyName(schedule.residency.policy)).c_str(),
      schedule.residents.size(), static_cast<long long>(bound.dram_bytes),
      above(totals.dram_bytes(), bound.dram_bytes), static_cast<long long>(bound.cycles),
      above(totals.cycles, bound.cycles), static_cast<long long>(bound.alone_cycles),
      above(CyclesApart(schedule), bound.alone_cycles));
  text += Format(
      "64 KiB more scratchpad: at most %.0f DRAM bytes less of values that fit today, by "
      "the bound's prices\n",
      SavedByMore(schedule, 64 * 1024));
  text += CertificatesLine(schedule);
  if (const std::string other = OtherBuffers(schedule); !other.empty()) text += other + "\n";
  if (schedule.residency.given_up > 0) {
    text += Format("%d values were given up because no addresses were found for them\n",
                   schedule.residency.given_up);
  }
  return text;
}

namespace {

// What is minimised, its lower bound, the gap between them, whether that is proven.
std::string CertificateFields(const ScheduledGroup& group, const Schedule& schedule) {
  const Certificate& certificate = group.certificate;
  const double value = ValueOf(group, schedule);
  if (certificate.least <= 0) return Format("%.0f,,,", value);
  return Format("%.0f,%.0f,%.6f,%s", value, certificate.least, value / certificate.least - 1,
                certificate.proven && certificate.all_sizes ? "yes" : "no");
}

}  // namespace

std::string ReportCsv(const Schedule& schedule) {
  std::string text =
      "group,name,op,onnx_nodes,cycles,compute_cycles,bus_cycles,roofline_cycles,array_share,"
      "dram_bytes,dram_bus_bytes,compulsory_bytes,macs_array,macs_vector,steps,bound_by,"
      "minimised,least,gap,proven\n";
  const std::vector<Row> rows = RowsOf(schedule);
  for (size_t g = 0; g < rows.size(); ++g) {
    const Row& row = rows[g];
    const machine::Counters& c = row.group->predicted;
    std::string nodes;
    for (const std::string& node : row.group->onnx_nodes)
      nodes += (nodes.empty() ? "" : " ") + node;
    text += Concat(g, ",", Quoted(row.group->name), ",", row.group->op, ",", Quoted(nodes), ",",
                   c.cycles, ",", row.compute, ",", row.bus, ",", row.roofline, ",",
                   Format("%.4f", row.share), ",", c.dram_bytes(), ",", c.dram_bus_bytes(), ",",
                   row.group->compulsory_bytes, ",", c.macs_array, ",", c.macs_vector, ",",
                   StepCount(row.group->nest, row.group->mapping), ",", row.bound_by, ",",
                   CertificateFields(*row.group, schedule), "\n");
  }
  return text;
}

Result<std::string> Explain(const Schedule& schedule, std::string_view name) {
  std::string text;  // of the group of that name, or of the groups (slices) that have that node
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    const ScheduledGroup& group = schedule.groups[g];
    const bool member =
        std::find(group.onnx_nodes.begin(), group.onnx_nodes.end(), name) != group.onnx_nodes.end();
    if (group.name == name) return ExplainGroup(schedule, g);
    if (member) text += Concat(text.empty() ? "" : "\n", ExplainGroup(schedule, g));
  }
  if (!text.empty()) return text;
  Result<std::string> value = ExplainResidency(schedule, name);
  if (value.ok()) return value;
  return Usage("--explain ", name, ": neither a node nor a value after fusion; see --report text");
}

}  // namespace dla::scheduler
