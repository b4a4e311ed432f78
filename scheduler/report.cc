#include "scheduler/report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "scheduler/dram.h"
#include "scheduler/explain_residency.h"
#include "scheduler/predict.h"

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

double Milliseconds(int64_t cycles, const machine::Target& target) {
  return static_cast<double>(cycles) / (static_cast<double>(target.clock_mhz) * 1000);
}

int64_t BusCycles(const machine::Counters& c, const machine::Target& target) {
  return machine::CyclesAtRate(c.dram_bus_bytes(), target.dram.bytes_per_cycle) +
         c.descriptors * target.dma_startup_cycles;
}

// What a group spends its time on: its compute or its transfers, whichever is longer; "latency"
// where both leave more than a third of the time unused.
const char* BoundBy(const ScheduledGroup& group, int64_t compute, int64_t bus) {
  const int64_t busiest = std::max(compute, bus);
  if (busiest * 3 < group.predicted.cycles * 2) return "latency";
  if (bus > compute) return "dram";
  return group.nest.anchor == ir::Anchor::kContraction ? "array" : "vector";
}

}  // namespace

std::string SummaryLine(const Schedule& schedule) {
  const machine::Counters totals = Totals(schedule);
  return Format("%s: %zu groups, %lld cycles (%.3f ms), %lld DRAM bytes\n",
                schedule.target.name.c_str(), schedule.groups.size(),
                static_cast<long long>(totals.cycles), Milliseconds(totals.cycles, schedule.target),
                static_cast<long long>(totals.dram_bytes()));
}

std::string ReportText(const ir::Graph& graph, const Schedule& schedule) {
  const machine::Target& target = schedule.target;
  std::string text = Format("model %s, target %s:", graph.name.c_str(), target.name.c_str());
  for (const machine::Memory& memory : target.memories) {
    text += Format(" %s %lld B", memory.name.c_str(), static_cast<long long>(memory.bytes));
  }
  text += Format("\n\n%-4s %-40s %12s %12s %7s %12s %12s %6s  %s\n", "#", "group", "cycles",
                 "compute", "array", "DRAM bytes", "compulsory", "steps", "bound by");
  const double peak = static_cast<double>(target.array.rows * target.array.cols);
  for (size_t g = 0; g < schedule.groups.size(); ++g) {
    const ScheduledGroup& group = schedule.groups[g];
    const machine::Counters& c = group.predicted;
    const int64_t compute = ComputeCycles(group.nest, group.mapping, target);
    const int64_t bus = BusCycles(c, target);
    double rate = 1;
    if (group.nest.anchor == ir::Anchor::kContraction) {
      const machine::Rational r = target.array.rates.at(
          {group.nest.operands[0].ReadType(), group.nest.operands[1].ReadType()});
      rate = static_cast<double>(r.numerator) / static_cast<double>(r.denominator);
    }
    const double share = static_cast<double>(c.macs_array) /
                         (peak * rate * static_cast<double>(std::max<int64_t>(c.cycles, 1)));
    text += Format(
        "%-4zu %-40.40s %12lld %12lld %6.1f%% %12lld %12lld %6lld  %s\n", g, group.name.c_str(),
        static_cast<long long>(c.cycles), static_cast<long long>(compute), 100 * share,
        static_cast<long long>(c.dram_bytes()), static_cast<long long>(group.compulsory_bytes),
        static_cast<long long>(StepCount(group.nest, group.mapping)), BoundBy(group, compute, bus));
  }
  const machine::Counters totals = Totals(schedule);
  const double ms = Milliseconds(totals.cycles, target);
  text += Format("\n%lld cycles, %.3f ms, %.1f inferences a second at %lld MHz\n",
                 static_cast<long long>(totals.cycles), ms, ms > 0 ? 1000 / ms : 0.0,
                 static_cast<long long>(target.clock_mhz));
  text += Format(
      "%lld DRAM bytes (%lld on the bus), %lld MACs, DRAM footprint %lld bytes\n",
      static_cast<long long>(totals.dram_bytes()), static_cast<long long>(totals.dram_bus_bytes()),
      static_cast<long long>(totals.macs_array), static_cast<long long>(DramFootprint(schedule)));
  const TrafficBound& bound = schedule.residency.bound;
  const auto above = [](int64_t reached, int64_t least) {
    return 100.0 *
           (static_cast<double>(reached) / static_cast<double>(std::max<int64_t>(least, 1)) - 1);
  };
  text += Format(
      "residency %s: %zu values stay on chip; any residency: at least %lld DRAM bytes (%.1f%% "
      "above) "
      "and %lld cycles (%.1f%% above)\n",
      std::string(ResidencyPolicyName(schedule.residency.policy)).c_str(),
      schedule.residents.size(), static_cast<long long>(bound.dram_bytes),
      above(totals.dram_bytes(), bound.dram_bytes), static_cast<long long>(bound.cycles),
      above(totals.cycles, bound.cycles));
  text += Format("64 KiB more scratchpad: at most %.0f DRAM bytes less, by the bound's prices\n",
                 SavedByMore(schedule, 64 * 1024));
  if (schedule.residency.given_up > 0) {
    text += Format("%d values were given up because no addresses were found for them\n",
                   schedule.residency.given_up);
  }
  return text;
}

}  // namespace dla::scheduler
